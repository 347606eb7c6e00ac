"""Levels of audits of scores: thousands of simulated audits, by the number of right guesses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, hypergeom

from dpaudit import GaussianDP, PureDP
from dpaudit.engine.learned_scores import learned_scores, split_outputs
from dpaudit.engine.score_guesses import count_guesses
from dpaudit.inference.scores import confident
from dpaudit.result.evidence import CanaryScoresEvidence

from .scored import CHOICES, Arrays, Memory, of_canaries, of_runs, words_and_numbers


def in_common_state(m: int, rng: np.random.Generator) -> Arrays:
    """Return scores of canaries with a common state that reveals either nothing or much; the mixture satisfies G_1."""
    included = rng.random(m) < 0.5
    right = rng.random(m) < (TELLS if rng.random() < STATE else 0.5)
    scores = np.where(right == included, 1.0, -1.0)
    return scores[~included], scores[included]


STATE, TELLS = 0.3937, float(expit(1.5))  # the probability of the revealing state, and of a right score in it


def test_the_common_state_keeps_the_claim() -> None:
    epsilon = np.linspace(0.0, 3.0, 301)
    assert np.all(STATE * np.asarray(PureDP(1.5).delta(epsilon)) <= np.asarray(GaussianDP(1.0).delta(epsilon)))


def rounded(scores: Arrays) -> Arrays:
    """Return scores with many ties."""
    return np.round(scores[0]), np.round(scores[1])


CALIBRATED: dict[str, tuple[Any, Callable[[np.random.Generator], Arrays]]] = {
    "runs": ("runs", lambda rng: of_runs(50, 1.0, rng)),
    "runs with ties": ("runs", lambda rng: rounded(of_runs(50, 1.0, rng))),
    "canaries": ("canaries", lambda rng: of_canaries(100, 1.0, rng)),
    "canaries with ties": ("canaries", lambda rng: rounded(of_canaries(100, 1.0, rng))),
    "canaries of unknown dependence": (None, lambda rng: of_canaries(100, 1.0, rng)),
    "canaries with a common state": (None, lambda rng: in_common_state(100, rng)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "canaries with ties" else ()) for name in CALIBRATED]
)
def test_true_claims_are_rarely_refuted(name: str) -> None:
    """Simulates 2,000 audits of each kind.  Fails by chance < 1 in 10**6 at the level of the count.

    A verdict depends on the scores only through the number of right guesses.  So the number that refutes the claim is
    computed once.  Its level under the claim is sharper than the significance, since counts are integers.
    """
    independence, made = CALIBRATED[name]
    claim, confidence, audits, rng = GaussianDP(1.0), 0.8, 2000, np.random.default_rng(7)
    whole = count_guesses(*made(rng), independence, None, rng)[0]
    least = whole.least_right(claim, confidence=confidence)
    assert least is not None
    level = whole.chance(claim, least)
    assert level <= 1 - confidence
    right = np.array([count_guesses(*made(rng), independence, None, rng)[0].right for _ in range(audits)])
    refuted = np.count_nonzero(right >= least)
    assert refuted <= binom.ppf(1 - 1e-6, audits, level)
    if name in ("runs", "canaries"):  # the level is attained by likelihood ratios, up to 3 % of rounding
        assert refuted >= binom.ppf(1e-6, audits, level / 1.04)


@pytest.mark.parametrize("coins", [False, True])
def test_no_score_is_counted_that_was_learned_from(coins: bool) -> None:
    for seed in range(5):
        sides = words_and_numbers(90, seed)
        learned = learned_scores(*sides, Memory(), seed, coins=coins)
        for scores in (learned.scores0, learned.scores1):
            assert set(scores) == {-1.0, 1.0}  # a score of +-9 is of an output that was learned from
        assert len(learned.scores0) + len(learned.scores1) == 120


def test_learned_scores_do_not_refute_a_true_claim_more_often() -> None:
    """Simulates 60 audits with an attack that memorises all outputs of its fit; fails by chance < 1 in 10**6."""
    claim, right = PureDP(1.0), []
    for seed in range(60):
        learned = learned_scores(*words_and_numbers(60, seed), Memory(), seed, coins=False)
        evidence, _ = count_guesses(learned.scores0, learned.scores1, "runs", None, np.random.default_rng(seed))
        right.append(evidence.right)
    least = evidence.least_right(claim, confidence=0.8)
    assert least is not None
    assert np.count_nonzero(np.asarray(right) >= least) <= binom.ppf(1 - 1e-6, 60, evidence.chance(claim, least))


def test_the_split_leaves_the_other_coins_fair_and_independent() -> None:
    """Draws 2,000 splits of 90 canaries; fails by chance < 1 in 10**6 (5.5 standard errors of mean and variance).

    If a third of each side were learned from, the variance of the coins that are left would be two thirds of this.
    """
    into = []
    for seed in range(2000):
        n1 = int(np.random.default_rng(seed).binomial(90, 0.5))
        (_, rest0), (_, rest1) = split_outputs(90 - n1, n1, np.random.default_rng([seed, 1]), coins=True)
        assert len(rest0) + len(rest1) == 60
        into.append(len(rest1))
    assert abs(np.mean(into) - 30) < 5.5 * math.sqrt(15 / 2000)
    assert abs(np.var(into) / 15 - 1) < 5.5 * math.sqrt(2 / 2000)


def _right_if_half_are_included(m: int, r: int, v: int) -> float:
    """Return P[v or more right guesses] by summation, if scores tell nothing and a set of m / 2 canaries is drawn."""
    low, high = r // 2, r - r // 2
    total = 0.0
    for top in range(high + 1):
        below = hypergeom(m - high, m // 2 - top, low)  # included canaries among the lowest, given those on top
        total += hypergeom.pmf(top, m, m // 2, high) * below.cdf(min(low, top + low - v))
    return float(total)


@pytest.mark.parametrize("m", [10, 20, 40])
def test_exactly_half_included_keeps_the_level(m: int) -> None:
    """Coins with a fixed sum depend on each other: without the factor, some p-values are too small."""
    r, claim, too_small = confident.default_confident(m), PureDP(0.0), 0
    for v in range(r // 2, r + 1):
        evidence = CanaryScoresEvidence(m=m, included=m // 2, half=1, guesses=r, right=v)
        exact = _right_if_half_are_included(m, r, v)
        assert evidence.p_value(claim) >= exact
        too_small += evidence.under_coins(claim, v) < 0.99 * exact
    assert too_small > 0


@pytest.mark.parametrize("independence", CHOICES)
def test_equal_scores_are_ordered_by_chance(independence: Any) -> None:
    """Draws 2,000 orders of scores with two values, equally frequent on both sides; fails by chance < 1 in 10**6.

    The number of right guesses is hypergeometric: 40 of the 100 equal scores on top, or 20 of 100 on either end.  The
    mean may differ by 5.5 standard errors.  The variance may differ by 17 %, which is 5.5 of its standard errors.
    """
    scores = np.tile([0.0, 1.0], 50)
    rng = np.random.default_rng(11)
    right = [count_guesses(scores, scores, independence, 40, rng)[0].right for _ in range(2000)]
    law = hypergeom(100, 50, 40 if independence == "runs" else 20)
    variance = law.var() * (1 if independence == "runs" else 2)
    assert abs(np.mean(right) - 20) < 5.5 * math.sqrt(variance / 2000)
    assert abs(np.var(right) / variance - 1) < 5.5 * math.sqrt(2 / 2000)
