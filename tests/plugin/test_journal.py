"""What sessions found that were killed: it is taken up, once.  Seeds are fixed; nothing here can fail by chance."""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit.testing import journal as journals_module
from dpaudit.testing.baseline import Baseline, BaselineError, read
from dpaudit.testing.journal import FORMAT, Journal, _checksum, begin, take_up

pytest_plugins = ["pytester"]
Run = Callable[..., Any]

KILLED = """
import os, pathlib, signal

def test_first(dpaudit):
    dpaudit.assert_private(noise(1.0), claim=CLAIM, pairs=BIT)

def test_second(dpaudit):
    dpaudit.assert_private(noise(1.0), claim=CLAIM, pairs=BIT)
    if pathlib.Path("kill").exists():
        os.kill({whom}, signal.SIGKILL)

def test_third(dpaudit):
    dpaudit.assert_private(noise(1.0), claim=CLAIM, pairs=BIT)
"""
FILE = ("--dpaudit-baseline", "b.json", "--dpaudit-trials", "60")


def chains(folder: Path) -> dict[str, Any]:
    tests = json.loads((folder / "b.json").read_text())["tests"]
    return {node.rsplit("::", 1)[-1]: entry["chains"][0] for node, entry in tests.items()}


def journals(folder: Path) -> list[Path]:
    return sorted(folder.glob("b.json.*.journal"))


def test_what_a_killed_session_had_found_is_counted_once(elsewhere: Run, here: Run, tmp_path: Path) -> None:
    """Killed in its second test, in its first session; the journal is torn and copied before the next one."""
    (tmp_path / "kill").touch()
    assert elsewhere(KILLED.format(whom="os.getpid()"), *FILE).code == -signal.SIGKILL
    assert not (tmp_path / "b.json").exists()
    (left,) = journals(tmp_path)
    with left.open("ab") as file:
        file.write(left.read_bytes()[:-40].strip())  # a line that was torn, and one more copy of what is there
    copy = tmp_path / "copy"
    shutil.copy(left, copy)
    (tmp_path / "kill").unlink()

    here(None, *FILE, "--collect-only")  # takes it up, and audits nothing
    first = chains(tmp_path)
    assert not journals(tmp_path)
    assert {name: chain["runs"] for name, chain in first.items()} == {"test_first": 1, "test_second": 1}
    assert json.loads((tmp_path / "b.json").read_text())["founders"] == 3

    before = (tmp_path / "b.json").read_bytes()
    shutil.copy(copy, left)
    done = here(None, *FILE, "--collect-only")
    assert done.code == 0
    assert not journals(tmp_path)
    assert (tmp_path / "b.json").read_bytes() == before

    done = here(None, *FILE)
    assert done.code == 0
    second = chains(tmp_path)
    assert {name: chain["runs"] for name, chain in second.items()} == {
        "test_first": 2, "test_second": 2, "test_third": 1
    }  # fmt: skip
    outputs = json.loads((tmp_path / "b.json").read_text())["tests"]["test_project.py::test_first"]["outputs"]
    assert len(outputs) == len(set(outputs))  # other randomness than the killed session's: it was a run of its own
    assert "adds no evidence" not in done.out
    assert not journals(tmp_path)


def test_a_killed_session_counts_as_one_that_ended(elsewhere: Run, here: Run, tmp_path: Path) -> None:
    """The same two tests with and without the kill give the same chains."""
    ended = tmp_path / "ended"
    ended.mkdir()
    here(KILLED.format(whom="os.getpid()"), *FILE, "-k", "first or second")
    shutil.move(tmp_path / "b.json", ended / "b.json")
    (tmp_path / "kill").touch()
    assert elsewhere(None, *FILE, "-k", "first or second").code == -signal.SIGKILL
    done = here(None, *FILE, "--collect-only")
    assert "an earlier session was killed: the baseline now counts the 2 audits that it had finished" in done.out
    assert (tmp_path / "b.json").read_text() == (ended / "b.json").read_text()


