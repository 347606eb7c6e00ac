"""The number of scores that refute a claim with a given probability."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from dpaudit import GaussianDP, PureDP, audit_one_run, audit_scores, parse_claim, plan_scores
from dpaudit.engine.plan_scores import planned_evidence
from dpaudit.engine.score_guesses import Guesses, Inclusion, Independence, count_guesses
from dpaudit.inference.scores.dependence import half_by_chance, half_included

from .scored import CHOICES


@functools.cache
def planned(truth: float, independence: Any, inclusion: Any = "coins") -> int | None:
    return plan_scores(
        "gaussian(mu=1)",
        GaussianDP(truth),
        independence=independence,
        included_at_random=inclusion,
        confidence=0.95,
    )


@pytest.mark.parametrize(
    ("independence", "truth", "inclusion", "most"),
    [
        ("runs", 1.5, "coins", 0.96),
        ("canaries", 2.0, "coins", 0.97),
        pytest.param("canaries", 4.0, "coins", 0.995, marks=pytest.mark.slow),  # the power of few grows in large steps
        (None, 3.0, "coins", 0.96),
        ("canaries", 1.5, "fixed_number", 0.96),
        pytest.param(None, 3.0, "fixed_number", 0.995, marks=pytest.mark.slow),  # all guesses must be right
    ],
)
def test_the_number_of_scores_is_enough_and_not_much_too_large(
    independence: Any, truth: float, inclusion: Any, most: float
) -> None:
    """Simulates 2,000 audits of likelihood ratios at the planned number.  Fails by chance < 1 in 10**6."""
    n = planned(truth, independence, inclusion)
    assert n is not None
    rng, refuted, fewest = np.random.default_rng(2), 0, {}
    fixed = independence == "runs" or inclusion == "fixed_number"
    for _ in range(2000):
        included = rng.permutation(n) >= n // 2 if fixed else rng.random(n) < 0.5
        scores, n1 = rng.normal(truth * included), int(included.sum())
        half = half_included(n - n1, n1)
        evidence, _ = count_guesses(
            scores[~included], scores[included], independence, None, rng, half=half, inclusion=inclusion
        )
        if half not in fewest:
            fewest[half] = evidence.least_right(GaussianDP(1.0), confidence=0.95)
        least = fewest[half]
        refuted += least is not None and evidence.right >= least
    assert binom.ppf(1e-6, 2000, 0.9) <= refuted <= binom.ppf(1 - 1e-6, 2000, most)


def test_a_larger_violation_needs_fewer_scores_and_a_weaker_assumption_more() -> None:
    numbers = [plan_scores(PureDP(0.5), PureDP(epsilon), independence="canaries") for epsilon in (2.0, 3.0, 4.0)]
    assert numbers == sorted(numbers, reverse=True)  # type: ignore[type-var]
    strong, weak = (planned(3.0, independence) for independence in ("canaries", None))
    assert strong is not None
    assert weak is not None
    assert strong < weak


def test_nothing_to_refute_needs_no_number_of_scores() -> None:
    assert plan_scores("gaussian(mu=1)", "gaussian(mu=1)", independence="runs") is None
    assert plan_scores("gaussian(mu=1)", "gaussian(mu=0.5)", independence=None) is None


@pytest.mark.parametrize("independence", ["canaries", None])
def test_a_power_that_the_simulation_cannot_show_is_refused(independence: Any) -> None:
    with pytest.raises(ValueError, match=r"power must be at most 0\.999 for canaries, got 0\.9999"):
        plan_scores("gaussian(mu=1)", "gaussian(mu=4)", independence=independence, power=0.9999)


@pytest.mark.parametrize("independence", CHOICES)
def test_wrong_arguments_are_explained(independence: Any) -> None:
    with pytest.raises(ValueError, match=r"power must lie in \(0, 1\), got 1"):
        plan_scores("gaussian(mu=1)", "gaussian(mu=2)", independence=independence, power=1)
    with pytest.raises(ValueError, match="confidence"):
        plan_scores("gaussian(mu=1)", "gaussian(mu=2)", independence=independence, confidence=99)
    with pytest.raises(ValueError, match="it was left out"):
        plan_scores("gaussian(mu=1)", "gaussian(mu=2)")


def test_coins_that_include_exactly_half_are_planned_for() -> None:
    """With few canaries, coins often include exactly half, and the audit must then allow for a fixed number."""
    arguments: Any = {"independence": "canaries", "confidence": 0.95}
    n = plan_scores("gaussian(mu=0.1)", "gaussian(mu=6)", **arguments)
    assert n is not None
    claim, truth = GaussianDP(0.1), GaussianDP(6.0)
    evidence = planned_evidence(n, claim, "canaries", "coins", half=True)
    least, usual = (
        planned_evidence(n, claim, "canaries", "coins", half=half).least_right(claim, confidence=0.95)
        for half in (True, False)
    )
    assert usual is not None
    rare = 0.0 if least is None else evidence.attained(truth, least)
    share = half_by_chance(n)
    assert (1 - share) * evidence.attained(truth, usual) + share * rare >= 0.9
    assert half_by_chance(4) == pytest.approx(6 / 16)
    assert half_by_chance(5) == pytest.approx(20 / 32)


CLAIM = "gaussian(mu=0.25)"


@pytest.mark.parametrize(
    ("independence", "power"), [(None, 0.5), (None, 0.99), pytest.param("canaries", 0.99, marks=pytest.mark.slow)]
)
def test_a_plan_of_few_canaries_is_enough(independence: Independence, power: float) -> None:
    """Fails by chance < 1 in 10**6: 1,000 audits that refute with `power`.

    Half of the guesses are about each side, so with very few canaries some guesses are certainly wrong.
    """
    n = plan_scores(CLAIM, "gaussian(mu=6)", independence=independence, confidence=0.99, power=power)
    assert n is not None
    rng, refuted, needed = np.random.default_rng(1), 0, {}
    for _ in range(1000):
        included = rng.random(n) < 0.5
        out, into = np.split(rng.normal(size=n) + 6.0 * np.sort(included), [n - included.sum()])
        half = half_included(len(out), len(into))
        evidence, _ = count_guesses(out, into, independence, None, rng, half=half)
        if half not in needed:
            needed[half] = evidence.least_right(parse_claim(CLAIM), confidence=0.99)
        least = needed[half]
        refuted += least is not None and evidence.right >= least
    assert refuted >= binom.ppf(1e-6, 1000, power)


@pytest.mark.parametrize(("claim", "numbers"), [(0.5, [30]), (1.0, [200]), (1.0, [40, 200])])
def test_guesses_about_all_canaries_detect_what_the_result_states(claim: float, numbers: list[int]) -> None:
    """Fails by chance < 1 in 10**6: 1,500 audits of randomised responses, which refute with probability 0.9 or more.

    The coins rarely leave half of the canaries on each side, so some guesses contradict their scores.
    """
    rng, m = np.random.default_rng(3), numbers[-1]
    guesses: Guesses = numbers if len(numbers) > 1 else m
    included = np.arange(m) < m // 2 + 3
    result = audit_one_run(rng.normal(size=m), included, f"pure(epsilon={claim})", guesses=guesses, confidence=0.95)
    truth = parse_claim(result.detectable.claim).epsilon(0.0)
    assert result.witness is not None
    right = np.zeros(1500)
    coins = rng.random((1500, m)) < 0.5
    likely = coins ^ (rng.random(coins.shape) > expit(truth))
    ranked = np.take_along_axis(coins, np.argsort(likely + rng.random(coins.shape), axis=1), axis=1)
    for number in numbers:
        right += (~ranked[:, : number // 2]).sum(axis=1) + ranked[:, m - (number - number // 2) :].sum(axis=1)
    assert np.count_nonzero(right >= result.witness.needed) >= binom.ppf(1e-6, 1500, 0.9)


@pytest.mark.parametrize("guesses", [None, 90])
def test_guesses_that_are_right_for_certain(guesses: int | None) -> None:
    """With guesses about 90 of 100 canaries, of which 70 were left out, at least 20 guesses are right."""
    out, into = np.random.default_rng(0).normal(size=10 * 70), np.random.default_rng(1).normal(4.0, size=10 * 30)
    run = (np.repeat(range(10), 70), np.repeat(range(10), 30))
    result = audit_scores(
        out, into, CLAIM, independence=None, included_at_random="fixed_number", guesses=guesses, run=run
    )
    assert result.p_value <= 1
    assert bool(result.detectable.claim) == (guesses is None)


@pytest.mark.parametrize(("independence", "tries"), [("runs", 20), ("canaries", 20), (None, 1)])
def test_rare_events_are_told_from_the_smaller_side(independence: Independence, tries: int) -> None:
    """An event that reveals an included canary has one chance for each included canary."""
    scores = np.random.default_rng(0).normal(size=500)
    inclusion: Inclusion = "coins" if independence == "runs" else "fixed_number"
    result = audit_scores(scores[20:], scores[:20], CLAIM, independence=independence, included_at_random=inclusion)
    assert result.detectable.rule_of_three_rate == pytest.approx(1 - 0.05 ** (1 / tries))
