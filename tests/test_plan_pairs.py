"""Stated numbers of runs hold on a pair of datasets that exists, for claims with subsampling."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr

from dpaudit import GaussianDP, Pair, TabulatedTradeoff, audit, parse_claim, plan, plan_scores
from dpaudit.claims.operations.pair_curves import PairCurve, pair_curves
from dpaudit.engine.plan import enough_trials
from dpaudit.engine.score_design import Coins, evidence_of
from dpaudit.inference.grid import EDGES
from dpaudit.inference.sequential.alternatives import pair_laws, scaled
from dpaudit.inference.sequential.planned import Planned
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.result.scores_evidence import Line, ScoresEvidence

CLAIM = GaussianDP(0.3)
SAMPLED = "subsampled(gaussian(mu={}), rate={}, relation='add_remove')"


def above(mu: float, rate: float, backward: bool, x: Any) -> tuple[Any, Any]:
    """Return P[score > x] on d0 and on d1; the score is the noise, or minus the noise if d0 has the record."""
    plain = ndtr(-x)
    mixed = (1 - rate) * ndtr(-x) + rate * ndtr((-mu if backward else mu) - x)
    return (mixed, plain) if backward else (plain, mixed)


@cache
def evidence(n: int, line: Line) -> ScoresEvidence:
    sizes = n // 2, n - n // 2
    return evidence_of(*sizes, line, Coins(0.5, 1.0, ""), runs=1, claim=CLAIM, significance=0.05)


@pytest.mark.parametrize(("line", "n"), [("runs", 50), ("inclusion", 300)])
def test_the_power_is_that_of_the_weaker_direction(line: Line, n: int) -> None:
    """Simulates 1,000 audits of each direction.  Fails by chance < 1 in 10**6."""
    mu, rate, times, powers = 4.0, 0.3, 1000, list[float]()
    planned, rng = evidence(n, line), np.random.default_rng(5)
    law, found = planned.law, planned._needed(CLAIM)
    for backward in (False, True):
        coins = rng.random((times, n)) < 0.5
        if line == "runs":
            coins = np.broadcast_to(np.arange(n) < n // 2, coins.shape)
        noisy = rng.normal(mu * ((rng.random((times, n)) < rate) & (coins != backward)))
        noisy = -noisy if backward else noisy
        ranked = np.take_along_axis(coins, np.argsort(-noisy, axis=1), axis=1)
        right = np.array([law.blocks.right(row) for row in ranked])
        refuted = law.counted(right) >= found.counted
        if found.statistic is not None:
            refuted |= found.statistic.log(right) >= found.log_t
        powers.append(float(refuted.mean()))
    stated = planned.chance_to_refute(CLAIM, parse_claim(SAMPLED.format(mu, rate)))
    assert 0.05 < stated < 0.95
    assert stated - 0.02 < min(powers) < stated + 0.2  # powers are rounded down


@pytest.mark.parametrize("backward", [False, True])
def test_laws_of_trials_are_those_of_a_pair(backward: bool) -> None:
    """Compares with the closed form of the likelihood ratio of Gaussian noise on a sample."""
    law = pair_laws(parse_claim(SAMPLED.format(2, 0.2)))[backward]
    p, q = (np.cumsum(side[::-1])[::-1][1:] for side in law)
    if backward:
        p, q = (1 - np.cumsum(side[::-1])[:-1] for side in law[::-1])
    places = np.arange(20, len(EDGES) - 20, 37)
    inside = np.maximum((np.expm1(EDGES[places]) + 0.2) / 0.2, 1e-300)  # the ratio without sampling
    exact0, exact1 = above(2.0, 0.2, False, np.log(inside) / 2.0 + 1.0)
    assert p[places] == pytest.approx(exact0, abs=2e-3)
    assert q[places] == pytest.approx(exact1, abs=2e-3)


def test_trials_are_those_of_the_weaker_direction() -> None:
    claim, truth = GaussianDP(1.0), parse_claim(SAMPLED.format(4, 0.6))
    both = [np.array(scaled(PairCurve(truth, backward), 1.0)) for backward in (False, True)]
    assert np.abs(both[0] - both[1][::-1, ::-1]).max() < 0.01  # the same pair with exchanged datasets
    alpha = np.linspace(0, 1, 400)
    suggested = TabulatedTradeoff(alpha=alpha, beta=truth.beta(alpha))
    planned = (Planned(violations=(one,), confidence=0.99) for one in (truth, suggested))
    needed, too_few = (enough_trials(strategy(claim, one), claim, *one.violations, confidence=0.99) for one in planned)
    assert needed is not None
    assert too_few is not None
    assert needed > too_few


def test_subsamplings_inside_each_other_and_compositions_have_a_pair() -> None:
    nested = PairCurve(parse_claim("subsampled(subsampled(gaussian(mu=2), rate=0.5), rate=0.4)"), False)
    once = PairCurve(parse_claim("subsampled(gaussian(mu=2), rate=0.2)"), False)
    alpha = np.linspace(0, 1, 11)
    assert nested.beta(alpha) == pytest.approx(once.beta(alpha))
    assert PairCurve(once.truth, True).beta(once.beta(0.3)) == pytest.approx(0.3)
    hull = once.truth.beta(alpha)
    assert np.all(np.minimum(once.beta(alpha), PairCurve(once.truth, True).beta(alpha)) >= hull - 1e-12)


def test_the_curve_of_a_composition_is_that_of_a_pair() -> None:
    """Compares with the four outcomes of two sampled randomised responses."""
    p = np.array([expit(1.0), expit(-1.0)])
    q = 0.7 * p + 0.3 * p[::-1]
    both = np.stack([np.outer(p, p).ravel(), np.outer(q, q).ravel()])
    both = both[:, np.argsort(-both[1] / both[0])]
    alpha, beta_ = np.cumsum(both[0]), 1 - np.cumsum(both[1])
    forward, backward = pair_curves(parse_claim("repeated(subsampled(pure(epsilon=1), rate=0.3), n=2)"))
    assert forward.beta(alpha[:-1]) == pytest.approx(beta_[:-1], abs=1e-4)
    assert backward.beta(beta_[:-1]) == pytest.approx(alpha[:-1], abs=1e-4)


def test_a_truth_that_no_known_pair_attains_is_refused() -> None:
    truth = f"group({SAMPLED.format(2, 0.1)}, k=2)"
    for attempt in (
        lambda: plan_scores("gaussian(mu=0.1)", truth, independence="runs"),
        lambda: plan("gaussian(mu=0.1)", truth),
        lambda: audit(lambda d, rng: 0.0, "gaussian(mu=0.1)", Pair([0], [1]), detect=truth, seed=1),
    ):
        with pytest.raises(ValueError, match="no pair of datasets is known that attains group"):
            attempt()
