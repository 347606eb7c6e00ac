"""Runs that raise, hang or die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError, Pair, PureDP, Verdict, audit, batched
from dpaudit.running.mechanisms import PythonMechanism

PAIR = Pair([0], [1], relation="replace_one")


@pytest.mark.parametrize(
    ("name", "jobs"), [("raises_now_and_then", 1), ("raises_now_and_then", 2), ("Raises", 1), ("raises_in_a_batch", 1)]
)
def test_runs_that_raise_are_outcomes_if_the_user_says_so(name: str, jobs: int) -> None:
    """d1 raises in half of its runs and d0 never does.  Fails by chance < 1 in 10**6."""
    mechanism = PythonMechanism(f"{__file__}:{name}", {} if name == "Raises" else None)
    given: dict[str, Any] = {"trials": 500, "attacks": "plug_in_ratio", "confidence": 0.95, "confirm": "never"}
    seen = audit(mechanism, PureDP(1.0), PAIR, failures="outcome", jobs=jobs, seed=1, **given)
    assert seen.violated
    assert seen.witness is not None
    assert seen.witness.region == "type of output is raised OverflowError"
    with pytest.raises(MechanismError) if name != "raises_now_and_then" else nullcontext():
        unseen = audit(mechanism, PureDP(1.0), PAIR, seed=0, **given)
        assert unseen.verdict is Verdict.INCONCLUSIVE
        assert "raised OverflowError: too large on run" in unseen.warnings[0]


def raises_now_and_then(dataset: list[int], rng: np.random.Generator) -> float:
    if dataset[0] and rng.random() < 0.5:
        raise OverflowError("too large")
    return float(rng.normal())


class Raises:
    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> list[float]:
        return [raises_now_and_then(dataset, rng) for _ in range(n)]


@batched
def raises_in_a_batch(dataset: list[int], n: int, rng: np.random.Generator) -> list[float]:
    return [raises_now_and_then(dataset, rng) for _ in range(n)]


def test_a_wrong_number_of_outputs_is_no_outcome() -> None:
    many = batched(lambda dataset, n, rng: [0.0] * (n + dataset[0]))
    with pytest.raises(MechanismError, match="returned 2 outputs instead of 1 on run 0 of d1"):
        audit(many, PureDP(1.0), PAIR, trials=100, failures="outcome", seed=0)


@pytest.mark.chance
def test_a_run_that_hangs_is_ended() -> None:
    def hangs(dataset: list[float], rng: np.random.Generator) -> float:
        value = rng.normal()
        while dataset[0] and value > 1.5:
            try:
                time.sleep(1)
            except Exception:
                continue
        return float(value)

    began = time.monotonic()
    result = audit(hangs, PureDP(1.0), Pair([0], [1]), trials=500, timeout=0.5, seed=0, attacks="median_clipped")
    assert time.monotonic() - began < 120  # without the timeout, the run would never end
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "took longer than 0.5 s on run" in result.warnings[0]
    assert result.trials_used > 0
    terms: dict[str, Any] = {"timeout": 0.02, "failures": "outcome", "observe_time": True, "attacks": "plug_in_ratio"}
    seen = audit(hangs, PureDP(1.0), Pair([0], [1]), trials=20, seed=0, confidence=1 - 1e-7, **terms)
    assert seen.trials_used == 20

    @batched
    def slow(dataset: Any, n: int, rng: np.random.Generator) -> list[float]:
        time.sleep(5)
        return [0.0] * n

    with pytest.raises(MechanismError, match=r"took longer than 0\.1 s in the batch of 10 runs from run 0"):
        audit(slow, PureDP(1.0), PAIR, trials=100, timeout=0.1, seed=0, confidence=0.95)
    with pytest.raises(ValueError, match="timeout must be above 0"):
        audit(slow, PureDP(1.0), PAIR, timeout=0, seed=0, confidence=0.95)


@pytest.mark.chance
def test_a_worker_that_dies_ends_the_audit_and_loses_nothing() -> None:
    mechanism = PythonMechanism(f"{__file__}:dies_late")
    result = audit(mechanism, PureDP(1.0), Pair([0], [1]), trials=100, jobs=2, seed=0, attacks="median_clipped")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.trials_used >= 10
    assert "could not be run in other processes (TerminatedWorkerError" in result.warnings[0]


def dies_late(dataset: list[int], rng: np.random.Generator) -> float:
    time.sleep(0.01)
    if multiprocessing.parent_process() is not None or os.environ.get("LOKY_WORKER_NAME"):
        os.kill(os.getpid(), signal.SIGKILL)
    return float(rng.normal())
