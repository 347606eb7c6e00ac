"""Levels of audits of scores: simulated audits of claims that are exactly true."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from dpaudit import GaussianDP, PureDP, audit_scores
from dpaudit.engine.learned_scores import learned_scores, split_outputs
from dpaudit.engine.score_design import Coins, sorted_evidence

from .scored import Arrays, Memory, of_canaries, of_runs, words_and_numbers


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
    "name", [pytest.param(name, marks=() if name == "runs with ties" else pytest.mark.slow) for name in CALIBRATED]
)
def test_true_claims_are_rarely_refuted(name: str) -> None:
    """Makes 20 tests at 80 %; fails by chance < 1 in 10**6.  benchmarks/score_bounds.py makes thousands."""
    independence, made = CALIBRATED[name]
    claim, audits, rng, refuted = GaussianDP(1.0), 20, np.random.default_rng(7), 0
    for _ in range(audits):
        scores = made(rng)
        coins = Coins(0.5, 1.0, "")
        evidence = sorted_evidence(
            *scores, independence or "inclusion", coins, runs=1, claim=claim, significance=0.2, rng=rng
        )
        refuted += evidence.refutes(claim, confidence=0.8)
    assert refuted <= binom.ppf(1 - 1e-6, audits, 0.2)


@pytest.mark.parametrize("independence", ["runs", "canaries", None])
@pytest.mark.parametrize("claim", [PureDP(0.0), GaussianDP(0.0)])
def test_a_claim_of_no_loss_is_not_refuted_by_noise(independence: Any, claim: Any) -> None:
    """Each of three audits refutes with probability 1e-3, so all three do by chance with 1e-9."""
    rng = np.random.default_rng(3)
    refuted = [
        audit_scores(rng.normal(size=30), rng.normal(size=31), claim, independence=independence, confidence=0.999)
        for _ in range(3)
    ]
    assert sum(result.violated for result in refuted) < 3


@pytest.mark.parametrize("coins", [False, True])
def test_no_score_is_counted_that_was_learned_from(coins: bool) -> None:
    for seed in range(5):
        sides = words_and_numbers(90, seed)
        learned = learned_scores(*sides, Memory(), seed, coins=coins)
        for scores in (learned.scores0, learned.scores1):
            assert set(scores) == {-1.0, 1.0}  # a score of +-9 is of an output that was learned from
        assert len(learned.scores0) + len(learned.scores1) == 120


def test_learned_scores_do_not_refute_a_true_claim_more_often() -> None:
    """Makes 15 audits with an attack that memorises all outputs of its fit; fails by chance < 1 in 10**6 at 80 %."""
    claim, refuted = PureDP(1.0), 0
    for seed in range(15):
        learned = learned_scores(*words_and_numbers(60, seed), Memory(), seed, coins=False)
        evidence = sorted_evidence(
            learned.scores0,
            learned.scores1,
            "runs",
            Coins(0.5, 1.0, ""),
            runs=1,
            claim=claim,
            significance=0.2,
            rng=np.random.default_rng(seed),
        )
        refuted += evidence.refutes(claim, confidence=0.8)
    assert refuted <= binom.ppf(1 - 1e-6, 15, 0.2)


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


def test_equal_scores_are_ordered_by_chance() -> None:
    """Draws 2,000 orders of scores with two values, equally frequent on both sides.

    The highest score is of d1 half of the time.  The share may differ by 5.5 standard errors: < 1 in 10**6 by chance.
    """
    scores = np.tile([0.0, 1.0], 25)
    rng = np.random.default_rng(11)
    right = [
        sorted_evidence(
            scores, scores, "runs", Coins(0.5, 1.0, ""), runs=1, claim=PureDP(1.0), significance=0.2, rng=rng
        ).ranked[0]
        for _ in range(2000)
    ]
    assert abs(np.mean(right) - 0.5) < 5.5 * math.sqrt(0.25 / 2000)