def test_a_refutation_is_not_forgotten_by_killing_the_session(elsewhere: Run, tmp_path: Path) -> None:
    code = """
import os, signal

def test_it(dpaudit):
    try:
        dpaudit.assert_private(noise(0.2), claim=CLAIM, pairs=BIT)
    finally:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    assert elsewhere(code, *FILE).code == -signal.SIGKILL
    done = elsewhere(code, *FILE)
    assert done.code == -signal.SIGKILL
    assert chains(tmp_path)["test_it"]["refuted"]


@pytest.mark.parametrize("whom", ["os.getpid()", "os.getppid()"])
def test_workers_write_the_journal_of_their_session(elsewhere: Run, here: Run, tmp_path: Path, whom: str) -> None:
    """A worker of pytest-xdist is killed, which the session survives; or its controller, which it does not."""
    pytest.importorskip("xdist")
    (tmp_path / "kill").touch()
    done = elsewhere(KILLED.format(whom=whom), *FILE, "-n", "1", "--max-worker-restart", "0")
    (tmp_path / "kill").unlink()
    if whom == "os.getpid()":
        assert "no evidence" not in done.out
        assert not journals(tmp_path)
    else:
        assert done.code == -signal.SIGKILL
        here(None, *FILE, "--collect-only")
    found = chains(tmp_path)
    assert {found["test_first"]["runs"], found["test_second"]["runs"]} == {1}


# --- without sessions


def record(node: str = "a::b", number: int = 1) -> dict[str, Any]:
    chain = {
        "call": 1, "number": 1, "claim": "gaussian(mu=1)", "runs": 1, "log_invested": -1.5, "refuted": "",
        "mu_lower": 0.1, "trials": 10,
    }  # fmt: skip
    return {"node": node, "number": number, "outputs": ["x"], "chain": chain}


def started(path: Path, session: str = "1") -> Journal:
    return begin(path, read(path, 1e-3), session)


def abandon(journal: Journal) -> None:
    """As when its process is killed: the lock ends."""
    path, content = journal.path, journal.path.read_bytes()
    journal.remove()
    path.write_bytes(content)


def test_the_journal_of_a_session_that_goes_on_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    going = started(path)
    going.add(record(), 1)
    assert take_up(path, 1e-3) == (Baseline(false_alarm=1e-3, tests={}), [])
    assert going.path.exists()
    abandon(going)
    after, notes = take_up(path, 1e-3)
    assert after.runs == 1
    assert len(notes) == 1
    assert read(path, 1e-3) == after


def test_of_two_killed_sessions_with_one_beginning_one_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    for session in "12":
        journal = started(path, session)
        journal.add(record(f"test {session}"), 1)
        abandon(journal)
    after, notes = take_up(path, 1e-3)
    assert list(after.tests) == ["test 1"]
    assert "its audits are not counted, since another session was recorded after it had begun" in notes[1]
    assert not journals(tmp_path)
    assert take_up(path, 1e-3) == (after, [])


def test_a_journal_that_stayed_after_its_session_was_recorded_is_removed_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    journal = started(path)
    journal.add(record(), 1)
    abandon(journal)
    content = journal.path.read_bytes()
    after, _ = take_up(path, 1e-3)
    journal.path.write_bytes(content)
    assert take_up(path, 1e-3) == (after, [])
    assert not journals(tmp_path)


@pytest.mark.parametrize("cut", [1, 2, 30, 200])
def test_a_torn_line_is_left_out_and_those_after_it_count(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "b.json"
    journal = started(path)
    journal.add(record("torn"), 3)
    journal.path.write_bytes(journal.path.read_bytes()[:-cut])
    journal.add(record("whole", 2), 3)
    abandon(journal)
    after, _ = take_up(path, 1e-3)
    assert after.founders == 3
    assert list(after.tests) == (["torn", "whole"] if cut == 1 else ["whole"])  # all but its end of line


def test_a_journal_has_the_budget_of_its_session(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    journal = started(path)
    journal.add(record(), 1)
    abandon(journal)
    with pytest.raises(BaselineError, match=r"begun with --dpaudit-false-alarm 0\.001, got 0\.01; .* so use 0\.001"):
        take_up(path, 1e-2)
    assert journal.path.exists()


@pytest.mark.parametrize(
    "bad",
    [
        {"runs": 7},
        {"log_invested": math.nan},
        {"call": 0},
        {"number": 10**400},
        {"mu_lower": 10**400},
        {"refuted": "\x1b[2J"},
    ],
)
def test_an_impossible_record_is_refused(tmp_path: Path, bad: dict[str, Any]) -> None:
    path = tmp_path / "b.json"
    journal = started(path)
    impossible = record()
    impossible["chain"] |= bad
    journal.add(impossible, 1)
    abandon(journal)
    with pytest.raises(BaselineError, match="is damaged"):
        take_up(path, 1e-3)
    assert not path.exists()


# --- audits that never ended


def lost(node: str = "a::b", number: int = 1) -> dict[str, Any]:
    found = record(node, number)
    found["chain"] |= {"log_invested": -math.inf, "trials": 0, "mu_lower": 0.0}
    return found | {"begun": True, "outputs": []}


@pytest.mark.parametrize(
    ("lines", "counted"),
    [
        ([lost()], -math.inf),
        ([lost(), record()], -1.5),
        ([lost(), record(), lost()], -1.5),  # repeated in the session: the first audit counts
        ([lost(), lost(), record()], -math.inf),  # repeated until one came through
        ([record(), lost()], -1.5),
    ],
)
def test_an_audit_that_never_ended_counts_as_lost(tmp_path: Path, lines: list[Any], counted: float) -> None:
    path = tmp_path / "b.json"
    journal = started(path)
    for line in lines:
        journal.add(line, 1)
    abandon(journal)
    after, notes = take_up(path, 1e-3)
    (chain,) = after.tests["a::b"].chains
    assert (chain.runs, chain.log_invested) == (1, counted)
    assert ("and as lost 1 that it had begun" in notes[0]) == math.isinf(counted)
    assert read(path, 1e-3) == after


def test_an_audit_that_is_killed_has_no_second_chance_for_nothing(elsewhere: Run, here: Run, tmp_path: Path) -> None:
    """Killed within its second audit by the mechanism itself; the claim is true, and what was won is gone."""
    code = """
