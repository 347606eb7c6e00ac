"""Audits of dependent runs: when the dependence is detected, and the verdict in this case."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, Pair, PureDP, Verdict, audit, batched
from dpaudit.catalogue import Gaussian
from dpaudit.inference.independence.signs import FIRST_CHECKPOINT
from dpaudit.running import sampler

PAIR = Pair([0], [1])
Rng = np.random.Generator


class Counted:
    """A mechanism that counts its runs on each dataset."""

    def __init__(self, scale: float) -> None:
        self.scale, self.runs = scale, [0, 0]

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        self.runs[dataset[0]] += 1
        return float(dataset[0] + self.scale * rng.normal())


def test_an_early_violation_is_followed_by_runs_that_test_independence_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails by chance < 1 in 10**6: the datasets are 20 standard deviations apart."""
    mechanism = Counted(0.05)
    options: dict[str, Any] = {"attacks": "median_clipped", "seed": 0, "confirm": "never"}
    result = audit(mechanism, PureDP(1.0), PAIR, trials=1000, **options)
    assert result.violated
    assert result.trials_used < FIRST_CHECKPOINT
    assert mechanism.runs == [FIRST_CHECKPOINT, FIRST_CHECKPOINT]
    assert result.environment["runs after the evidence"] == FIRST_CHECKPOINT - result.trials_used
    limited = Counted(0.05)
    assert audit(limited, PureDP(1.0), PAIR, trials=40, **options).violated
    assert limited.runs == [40, 40]
    monkeypatch.setattr(sampler, "called_elsewhere", lambda function, tasks, jobs: [function(task) for task in tasks])
    assert audit(Counted(0.05), PureDP(1.0), PAIR, trials=1000, jobs=2, **options).violated
    late = Counted(0.7)
    used = audit(late, PureDP(1.0), PAIR, trials=2000, **options)
    assert late.runs == [used.trials_used] * 2
    assert "runs after the evidence" not in used.environment


def test_runs_that_fail_after_the_evidence_change_nothing() -> None:
    """Fails by chance < 1 in 10**6: the datasets are 20 standard deviations apart."""

    class Breaks(Counted):
        def __call__(self, dataset: list[int], rng: Rng) -> float:
            if self.runs[dataset[0]] > 35:
                raise OSError("gone")
            return super().__call__(dataset, rng)

    result = audit(Breaks(0.05), PureDP(1.0), PAIR, attacks="median_clipped", trials=1000, seed=0)
    assert result.trials_used < 35
    assert result.violated


def test_an_audit_with_too_few_runs_for_a_test_of_independence_says_so() -> None:
    """The seed is fixed."""
    words = "no test checked whether runs are independent: fewer than 30 runs per dataset (pair "
    options: dict[str, Any] = {"attacks": "threshold", "seed": 0, "confirm": "never"}
    for trials, untested in ((29, 1), (30, 0)):
        result = audit(Counted(0.05), PureDP(1.0), PAIR, trials=trials, **options)
        assert result.violated
        assert sum(warning.startswith(words) for warning in result.warnings) == untested
    several = audit(Counted(0.05), PureDP(1.0), [PAIR] * 3, trials=45, **options)
    assert several.violated
    (warning,) = (one for one in several.warnings if one.startswith(words.removesuffix("pair ")))
    assert re.search(r"\([23] of 3 pairs, the first is \[0\] \| \[1\]\)$", warning)
    few = audit(Counted(1.0), PureDP(1.0), PAIR, trials=10, **options)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert not any(warning.startswith(words) for warning in few.warnings)  # nothing is certified


class Walk:
    """A mechanism that ignores its data, and adds noise to its last output on the same dataset."""

    def __init__(self) -> None:
        self.at = [0.0, 0.0]

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        self.at[dataset[0]] += rng.normal()
        return self.at[dataset[0]]


def test_an_early_violation_in_dependent_runs_is_none() -> None:
    """The seed is fixed.  The evidence suffices after 23 runs, which are too few to detect their dependence."""
    result = audit(Walk(), PureDP(1.0), PAIR, attacks="logistic", trials=1000, seed=21, confirm="never")
    assert result.trials_used == 23
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid


