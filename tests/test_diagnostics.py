"""Dependent runs are detected, and independent runs are not suspected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, Pair, PureDP, Verdict, audit, batched
from dpaudit.inference.independence import Memory, coupling, dependence, drift
from dpaudit.values.content import key

PAIR = Pair([0], [1])


def signs(outputs: Any) -> list[str]:
    return dependence([key(output) for output in outputs], np.asarray(outputs, dtype=np.float64))


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.normal(size=2000),
        lambda rng: rng.standard_cauchy(2000),
        lambda rng: rng.integers(0, 2, 2000).astype(float),
        lambda rng: rng.poisson(3, 2000).astype(float),
        lambda rng: np.where(rng.random(2000) < 0.01, 1.0, 0.0),
        lambda rng: np.round(rng.normal(size=2000), 2),
        lambda rng: np.ones(2000),
        lambda rng: np.where(rng.random(2000) < 0.3, np.inf, rng.normal(size=2000)),
    ],
    ids=["normal", "cauchy", "coin", "poisson", "rare", "rounded", "constant", "infinite"],
)
def test_independent_runs_are_not_suspected(draw: Callable[[np.random.Generator], Any]) -> None:
    """Fails by chance < 1 in 10**6: 100 tests of 10**-9 each, some approximate."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        first, second = draw(rng), draw(rng)
        assert signs(first) == []
        assert drift(first) == []
        assert coupling(first, second) == []


def test_dependence_of_many_kinds_is_noticed() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=2000)
    assert "runs earlier" in signs(np.tile(noise[:100], 20))[0]
    assert (
        "500 of 500 outputs equal the output 500 runs earlier" in signs(np.concatenate([noise[:500], noise[:500]]))[0]
    )
    walk = np.convolve(rng.normal(size=2200), np.ones(5), "valid")[:2000]
    assert any("correlated" in words for words in signs(walk))
    assert any("drift" in words for words in signs(noise + np.linspace(0, 2, 2000)))
    assert any("second half" in words for words in signs(noise + (np.arange(2000) > 1000)))
    assert "share their randomness" in coupling(noise, noise + 1)[0]
    assert signs(np.tile(noise[:10], 2)) == []  # too few outputs for a test


def test_few_outputs_are_remembered_whatever_the_number_of_trials() -> None:
    memory = Memory()
    for start in range(0, 100_000, 777):
        memory.add(np.arange(start, min(start + 777, 100_000)))
    assert memory.first == list(range(4000))
    assert len(memory.spread) <= 4000
    assert memory.spread[0] == 0
    assert memory.spread[-1] > 95_000
    assert len(set(np.diff(memory.spread))) == 1


def audited(sample: Callable[..., Any], claim: Any = None) -> Any:
    options: dict[str, Any] = {"trials": 3000, "seed": 0, "confidence": 0.95, "confirm": "never"}
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


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_outputs_that_do_not_depend_on_the_dataset_are_named(method: str) -> None:
    """The seed is fixed."""

    def named(scale: float, trials: int = 600) -> bool:
        release = batched(lambda dataset, n, rng: scale * dataset[0] + rng.normal(size=n))
        result = audit(release, GaussianDP(1.0), PAIR, trials=trials, seed=0, attacks="logistic", method=method)
        assert result.verdict is Verdict.NO_VIOLATION
        return any("check that the outputs depend on the dataset" in warning for warning in result.warnings)

    assert named(0.0)
    assert not named(0.0, trials=300)  # too few runs for a statement about the mechanism
    assert not named(0.3)  # its bound on mu is 0, too, but the attack predicts better than a guess
    assert not named(0.9)
