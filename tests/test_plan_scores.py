"""The number of scores that refute a claim with a given probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import GaussianDP, PureDP, audit_scores, plan_scores
from dpaudit.engine.plan_scores import fewest_scores
from dpaudit.engine.score_design import Inclusion, Independence
from dpaudit.inference.scores.dependence import half_by_chance

from .scored import CHOICES


@pytest.mark.parametrize(
    ("independence", "truth", "inclusion"),
    [
        pytest.param("runs", 1.6, "coins", marks=pytest.mark.slow),
        pytest.param(None, 3.0, "coins", marks=pytest.mark.slow),
        pytest.param(None, 4.0, "fixed_number", marks=pytest.mark.slow),
    ],
)
def test_the_number_of_scores_is_enough(independence: Any, truth: float, inclusion: Any) -> None:
    """Audits scores at the planned number, and at a third of it.  Fails by chance < 1 in 10**6 if plans are right."""
    n = plan_scores(
        "gaussian(mu=1)", GaussianDP(truth), independence=independence, included_at_random=inclusion, confidence=0.95
    )
    assert n is not None
    rng, audits, found = np.random.default_rng(2), 40, []
    fixed = independence == "runs" or inclusion == "fixed_number"
    for size in (n, n // 3):
        refuted = 0
        for _ in range(audits):
            included = rng.permutation(size) >= size // 2 if fixed else rng.random(size) < 0.5
            scores = rng.normal(truth * included)
            evidence = audit_scores(
                scores[~included],
                scores[included],
                "gaussian(mu=1)",
                independence=independence,
                included_at_random=inclusion,
                confidence=0.95,
            )
            refuted += evidence.violated
        found.append(refuted)
    assert found[0] >= binom.ppf(1e-6, audits, 0.9)
    assert found[1] <= 0.9 * audits


def test_a_larger_violation_needs_fewer_scores_and_a_weaker_assumption_more() -> None:
    numbers = [plan_scores(PureDP(0.5), PureDP(epsilon), independence="canaries") for epsilon in (2.0, 4.0)]
    assert numbers == sorted(numbers, reverse=True)  # type: ignore[type-var]
    strong, weak = (
        plan_scores("gaussian(mu=1)", GaussianDP(3.0), independence=independence)  # type: ignore[arg-type]
        for independence in CHOICES[1:]
    )
    assert strong is not None
    assert weak is not None
    assert strong < weak


def test_nothing_to_refute_needs_no_number_of_scores() -> None:
    assert plan_scores("gaussian(mu=1)", "gaussian(mu=1)", independence="runs") is None
    assert plan_scores("gaussian(mu=1)", "gaussian(mu=0.5)") is None


@pytest.mark.parametrize("independence", CHOICES)
def test_wrong_arguments_are_explained(independence: Any) -> None:
    for power in (0.0, 0.9999, 1):
        with pytest.raises(ValueError, match=rf"power must lie in \(0, 0\.97\], got {power}"):
            plan_scores("gaussian(mu=1)", "gaussian(mu=2)", independence=independence, power=power)
    with pytest.raises(ValueError, match="confidence"):
        plan_scores("gaussian(mu=1)", "gaussian(mu=2)", independence=independence, confidence=99)


def test_coins_often_include_half_of_few_canaries() -> None:
    assert half_by_chance(4) == pytest.approx(6 / 16)
    assert half_by_chance(5) == pytest.approx(20 / 32)


@pytest.mark.parametrize("independence", ["runs", None])
def test_the_fewest_scores_refute_if_all_guesses_are_right(independence: Any) -> None:
    n = fewest_scores(PureDP(1.0), independence=independence, confidence=0.95)
    assert n is not None

    def refuted(n: int) -> bool:
        n0 = n // 2 if independence == "runs" else (n + 1) // 2 + 1  # fair coins, not exactly half
        perfect = np.arange(float(n))
        return audit_scores(
            perfect[:n0], perfect[n0:], PureDP(1.0), independence=independence, confidence=0.95
        ).violated

    assert refuted(n + 4)
    assert not refuted(n // 2)


@pytest.mark.parametrize(("independence", "tries"), [("runs", 20), ("canaries", 20), (None, 1)])
def test_rare_events_are_told_from_the_smaller_side(independence: Independence, tries: int) -> None:
    """An event that reveals an included canary has one chance for each included canary."""
    scores = np.random.default_rng(0).normal(size=500)
    inclusion: Inclusion = "coins" if independence == "runs" else "fixed_number"
    result = audit_scores(
        scores[20:], scores[:20], "gaussian(mu=1)", independence=independence, included_at_random=inclusion
    )
    assert result.detectable.rule_of_three_rate == pytest.approx(1 - 0.05 ** (1 / tries))


def test_a_result_says_how_many_scores_would_find_a_violation_by_a_fifth() -> None:
    scores = np.random.default_rng(0).normal(size=401)
    found = audit_scores(scores[200:], scores[:200], "gaussian(mu=1)", independence="canaries", confidence=0.95)
    words = found.detectable.needed
    assert words.endswith("would find gaussian(mu=1.2)")
    number = int(words.split()[1].replace(",", ""))
    planned = plan_scores("gaussian(mu=1)", "gaussian(mu=1.2)", independence="canaries", confidence=0.95)
    assert planned is not None
    assert planned / 2 <= number <= 2 * planned