import os, pathlib, signal

def test_it(dpaudit):
    runs = []
    def release(dataset, rng):
        runs.append(1)
        if len(runs) > 60 and pathlib.Path("kill").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return float(rng.normal(sum(dataset), 1.0))
    dpaudit.assert_private(release, claim=CLAIM, pairs=BIT)
"""
    assert here(code, *FILE).code == 0
    before = chains(tmp_path)["test_it"]
    assert before["runs"] == 1
    (tmp_path / "kill").touch()
    assert elsewhere(None, *FILE).code == -signal.SIGKILL
    done = here(None, *FILE, "--collect-only")
    assert "now counts the 0 audits that it had finished, and as lost 1 that it had begun" in done.out
    after = chains(tmp_path)["test_it"]
    assert (after["runs"], after["log_invested"], after["trials"]) == (2, "-inf", before["trials"])


def test_an_audit_that_is_interrupted_counts_as_lost_when_the_session_ends(elsewhere: Run, tmp_path: Path) -> None:
    code = """
def test_it(dpaudit):
    runs = []
    def release(dataset, rng):
        runs.append(1)
        if len(runs) > 60:
            raise KeyboardInterrupt
        return float(rng.normal(sum(dataset), 1.0))
    dpaudit.assert_private(release, claim=CLAIM, pairs=BIT)
"""
    done = elsewhere(code, *FILE)
    assert "audits that did not end are counted as lost: test_project.py::test_it" in done.out
    assert chains(tmp_path)["test_it"]["log_invested"] == "-inf"
    assert not journals(tmp_path)


def test_a_journal_that_was_removed_before_it_was_locked_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session may find it between the moments when it is opened and locked."""
    path = tmp_path / "b.json"
    journal, flock = started(path), journals_module.fcntl.flock
    removed: list[bool] = []

    def raced(file: int, how: int) -> None:
        if not removed:
            removed.append(True)
            journal.path.unlink()
        flock(file, how)

    monkeypatch.setattr(journals_module.fcntl, "flock", raced)
    journal.add(record(), 1)
    assert [line["record"] for line in journal.lines()] == [record()]


# --- files that no session wrote


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_regular_file_is_left_alone(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A pipe would be waited for, and a link may lead to a device that never ends."""
    make(tmp_path / "b.json.1.journal")
    assert take_up(tmp_path / "b.json", 1e-3) == (Baseline(false_alarm=1e-3, tests={}), [])
    assert len(journals(tmp_path)) == 1


def test_a_journal_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.testing.journal._MOST_BYTES", 10)
    (tmp_path / "b.json.1.journal").write_text("1" * 11)
    with pytest.raises(BaselineError, match=r"b\.json\.1\.journal has more than 10 bytes"):
        take_up(tmp_path / "b.json", 1e-3)


def test_a_journal_of_another_baseline_is_left_alone(tmp_path: Path) -> None:
    """b.json.old and b.json may be baselines in one folder."""
    other = started(tmp_path / "b.json.old")
    other.add(record(), 1)
    abandon(other)
    assert take_up(tmp_path / "b.json", 1e-3) == (Baseline(false_alarm=1e-3, tests={}), [])
    assert take_up(tmp_path / "b.json.old", 1e-3)[0].runs == 1


@pytest.mark.parametrize(
    "wrong", [{"false_alarm": "0.001"}, {"false_alarm": 10**400}, {"start": None}, {"tests": "1"}, {"record": []}]
)
def test_a_line_with_values_of_another_kind_is_left_out(tmp_path: Path, wrong: dict[str, Any]) -> None:
    line = {"format": FORMAT, "start": "", "false_alarm": 1e-3, "tests": 1, "record": record()} | wrong
    text = json.dumps(line | {"sha256": _checksum(line)})
    (tmp_path / "b.json.1.journal").write_text(text)
    assert take_up(tmp_path / "b.json", 1e-3)[0].runs == 0


def test_a_file_name_that_is_no_utf8_may_be_in_a_baseline(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    for session in "12":
        journal = started(path, session)
        journal.add(record("test_\udcff.py::test"), 1)
        abandon(journal)
        take_up(path, 1e-3)
    assert read(path, 1e-3).runs == 2


def test_a_journal_that_was_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening and locking it looks like the journal of a killed session."""
    going, lock, removed = started(tmp_path / "b.json"), fcntl.flock, []

    def removing(file: int, how: int) -> None:
        if not removed:
            removed.append(going.path)
            going.path.unlink()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", removing)
    going.add(record(), 1)
    assert removed
    assert len(going.lines()) == 1


def test_text_of_a_damaged_baseline_reaches_the_terminal_escaped(here: Run, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps({"format": "dpaudit-baseline/\x1b[2J"}))
    done = here("", *FILE)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "\x1b[2J" not in done.out + done.err
    assert "dpaudit-baseline/\\x1b[2J" in done.out + done.err
