"""Repeated tests and repeated randomness add no evidence to the baseline and no budget.  Seeds are fixed."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import _dpaudit_pytest
from dpaudit.running.identity import Beginning
from dpaudit.testing.messages import summary

pytest_plugins = ["pytester"]
Run = Callable[..., Any]

FILE = ("--dpaudit-baseline", "b.json", "--dpaudit-trials", "150")

GLOBAL = """
import numpy as np

@pytest.fixture(autouse=True)
def the_same_numbers_in_every_run():
    np.random.seed(0)

def release(dataset, rng):
    return sum(dataset) + 0.9 * np.random.normal()

def test_it(dpaudit):
    dpaudit.assert_private(release, claim=CLAIM, pairs=BIT, attacks="logistic")
    assert np.random.normal() == 1.764052345967664  # the first draw after seed(0), despite the audit's draws
"""

OWN_GENERATOR = """
import numpy as np

def test_it(dpaudit):
    own = np.random.default_rng(5)
    release = lambda dataset, rng: sum(dataset) + 0.9 * own.normal()
    dpaudit.assert_private(release, claim=CLAIM, pairs=BIT, attacks="logistic")
"""


def entry(folder: Path) -> dict[str, Any]:
    (found,) = json.loads((folder / "b.json").read_text())["tests"].values()
    return dict(found)


def test_a_fixture_that_seeds_numpy_does_not_repeat_the_draws_of_an_earlier_session(
    run: Run, pytester: pytest.Pytester
) -> None:
    nights = [run(GLOBAL, *FILE), run(None, *FILE)]
    assert [night.counts for night in nights] == [{"passed": 1}] * 2
    assert len(entry(pytester.path)["outputs"]) == 8  # two of each dataset in each of two sessions; all differ
    for night in nights:
        assert "warning: test_project.py::test_it: the mechanism uses global random state" in night.out
        assert "no new evidence" not in night.out


def test_a_session_with_the_outputs_of_an_earlier_one_adds_no_evidence(run: Run, pytester: pytest.Pytester) -> None:
    """The mechanism adds fresh noise to that of a private generator with the same seed in every session."""
    run(OWN_GENERATOR.replace("0.9 * own.normal()", "0.75 * own.normal() + 1e-9 * rng.normal()"), *FILE)
    first = entry(pytester.path)
    won = float(first["chains"][0]["log_invested"])
    assert won > math.log(1 / 2)  # so that a second count would add evidence
    again = run(None, *FILE)
    assert "no new evidence: test_project.py::test_it repeats runs of an earlier session" in again.out
    second = entry(pytester.path)
    assert set(second["outputs"]) & set(first["outputs"])
    assert len(second["outputs"]) == 6  # the exact fingerprints of two datasets differ
    assert float(second["chains"][0]["log_invested"]) <= math.log(math.exp(won) + 1 / 6) + 1e-12


def test_a_violation_on_the_outputs_of_an_earlier_session_is_inconclusive(run: Run, pytester: pytest.Pytester) -> None:
    """After --dpaudit-restart the runs that refuted a claim must not refute it a second time."""
    wrong = OWN_GENERATOR.replace("0.9", "0.2")
    assert "VIOLATION of gaussian(mu=1)" in run(wrong, *FILE).out
    again = run(None, *FILE, "--dpaudit-restart")
    assert again.counts == {"failed": 1}
    assert "INCONCLUSIVE about gaussian(mu=1)" in again.out
    assert "the first outputs equal the first outputs of an earlier run" in again.out


@pytest.mark.slow
def test_a_copy_of_a_baseline_that_is_used_twice_adds_no_evidence(run: Run, pytester: pytest.Pytester) -> None:
    """Seeds come from the number of the session, so the copy makes the same runs."""
    audited = 'dpaudit.assert_private(noise(0.9), claim=CLAIM, pairs=BIT, attacks="threshold")'
    run(f"\ndef test_it(dpaudit):\n    {audited}\n", *FILE)
    run(None, *FILE)
    values = json.loads((pytester.path / "b.json").read_text())
    values["runs"] = 1  # like a copy of the first session's file merged with a later one
    (pytester.path / "b.json").write_text(json.dumps(values))
    assert "no new evidence" in run(None, *FILE).out


def fingerprints(outputs0: Any, outputs1: Any, size: int = 7) -> list[str]:
    beginning = Beginning()
    for start in range(0, len(outputs0), size):
        beginning.add(0, (outputs0[start : start + size], outputs1[start : start + size]))
    return beginning.fingerprints()


def test_fingerprints_of_first_outputs_depend_on_neither_blocks_nor_length() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 100))
    assert fingerprints(x, y) == fingerprints(x[:60], y[:60], size=60)
    assert len(fingerprints(x, y)) == 4
    assert not set(fingerprints(x, y)) & set(fingerprints(y, x))  # the side is part of the fingerprint
    assert set(fingerprints(x, y)) & set(fingerprints(x, 2 * y))  # one equal side is enough


def test_the_order_of_first_numbers_reveals_randomness_that_was_shifted_scaled_or_overlaid() -> None:
    """Fresh noise of 1e-9 exchanges two of 20 numbers with probability below 1e-6; the seed is fixed."""
    rng = np.random.default_rng(0)
    x, tiny = rng.normal(size=(30, 2)), 1e-9 * rng.normal(size=(30, 2))
    for first, later in ((x, x + tiny), (x[:, 0], 3 * x[:, 0] + tiny[:, 0] - 1), (x[:, 0].tolist(), x[:, 0] + 5)):
        kept = set(fingerprints(first, first)) & set(fingerprints(later, later))
        assert {text.split(":")[0] for text in kept} == {"order 0", "order 1"}
    assert not set(fingerprints(x, x)) & set(fingerprints(-x, -x))
    assert not set(fingerprints(x, x)) & set(fingerprints(x[1:], x[1:]))


def test_the_orders_of_fresh_numbers_differ_and_few_values_have_none() -> None:
    """Two of 4,000 orders of 20 numbers are equal with probability below 10**-11.  The seed is fixed."""
    rng = np.random.default_rng(0)
    found = [text for _ in range(1000) for text in fingerprints(*rng.normal(size=(2, 20)))]
    assert len(set(found)) == len(found) == 4000
    for outputs in (rng.random(60) < 0.5, rng.integers(2, size=60), ["a", "b"] * 30, [None, 1.0] * 30, np.zeros(60)):
        assert not [text for text in fingerprints(outputs, outputs) if text.startswith("order")]
    assert not [text for text in fingerprints(*rng.normal(size=(2, 19))) if text.startswith("order")]


def test_fingerprints_of_fresh_coins_differ_and_of_constants_do_not() -> None:
    """There are 1,000 pairs of sequences of 60 coins.  The seed is fixed; another one fails by chance < 1 in 10**5."""
    rng = np.random.default_rng(0)
    found = [text for _ in range(1000) for text in fingerprints(*(rng.random((2, 60)) < 0.5))]
    assert len(set(found)) == len(found) == 2000
    assert fingerprints([0] * 50, ["a"] * 50) == fingerprints([0] * 50, ["a"] * 50)
    assert fingerprints([0] * 50, ["a"] * 50) != fingerprints([0] * 50, ["b"] * 50)


def test_drift_rounds_bounds_to_their_safe_side() -> None:
    record = {
        "name": "t",
        "claim": "gaussian(mu=1)",
        "verdict": "no violation found",
        "elapsed_s": 0.0,
        "trials": 10**6,
    }
    record |= {"mu_lower": 0.9999, "mu_lower_before": 0.50001, "warnings": [], "repeats": False}
    (line,) = [words for words in summary([record], tests=1, false_alarm=0.01, runs=2) if words.startswith("drift")]
    assert "certified mu >= 0.999, but in earlier runs at most 0.501" in line


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
