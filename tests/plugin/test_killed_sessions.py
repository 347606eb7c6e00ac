"""The audits of killed or interrupted pytest sessions are counted once.  Seeds are fixed.

Nothing here can fail by chance.
"""

from __future__ import annotations

import json
import math
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


def test_the_audits_of_a_killed_session_are_counted_once(elsewhere: Run, here: Run, tmp_path: Path) -> None:
    """The same two tests give the same chains with and without the kill."""
    here(KILLED.format(whom="os.getpid()"), *FILE, "-k", "first or second")
    ended = (tmp_path / "b.json").read_text()
    (tmp_path / "b.json").unlink()
    (tmp_path / "kill").touch()
    assert elsewhere(None, *FILE, "-k", "first or second").code == -signal.SIGKILL
    assert json.loads((tmp_path / "b.json").read_text())["runs"] == 0
    left = (tmp_path / "b.json.journal").read_bytes()
    (tmp_path / "kill").unlink()
    for attempt in range(2):
        done = here(None, *FILE, "--collect-only")  # counts the journal, and audits nothing
        assert (tmp_path / "b.json").read_text() == ended
        assert not (tmp_path / "b.json.journal").exists()
        assert ("an earlier session was killed: its 2 audits have been counted" in done.out) == (attempt == 0)
        (tmp_path / "b.json.journal").write_bytes(left)  # a copy

    done = here(None, *FILE)
    assert done.code == 0
    assert "adds no evidence" not in done.out  # the seeds are not those of the killed session
    assert {name: chain["runs"] for name, chain in chains(tmp_path).items()} == {
        "test_first": 2, "test_second": 2, "test_third": 1
    }  # fmt: skip


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
    here(None, *FILE, "--collect-only")
    assert chains(tmp_path)["test_it"]["refuted"]


@pytest.mark.parametrize("whom", [pytest.param("os.getpid()", marks=pytest.mark.slow), "os.getppid()"])
def test_workers_write_the_journal_of_their_session(elsewhere: Run, here: Run, tmp_path: Path, whom: str) -> None:
    """Kill a worker of pytest-xdist, which the session survives, or its controller, which it does not."""
    pytest.importorskip("xdist")
    (tmp_path / "kill").touch()
    done = elsewhere(KILLED.format(whom=whom), *FILE, "-n", "1", "--max-worker-restart", "0")
    (tmp_path / "kill").unlink()
    if whom == "os.getppid()":
        assert done.code == -signal.SIGKILL
        here(None, *FILE, "--collect-only")
    assert not (tmp_path / "b.json.journal").exists()
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
    assert "unfinished audits are counted as lost bets: test_project.py::test_it" in done.out
    after = chains(tmp_path)["test_it"]
    assert (after["runs"], after["log_invested"], after["trials"]) == (2, -math.inf, before["trials"])


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
    assert chains(tmp_path)["test_it"]["log_invested"] == -math.inf
