"""The audits of killed or interrupted pytest sessions are counted once.  Seeds are fixed.

Nothing here can fail by chance.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]
Run = Callable[..., Any]

KILLED = """
import os, pathlib, signal

def test_first(dpaudit):
    dpaudit.assert_private(noise(1.0), claim=CLAIM, pairs=BIT, attacks="threshold")

def test_second(dpaudit):
    dpaudit.assert_private(noise(1.0), claim=CLAIM, pairs=BIT, attacks="threshold")
    if pathlib.Path("kill").exists():
        os.kill({whom}, signal.SIGKILL)

def test_third(dpaudit):
    dpaudit.assert_private(noise(1.0), claim=CLAIM, pairs=BIT, attacks="threshold")
"""
FILE = ("--dpaudit-baseline", "b.json", "--dpaudit-trials", "60")


def chains(folder: Path) -> dict[str, Any]:
    tests = json.loads((folder / "b.json").read_text())["tests"]
    return {node.rsplit("::", 1)[-1]: entry["chains"][0] for node, entry in tests.items()}


def journals(folder: Path) -> list[Path]:
    return sorted(folder.glob("b.json.*.journal"))


def test_the_audits_of_a_killed_session_are_counted_once(elsewhere: Run, here: Run, tmp_path: Path) -> None:
    """The first session is killed in its second test.  Its journal is truncated and copied before the next session."""
    (tmp_path / "kill").touch()
    assert elsewhere(KILLED.format(whom="os.getpid()"), *FILE).code == -signal.SIGKILL
    assert not (tmp_path / "b.json").exists()
    (left,) = journals(tmp_path)
    with left.open("ab") as file:
        file.write(left.read_bytes()[:-40].strip())  # an incomplete line, and another copy of the content
    copy = tmp_path / "copy"
    shutil.copy(left, copy)
    (tmp_path / "kill").unlink()

    here(None, *FILE, "--collect-only")  # counts the journal, and audits nothing
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
    assert len(outputs) == len(set(outputs))  # not the killed session's randomness, because that was a separate run
    assert "adds no evidence" not in done.out
    assert not journals(tmp_path)


def test_a_killed_session_counts_like_a_completed_one(elsewhere: Run, here: Run, tmp_path: Path) -> None:
    """The same two tests give the same chains with and without the kill."""
    ended = tmp_path / "ended"
    ended.mkdir()
    here(KILLED.format(whom="os.getpid()"), *FILE, "-k", "first or second")
    shutil.move(tmp_path / "b.json", ended / "b.json")
    (tmp_path / "kill").touch()
    assert elsewhere(None, *FILE, "-k", "first or second").code == -signal.SIGKILL
    done = here(None, *FILE, "--collect-only")
    assert "an earlier session was killed: the baseline now counts the 2 audits that had ended" in done.out
    assert (tmp_path / "b.json").read_text() == (ended / "b.json").read_text()


def test_killing_a_session_does_not_erase_its_refutation(elsewhere: Run, here: Run, tmp_path: Path) -> None:
    code = """
import os, signal
from dpaudit import AuditResult
from dpaudit.engine import fresh_runs

def test_it(dpaudit):
    AuditResult.as_pdf = None  # no report, which would take a second
    fresh_runs.PROCESSES = 2  # eight take seconds
    try:
        dpaudit.assert_private(noise(0.2), claim=CLAIM, pairs=BIT, attacks="threshold")
    finally:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    assert elsewhere(code, *FILE).code == -signal.SIGKILL
    assert not (tmp_path / "b.json").exists()
    here(None, *FILE, "--collect-only")  # counts the journal, and audits nothing
    assert chains(tmp_path)["test_it"]["refuted"]


@pytest.mark.parametrize("whom", ["os.getpid()", "os.getppid()"])
def test_workers_write_the_journal_of_their_session(elsewhere: Run, here: Run, tmp_path: Path, whom: str) -> None:
    """Kill a worker of pytest-xdist, which the session survives, or its controller, which it does not."""
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


def test_a_killed_audit_loses_its_invested_wealth(elsewhere: Run, here: Run, tmp_path: Path) -> None:
    """The mechanism kills its second audit.  The claim is true, and all earlier gains are lost."""
    code = """
import os, pathlib, signal

def test_it(dpaudit):
    runs = []
    def release(dataset, rng):
        runs.append(1)
        if len(runs) > 60 and pathlib.Path("kill").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return float(rng.normal(sum(dataset), 1.0))
    dpaudit.assert_private(release, claim=CLAIM, pairs=BIT, attacks="threshold")
"""
    assert here(code, *FILE).code == 0
    before = chains(tmp_path)["test_it"]
    assert before["runs"] == 1
    (tmp_path / "kill").touch()
    assert elsewhere(None, *FILE).code == -signal.SIGKILL
    done = here(None, *FILE, "--collect-only")
    assert "now counts the 0 audits that had ended, and counts 1 unfinished as a lost bet" in done.out
    after = chains(tmp_path)["test_it"]
    assert (after["runs"], after["log_invested"], after["trials"]) == (2, "-inf", before["trials"])


def test_an_audit_that_is_interrupted_counts_as_lost_when_the_session_ends(here: Run, tmp_path: Path) -> None:
    code = """
def test_it(dpaudit):
    runs = []
    def release(dataset, rng):
        runs.append(1)
        if len(runs) > 60:
            raise KeyboardInterrupt
        return float(rng.normal(sum(dataset), 1.0))
    dpaudit.assert_private(release, claim=CLAIM, pairs=BIT, attacks="threshold")
"""
    done = here(code, *FILE)
    assert done.code == pytest.ExitCode.INTERRUPTED
    assert "unfinished audits are counted as lost bets: test_project.py::test_it" in done.out
    assert chains(tmp_path)["test_it"]["log_invested"] == "-inf"
    assert not journals(tmp_path)


def test_text_of_a_damaged_baseline_reaches_the_terminal_escaped(here: Run, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps({"format": "dpaudit-baseline/\x1b[2J"}))
    done = here("", *FILE)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "\x1b[2J" not in done.out + done.err
    assert "dpaudit-baseline/\\x1b[2J" in done.out + done.err
