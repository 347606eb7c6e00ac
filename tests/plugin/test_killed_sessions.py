"""The audits of killed or interrupted pytest sessions are counted once.  Seeds are fixed.

Nothing here can fail by chance.
"""

from __future__ import annotations

import dataclasses
import json
import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit.testing.session import Baseline, BaselineError, BaselineFile, Chain, lock, read

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


def test_the_audits_of_a_killed_session_are_counted_once(killed: Run, run: Run, pytester: pytest.Pytester) -> None:
    """The same two tests give the same chains with and without the kill."""
    run(KILLED.format(whom="os.getpid()"), *FILE, "-k", "first or second")
    ended = (pytester.path / "b.json").read_text()
    (pytester.path / "b.json").unlink()
    (pytester.path / "kill").touch()
    assert killed(None, *FILE, "-k", "first or second") == signal.SIGKILL
    assert json.loads((pytester.path / "b.json").read_text())["runs"] == 0
    left = (pytester.path / "b.json.journal").read_bytes()
    (pytester.path / "kill").unlink()
    for attempt in range(2):
        done = run(None, *FILE, "--collect-only")  # counts the journal, and audits nothing
        assert (pytester.path / "b.json").read_text() == ended
        assert not (pytester.path / "b.json.journal").exists()
        assert ("an earlier session was killed: its 2 audits have been counted" in done.out) == (attempt == 0)
        (pytester.path / "b.json.journal").write_bytes(left)  # a copy

    done = run(None, *FILE, "-k", "first or third")
    assert done.code == 0
    assert "adds no evidence" not in done.out  # the seeds are not those of the killed session
    assert {name: chain["runs"] for name, chain in chains(pytester.path).items()} == {
        "test_first": 2, "test_second": 1, "test_third": 1
    }  # fmt: skip


