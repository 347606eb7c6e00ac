"""The number of scores that refute a claim with a given probability."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import GaussianDP, PureDP, plan_scores
from dpaudit.engine.score_guesses import count_guesses

from .scored import CHOICES


@functools.cache
def planned(truth: float, independence: Any) -> int | None:
    return plan_scores("gaussian(mu=1)", GaussianDP(truth), independence=independence, confidence=0.95)


@pytest.mark.parametrize(("independence", "truth"), [("runs", 1.5), ("canaries", 1.5), (None, 3.0)])
def test_the_number_of_scores_is_enough_and_not_much_too_large(independence: Any, truth: float) -> None:
    """Simulates 2,000 audits of likelihood ratios at the planned number.  Fails by chance < 1 in 10**6."""
    n = planned(truth, independence)
    assert n is not None
    rng, refuted, least = np.random.default_rng(2), 0, None
    for _ in range(2000):
        included = np.arange(n) >= n // 2 if independence == "runs" else rng.random(n) < 0.5
        scores = rng.normal(truth * included)
        evidence, _ = count_guesses(scores[~included], scores[included], independence, None, rng)
        least = evidence.least_right(GaussianDP(1.0), confidence=0.95) if least is None else least
        refuted += least is not None and evidence.right >= least
    assert binom.ppf(1e-6, 2000, 0.9) <= refuted <= binom.ppf(1 - 1e-6, 2000, 0.96)


def test_a_larger_violation_needs_fewer_scores_and_a_weaker_assumption_more() -> None:
    numbers = [plan_scores(PureDP(0.5), PureDP(epsilon), independence="canaries") for epsilon in (0.7, 1.0, 2.0)]
    assert numbers == sorted(numbers, reverse=True)  # type: ignore[type-var]
    strong, weak = (planned(3.0, independence) for independence in ("canaries", None))
    assert strong is not None
    assert weak is not None
    assert strong < weak


def test_nothing_to_refute_needs_no_number_of_scores() -> None:
    assert plan_scores("gaussian(mu=1)", "gaussian(mu=1)", independence="runs") is None
    assert plan_scores("gaussian(mu=1)", "gaussian(mu=0.5)", independence=None) is None


@pytest.mark.parametrize("independence", CHOICES)
def test_wrong_arguments_are_explained(independence: Any) -> None:
    with pytest.raises(ValueError, match=r"power must lie in \(0, 1\), got 1"):
        plan_scores("gaussian(mu=1)", "gaussian(mu=2)", independence=independence, power=1)
    with pytest.raises(ValueError, match="confidence"):
        plan_scores("gaussian(mu=1)", "gaussian(mu=2)", independence=independence, confidence=99)
    with pytest.raises(ValueError, match="it was left out"):
        plan_scores("gaussian(mu=1)", "gaussian(mu=2)")
