"""Each audit of a session is paid once from its budget: with copies of tests in all workers, and with attempts.

No test uses chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import _dpaudit_pytest

pytest_plugins = ["pytester"]
Run = Callable[..., Any]

# A mechanism that ignores its seed, and the significance of each audit
AUDITS = """
import numpy as np
from dpaudit.testing import assertion

own = np.random.default_rng()

def release(dataset, rng):
    return float(own.normal(sum(dataset), 1.0))

def audited(dpaudit, claim=CLAIM):
    return dpaudit.assert_private(release, claim=claim, pairs=BIT, attacks="threshold", trials=60)

real = assertion.audit_for

def counted(mechanism, claim, pairs, asked, **given):
    with open("levels.txt", "a") as file:
        file.write(f"{1 - asked.confidence!r}\\n")
    return real(mechanism, claim, pairs, asked, **given)

@pytest.fixture(autouse=True)
def levels(monkeypatch):
    monkeypatch.setattr(assertion, "audit_for", counted)

"""

# Runs each failed test once more, as pytest-rerunfailures does.
RERUN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for attempt in range(2):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if all(not report.failed for report in reports):
            break
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def levels(folder: Any) -> list[float]:
    return [float(line) for line in (folder / "levels.txt").read_text().split()]


@pytest.mark.slow
def test_copies_of_a_test_in_all_workers_share_the_budget(elsewhere: Run, pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    code = AUDITS + "def test_it(dpaudit): audited(dpaudit)\n"
    done = elsewhere(code, "--dist", "each", "--tx", "2*popen", "--dpaudit-false-alarm", "0.01")
    assert done.counts == {"passed": 2}, done.out
    assert len(levels(pytester.path)) == 2
    assert 0.6 * 0.01 < sum(levels(pytester.path)) <= 0.01
    assert "split over 2 tests" in done.out


def test_each_of_two_workers_takes_half_of_the_budget_of_a_test(run: Run, pytester: pytest.Pytester) -> None:
    each: Any = SimpleNamespace(getoption=lambda name, *default: "each" if name == "dist" else None)
    node = SimpleNamespace(workerinput={"workercount": 2, "workerid": "gw0"})
    _dpaudit_pytest._Session(each).pytest_configure_node(node)
    told = f"config.workerinput, config.workeroutput = {node.workerinput}, {{}}"
    pytester.makeconftest(f"def pytest_configure(config):\n    {told}\n")
    assert run(AUDITS + "def test_it(dpaudit): audited(dpaudit)\n", "--dpaudit-false-alarm", "0.01").code == 0
    assert 0.3 * 0.01 < levels(pytester.path)[0] <= 0.5 * 0.01


def test_a_baseline_excludes_copies_of_tests(run: Run) -> None:
    pytest.importorskip("xdist")
    done = run("", "--dist", "each", "--tx", "2*popen", "--dpaudit-baseline", "b.json")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "--dpaudit-baseline counts each test once, so it excludes --dist=each" in done.err


def test_a_test_that_runs_again_makes_no_audit_again(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(RERUN)
    code = """
seen = []

def test_it(dpaudit):
    seen.append(audited(dpaudit))
    assert len(seen) == 2  # fails at the first attempt
    assert seen[0] is seen[1]

attempts = []

def test_another_claim(dpaudit):
    attempts.append(1)
    audited(dpaudit, GaussianDP(float(len(attempts))))
    assert len(attempts) == 2
"""
    done = run(AUDITS + code, "--dpaudit-false-alarm", "0.01", "--dpaudit-baseline", "b.json")
    assert done.counts == {"passed": 2}, done.out
    assert len(levels(pytester.path)) == 3
    assert sum(levels(pytester.path)) <= 0.01
    assert re.search(r"2 audits: \S+ 2 no violation found", done.out)


def test_a_violation_is_not_undone_by_another_attempt(run: Run, pytester: pytest.Pytester) -> None:
    """The mechanism reveals its dataset in 200 runs, and keeps the claim afterwards."""
    pytester.makeconftest(RERUN)
    code = """
runs = []

def reveals(dataset, rng):
    runs.append(1)
    return float(own.normal(9 * sum(dataset) * (len(runs) < 400), 1.0))

def test_it(dpaudit):
    dpaudit.assert_private(reveals, claim=CLAIM, pairs=BIT, attacks="threshold", trials=200)
"""
    done = run(AUDITS + code)
    assert done.counts == {"failed": 1}, done.out
    assert len(levels(pytester.path)) == 1