def test_killing_a_session_does_not_erase_its_refutation(killed: Run, run: Run, pytester: pytest.Pytester) -> None:
    code = """
import os, signal

def test_it(dpaudit):
    try:
        dpaudit.assert_private(noise(0.2), claim=CLAIM, pairs=BIT, attacks="threshold")
    finally:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    assert killed(code, *FILE) == signal.SIGKILL
    run(None, *FILE, "--collect-only")
    assert chains(pytester.path)["test_it"]["refuted"]


@pytest.mark.slow  # the default test is `test_workers_share_budget_and_baseline`, which reads the journal in workers
@pytest.mark.parametrize("whom", ["os.getpid()", "os.getppid()"])
def test_workers_write_the_journal_of_their_session(
    elsewhere: Run, run: Run, pytester: pytest.Pytester, whom: str
) -> None:
    """Kill a worker of pytest-xdist, which the session survives, or its controller, which it does not."""
    pytest.importorskip("xdist")
    (pytester.path / "kill").touch()
    done = elsewhere(KILLED.format(whom=whom), *FILE, "-n", "1", "--max-worker-restart", "0")
    (pytester.path / "kill").unlink()
    if whom == "os.getppid()":
        assert done.code == -signal.SIGKILL
        run(None, *FILE, "--collect-only")
    assert not (pytester.path / "b.json.journal").exists()
    found = chains(pytester.path)
    assert {found["test_first"]["runs"], found["test_second"]["runs"]} == {1}


def test_a_killed_audit_loses_its_invested_wealth(killed: Run, run: Run, pytester: pytest.Pytester) -> None:
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
    assert run(code, *FILE).code == 0
    before = chains(pytester.path)["test_it"]
    assert before["runs"] == 1
    (pytester.path / "kill").touch()
    assert killed(None, *FILE) == signal.SIGKILL
    done = run(None, *FILE, "--collect-only")
    assert "unfinished audits are counted as lost bets: test_project.py::test_it" in done.out
    after = chains(pytester.path)["test_it"]
    assert (after["runs"], after["log_invested"], after["trials"]) == (2, -math.inf, before["trials"])


def test_an_audit_that_is_interrupted_counts_as_lost_when_the_session_ends(run: Run, pytester: pytest.Pytester) -> None:
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
    done = run(code, *FILE)
    assert done.code == pytest.ExitCode.INTERRUPTED
    assert "unfinished audits are counted as lost bets: test_project.py::test_it" in done.out
    assert chains(pytester.path)["test_it"]["log_invested"] == -math.inf


def record(node: str = "a::b", number: int = 1, log_invested: float = -1.5) -> dict[str, Any]:
    chain = Chain(call=1, number=1, claim="gaussian(mu=1)", runs=1, log_invested=log_invested, trials=10)
    return {"node": node, "number": number, "outputs": ["x"], "chain": dataclasses.asdict(chain)}


def lost() -> dict[str, Any]:
    return record(log_invested=-math.inf) | {"begun": True, "outputs": []}


def begun(folder: Path) -> BaselineFile:
    return read(folder / "b.json", 1e-3)


def journal(folder: Path) -> Path:
    return folder / "b.json.journal"


def test_a_session_is_counted_when_it_ends_or_before_the_next(tmp_path: Path) -> None:
    """Another process may read the file at any time; the file changes only when the journal is counted."""
    begun(tmp_path).add(record(), 3)
    after, (counted,) = begun(tmp_path).settle()
    assert counted == record()
    assert (after.runs, after.founders) == (1, 3)
    assert begun(tmp_path).start == dataclasses.replace(after, tests=begun(tmp_path).start.tests)
    assert begun(tmp_path).start.tests["a::b"].chains == [Chain(**record()["chain"])]
    assert not journal(tmp_path).exists()
    assert begun(tmp_path).settle() == (begun(tmp_path).start, [])


def test_no_copy_of_a_journal_is_counted_twice(tmp_path: Path) -> None:
    """A copy remains, for example, if the session is killed between writing the baseline and removing the journal."""
    begun(tmp_path).add(record(), 1)
    content = journal(tmp_path).read_bytes()
    begun(tmp_path).settle()
    journal(tmp_path).write_bytes(content)
    begun(tmp_path).add(record("c::d", 2), 1)
    after, counted = begun(tmp_path).settle()
    assert [one["node"] for one in counted] == ["c::d"]
    assert after.tests["a::b"].chains[0].runs == 1


@pytest.mark.parametrize("cut", [1, 2, 30, 200])
def test_an_incomplete_line_is_skipped_and_later_lines_count(tmp_path: Path, cut: int) -> None:
    begun(tmp_path).add(record("torn"), 3)
    journal(tmp_path).write_bytes(journal(tmp_path).read_bytes()[:-cut])
    begun(tmp_path).add(record("whole", 2), 3)
    after, _ = begun(tmp_path).settle()
    assert after.founders == 3
    assert list(after.tests) == (["torn", "whole"] if cut == 1 else ["whole"])  # everything but the end of line


@pytest.mark.parametrize(
    ("lines", "counted"),
    [
        ([lost()], -math.inf),
        ([lost(), record()], -1.5),
        ([lost(), record(), lost()], -1.5),  # repeated in the session; the first audit counts
        ([lost(), lost(), record()], -math.inf),  # repeated until an audit ended
        ([record(), lost()], -1.5),
    ],
)
def test_an_audit_that_never_ended_counts_as_lost(tmp_path: Path, lines: list[Any], counted: float) -> None:
    for line in lines:
        begun(tmp_path).add(line, 1)
    after, _ = begun(tmp_path).settle()
    (chain,) = after.tests["a::b"].chains
    assert (chain.runs, chain.log_invested) == (1, counted)
    assert begun(tmp_path).start.tests["a::b"].chains == [chain]


def test_one_session_at_a_time_uses_a_baseline(tmp_path: Path) -> None:
    held = lock(tmp_path / "new" / "b.json")
    with pytest.raises(BaselineError, match=r"another session is using .*b\.json"):
        lock(tmp_path / "new" / "b.json")
    held.release()
    lock(tmp_path / "new" / "b.json").release()


@pytest.mark.parametrize(
    "bad",
    [
        "<<<<<<< ours\n",
        "[]",
        '{"a": 1}',
        '{"format": "dpaudit-baseline/999", "tests": {}}',
        '{"format": "dpaudit-baseline/1"}',
    ],
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, bad: str) -> None:
    (tmp_path / "b.json").write_text(bad)
    with pytest.raises(BaselineError, match=r"b\.json is not a baseline .* resolve merge conflicts, restore"):
        begun(tmp_path)
    assert (tmp_path / "b.json").read_text() == bad


def test_all_sessions_share_one_budget(tmp_path: Path) -> None:
    assert begun(tmp_path).start == Baseline(false_alarm=1e-3)
    with pytest.raises(BaselineError, match=r"started with --dpaudit-false-alarm 0\.001, got 0\.01; .* so use 0\.001"):
        read(tmp_path / "b.json", 0.01)
    assert json.loads((tmp_path / "b.json").read_text())["runs"] == 0
