"""Arguments, mechanisms and outputs that an audit refuses, or from which it learns nothing."""

import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, MechanismError, Pair, PureDP, Verdict, audit, batched
from dpaudit.catalogue import Gaussian
from dpaudit.engine.audit import Progress
from dpaudit.running.mechanisms import PythonMechanism

PAIR = Pair([0], [1], relation="replace_one")


def raising_at(trial: int) -> Callable[[Any, np.random.Generator], float]:
    calls = {"n": 0}

    def mechanism(dataset: Any, rng: np.random.Generator) -> float:
        calls["n"] += 1
        if calls["n"] == trial:
            raise ZeroDivisionError("the noise ran out")
        return float(dataset[0] + rng.normal())

    return mechanism


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": []}, "pairs must hold at least one Pair"),
        ({"attacks": "telepathy"}, "unknown attack 'telepathy'; attacks must be auto or among plug_in_ratio, "),
        ({"attacks": []}, "at least one attack"),
        ({"claim": "gaussian(mu=-1)"}, "mu must be finite and >= 0, got -1"),
    ],
)
def test_impossible_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"mechanism": Gaussian(1.0), "claim": GaussianDP(1.0), "pairs": PAIR, "seed": 0} | arguments
    with pytest.raises(ValueError, match=message):
        audit(**given)


def test_a_mechanism_that_raises_at_once_is_an_error() -> None:
    with pytest.raises(MechanismError, match="ZeroDivisionError: the noise ran out on run 0 of d0"):
        audit(raising_at(1), GaussianDP(1.0), PAIR, seed=0, confidence=0.95)


def test_a_mechanism_that_raises_late_ends_the_audit_and_keeps_the_trials() -> None:
    result = audit(raising_at(500), GaussianDP(1.0), PAIR, trials=5000, seed=0, attacks="median_clipped")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.stopped_by == "failure"
    assert 200 < result.trials_used < 251
    assert any("ZeroDivisionError: the noise ran out on run" in warning for warning in result.warnings)
    assert result.mu_lower > 0  # trials before the failure count


def test_an_output_that_cannot_be_read_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(MechanismError, match="register_encoder"):
        audit(lambda dataset, rng: object(), GaussianDP(1.0), PAIR, seed=0, confidence=0.95)


def test_a_batch_of_the_wrong_size_is_named() -> None:
    with pytest.raises(MechanismError, match="returned 9 outputs instead of 10"):
        audit(batched(lambda dataset, n, rng: np.zeros(n - 1)), GaussianDP(1.0), PAIR, seed=0, confidence=0.95)


def test_outputs_of_any_shape_are_compared() -> None:
    """Only the length of the output depends on the dataset.  Nothing is left to chance."""
    lengths = {0: 2, 1: 3}
    given: dict[str, Any] = {"trials": 150, "seed": 0, "confidence": 0.95, "confirm": 16, "attacks": "plug_in_ratio"}
    assert audit(lambda dataset, rng: np.zeros(lengths[dataset[0]]), GaussianDP(1.0), PAIR, **given).violated


def test_a_value_that_only_one_dataset_gives_refutes_pure_privacy() -> None:
    """The value may be nan or inf.  Fails by chance < 1 in 10**6."""
    attacks = ["logistic", "spline", "plug_in_ratio", "trees"]
    for leak in (math.nan, math.inf, -math.inf):

        @batched
        def leaking(dataset: list[int], n: int, rng: np.random.Generator, leak: float = leak) -> Any:
            outputs = rng.normal(0, 1, n)
            return np.where((rng.random(n) < 0.3) & (dataset == [1]), leak, outputs)

        result = audit(leaking, PureDP(0.1), PAIR, trials=5000, attacks=attacks, seed=2, confirm="never")
        assert result.violated, leak


def test_too_few_trials_are_inconclusive() -> None:
    for trials in (1, 9, 12):
        result = audit(Gaussian(1.0), GaussianDP(1.0), PAIR, trials=trials, attacks="logistic", seed=0)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert result.trials_used == trials
        str(result)


def test_an_interruption_keeps_what_there_is() -> None:
    seen: list[Progress] = []

    def stop(progress: Progress) -> None:
        seen.append(progress)
        if progress.trials >= 100:
            raise KeyboardInterrupt

    given: dict[str, Any] = {"trials": 5000, "attacks": "median_clipped", "seed": 0}
    result = audit(Gaussian(1.0), GaussianDP(1.0), PAIR, progress=stop, **given)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.stopped_by == "interruption"
    assert result.trials_used == seen[-1].trials < 200
    assert seen[-1].allowed == 5000


def test_more_pairs_than_a_result_may_count_are_refused_before_the_first_run() -> None:
    calls: list[object] = []
    with pytest.raises(ValueError, match="pairs must hold at most 10,000 pairs, got 10,001"):
        audit(lambda dataset, rng: calls.append(dataset), PureDP(1.0), [Pair([0], [1])] * 10_001, trials=20, seed=0)
    assert not calls


# --- runs that raise, hang or die


@pytest.mark.parametrize(
    ("name", "jobs"), [("raises_now_and_then", 1), ("raises_now_and_then", 2), ("Raises", 1), ("raises_in_a_batch", 1)]
)
def test_runs_that_raise_are_outcomes_if_the_user_says_so(name: str, jobs: int) -> None:
    """d1 raises in half of its runs and d0 never does.  Fails by chance < 1 in 10**6."""
    mechanism = PythonMechanism(f"{__file__}:{name}", {} if name == "Raises" else None)
    given: dict[str, Any] = {"trials": 500, "attacks": "plug_in_ratio", "confidence": 0.95, "confirm": "never"}
    seen = audit(mechanism, PureDP(1.0), PAIR, failures="outcome", jobs=jobs, seed=1, **given)
    assert seen.violated
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
