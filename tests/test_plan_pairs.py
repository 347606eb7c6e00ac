"""Stated numbers of runs hold on a pair of datasets that exists, for claims with subsampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import beta, binom

from dpaudit import GaussianDP, Pair, TabulatedTradeoff, audit, parse_claim, plan, plan_scores
from dpaudit.claims.operations.pair_curves import PairCurve, pair_curves
from dpaudit.engine.plan import enough_trials
from dpaudit.engine.plan_scores import planned_evidence
from dpaudit.inference.grid import EDGES
from dpaudit.inference.scores import both_sides, runs
from dpaudit.inference.sequential.alternatives import pair_laws, scaled
from dpaudit.inference.sequential.planned import Planned
from dpaudit.inference.sequential.strategy import strategy

SAMPLED = "subsampled(gaussian(mu={}), rate={}, relation='add_remove')"


def above(mu: float, rate: float, backward: bool, x: Any) -> tuple[Any, Any]:
    """Return P[score > x] on d0 and on d1; the score is the noise, or minus the noise if d0 has the record."""
    plain = ndtr(-x)
    mixed = (1 - rate) * ndtr(-x) + rate * ndtr((-mu if backward else mu) - x)
    return (mixed, plain) if backward else (plain, mixed)


def exact_power(mu: float, rate: float, n: int, r: int, k: int, *, backward: bool) -> float:
    """Integrate over the k-th highest score of d1: fewer than r - k + 1 scores of d0 must be higher."""
    n0, n1 = n // 2, n - n // 2

    def density(x: float) -> float:
        step = 1e-5
        reached = above(mu, rate, backward, x)
        slope = (above(mu, rate, backward, x - step)[1] - above(mu, rate, backward, x + step)[1]) / (2 * step)
        return float(beta.pdf(reached[1], k, n1 - k + 1) * slope * binom.cdf(r - k, n0, reached[0]))

    return float(quad(density, -6.0, 6.0, limit=200, points=[-2, -1, 0, 1, 2])[0])


@pytest.mark.parametrize(
    ("claimed", "mu", "rate", "n", "stated"), [(0.1, 4.0, 0.1, 2831, 0.165), (0.5, 4.0, 0.3, 1024, 0.011)]
)
def test_the_power_of_runs_is_that_of_the_weaker_direction(
    claimed: float, mu: float, rate: float, n: int, stated: float
) -> None:
    """Compares with an integral over the scores of d1; the curve of the claim promised 90 % for these numbers."""
    evidence: Any = planned_evidence(n, GaussianDP(claimed), "runs", "coins")
    least = evidence.least_right(GaussianDP(claimed), confidence=0.95)
    powers = [exact_power(mu, rate, n, evidence.guesses, least, backward=backward) for backward in (False, True)]
    assert min(powers) == pytest.approx(stated, abs=2e-3)
    assert evidence.attained(parse_claim(SAMPLED.format(mu, rate)), least) == pytest.approx(min(powers), rel=0.03)
    for power, curve in zip(powers, pair_curves(parse_claim(SAMPLED.format(mu, rate))), strict=True):
        found = runs._chance(curve, n // 2, n - n // 2, evidence.guesses, least, 7.0, up=False)
        assert found == pytest.approx(power, rel=0.03)
        assert found <= power * (1 + 1e-6)


@pytest.mark.parametrize("backward", [False, True])
def test_the_power_of_canaries_is_that_of_a_pair(backward: bool) -> None:
    """Simulates 1,000 sets of 700 canaries.  Fails by chance < 1 in 10**6."""
    mu, rate, m, right, times = 4.0, 0.3, 700, 285, 1000
    rng = np.random.default_rng(5)
    included = rng.random((times, m)) < 0.5
    noisy = rng.normal(mu * ((rng.random((times, m)) < rate) & (included != backward)))
    order = np.argpartition(-noisy if backward else noisy, (217, m - 217), axis=1)
    counted = (~np.take_along_axis(included, order[:, :217], axis=1)).sum(axis=1)
    counted += np.take_along_axis(included, order[:, m - 217 :], axis=1).sum(axis=1)
    curve = PairCurve(parse_claim(SAMPLED.format(mu, rate)), backward)
    stated = both_sides._attained(curve, m, (434,), right, None)
    assert 0.2 < stated < 0.8
    assert binom.ppf(1e-7, times, stated) <= (counted >= right).sum() <= binom.ppf(1 - 1e-7, times, stated + 0.01)


def test_a_plan_for_dp_sgd_needs_more_scores_than_the_curve_of_the_claim_suggests() -> None:
    n = plan_scores("gaussian(mu=0.3)", SAMPLED.format(3, 0.6), independence="runs", confidence=0.9)
    assert n is not None
    evidence: Any = planned_evidence(n, GaussianDP(0.3), "runs", "coins")
    least = evidence.least_right(GaussianDP(0.3), confidence=0.9)
    powers = [exact_power(3.0, 0.6, n, evidence.guesses, least, backward=backward) for backward in (False, True)]
    assert 0.9 <= min(powers) <= 0.95
    assert min(powers) < max(powers)


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