def test_rare_outcomes_of_independent_runs_do_not_make_an_audit_inconclusive() -> None:
    """Fails by chance < 1 in 10**6; the seed is fixed.  Once 24 of 200 such audits were inconclusive."""

    class Rare:
        def sample(self, dataset: list[int], n: int, rng: Rng) -> Any:
            return (rng.random(n) < 1e-3).astype(int)

    result = audit(Rare(), PureDP(1.0), PAIR, trials=4000, seed=0, attacks="median_clipped", method="fixed")
    assert result.verdict is Verdict.NO_VIOLATION


def test_dependence_that_shows_in_a_later_part_of_a_long_audit_is_noticed() -> None:
    """The first 4,000 runs are independent.  The seeds are fixed."""

    class Late:
        def __init__(self) -> None:
            self.runs = 0

        def sample(self, dataset: list[int], n: int, rng: Rng) -> Any:
            self.runs += n
            return dataset[0] + rng.normal(size=n) + 2.0 * (self.runs > 40_000)

    result = audit(Late(), GaussianDP(3.0), PAIR, trials=40_000, seed=0, attacks="median_clipped", method="fixed")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("drift" in words for words in result.warnings)


def test_observed_times_may_drift_and_outputs_may_not() -> None:
    """The seeds are fixed."""

    class Stored:
        def __init__(self) -> None:
            self.last = 0.0

        def __call__(self, dataset: list[int], rng: Rng) -> float:
            self.last = 0.95 * self.last + rng.normal()
            return self.last

    result = audit(Stored(), GaussianDP(3.0), PAIR, trials=300, seed=0, attacks="median_clipped", observe_time=True)
    assert result.verdict is Verdict.INCONCLUSIVE
    sound = audit(Gaussian(1.0), GaussianDP(3.0), PAIR, trials=300, seed=0, attacks="median_clipped")
    assert sound.bounds_valid


def audited(sample: Callable[..., Any], claim: Any = None) -> Any:
    options: dict[str, Any] = {"attacks": "median_clipped", "trials": 1000, "seed": 0, "confirm": "never"}
    return audit(batched(sample), claim or GaussianDP(3.0), PAIR, **options)


def test_a_mechanism_that_ignores_its_seed_voids_the_guarantee() -> None:
    """The mechanism draws the same noise in every call."""

    def reseeded(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        return dataset[0] + np.random.default_rng(42).normal(size=n)

    result = audited(reseeded)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("no guarantee holds" in warning for warning in result.warnings)
    assert not result.bounds_valid
    assert result.mu_lower == result.epsilon_lower(1e-5) == 0.0
    assert result.p_value == 1.0


def test_state_between_runs_voids_the_guarantee() -> None:
    calls = {"n": 0}

    def drifting(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        calls["n"] += n
        return dataset[0] + calls["n"] / 1000 + rng.normal(size=n)

    result = audited(drifting)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("drift" in warning or "second half" in warning for warning in result.warnings)


def test_a_violation_seen_in_dependent_runs_is_none() -> None:
    def shared(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        return dataset[0] + np.repeat(rng.normal(size=n // 10 + 1), 10)[:n]

    assert audited(shared, PureDP(0.5)).verdict is Verdict.INCONCLUSIVE


def test_an_honest_mechanism_is_not_suspected() -> None:
    result = audited(lambda dataset, n, rng: dataset[0] + rng.normal(size=n))
    assert result.verdict is Verdict.NO_VIOLATION
    assert result.warnings == ()


def test_outputs_that_do_not_depend_on_the_dataset_are_named() -> None:
    """The seed is fixed."""

    def named(scale: float, trials: int = 600, method: str = "fixed") -> bool:
        release = batched(lambda dataset, n, rng: scale * dataset[0] + rng.normal(size=n))
        result = audit(release, GaussianDP(1.0), PAIR, trials=trials, seed=0, attacks="logistic", method=method)
        assert result.verdict is Verdict.NO_VIOLATION
        return any("check that the outputs depend on the dataset" in warning for warning in result.warnings)

    assert named(0.0)
    assert named(0.0, method="sequential")
    assert not named(0.0, trials=300)  # too few runs for a statement about the mechanism
    assert not named(0.3)  # its bound on mu is 0, too, but the attack predicts better than a guess
