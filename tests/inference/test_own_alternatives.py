"""Alternatives of pure and (epsilon, delta) claims: their growth under typical violations, and their calibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.grid import BINS
from dpaudit.inference.power import growths, power_margin
from dpaudit.inference.sequential.alternatives import Alternative, alternatives, laplace_noise, pair_laws, scaled
from dpaudit.inference.sequential.betting import best_bet
from dpaudit.inference.sequential.blurring import blurred
from dpaudit.inference.sequential.planned import growth_rate
from dpaudit.inference.sequential.strategy import log_threshold, strategy
from dpaudit.numerics import Array

POINT = ApproxDP(epsilon=1.0, delta=1e-5)


def cost_in_nats(claim: TradeoffFunction, p: Array, q: Array) -> float:
    """Return how much of the growth at 95 % confidence is missing: log(1/share), and the growth that a bet loses.

    The bet with the smallest sum is taken; several good bets together cost less.
    """
    law = Alternative(p=p, q=q, weight=1.0)
    best = growth_rate(best_bet(law, claim), claim, law)
    bets = strategy(claim)
    growth = bets.log_payoffs0 @ p + bets.log_payoffs1 @ q - bets.log_prices(claim)
    trials = log_threshold(0.95) / best
    return float(np.min(-bets.log_weights + (best - growth) * trials))


@pytest.mark.parametrize("mu", [0.295, 0.335, 0.4])
def test_gaussian_noise_slightly_above_the_point_of_a_claim_has_a_large_share(mu: float) -> None:
    """Without its own alternatives the cost is above five nats."""
    (law,) = pair_laws(GaussianDP(mu))
    assert cost_in_nats(POINT, *law) < 3.1


@pytest.mark.parametrize("claim", [ApproxDP(epsilon=0.1, delta=1e-6), ApproxDP(epsilon=5.0, delta=1e-6), POINT])
def test_gaussian_noise_starts_slightly_above_the_point(claim: ApproxDP) -> None:
    """Of the added laws, the total variation of one is that of Gaussian noise at most 10 % above the boundary."""
    old = {one.q.tobytes() for one in alternatives(claim, edition=1)}
    added = [one for one in alternatives(claim) if one.q.tobytes() not in old]
    middle, epsilon = BINS // 2, claim.max_privacy_loss()
    variations = [float(one.q[middle:].sum() - one.p[middle:].sum()) for one in added]
    mus = [-2 * float(ndtri((1 - variation) / 2)) for variation in variations]
    allowed = float(claim.delta(epsilon))
    assert any(GaussianDP(mu / 1.1).delta(epsilon) < allowed < GaussianDP(mu).delta(epsilon) for mu in mus)


def test_a_large_delta_needs_no_gaussian_noise_of_its_own() -> None:
    """The ordinary Gaussian family starts at the point of such a claim already."""
    added = [
        len(alternatives(claim)) - len(alternatives(claim, edition=1))
        for claim in (POINT, ApproxDP(epsilon=1.0, delta=0.1), GaussianDP(1.0))
    ]
    assert added[0] > added[1] > added[2] == 0


def test_laplace_noise_has_a_large_share_against_a_pure_claim_even_if_scores_are_inexact() -> None:
    law = laplace_noise(1.2)
    for deviation in (1e-6, 0.05, 0.1):
        assert cost_in_nats(PureDP(1.0), *blurred(law.p, law.q, deviation)) < 3.2


@pytest.mark.parametrize(
    ("claim", "truth"),
    [
        (POINT, POINT),
        (POINT, GaussianDP(0.268)),
        (PureDP(1.0), LaplaceDP(1.0)),
    ],
    ids=str,
)
def test_true_claims_at_the_boundary_are_rarely_refuted(claim: TradeoffFunction, truth: TradeoffFunction) -> None:
    """Fails by chance < 1 in 10**6.  300 audits with known ratios, each examined 30 times up to 10^5 trials."""
    assert float(np.max(truth.delta(np.linspace(-3, 3, 61)) - claim.delta(np.linspace(-3, 3, 61)))) < 1e-9
    ((p, q),) = pair_laws(truth)
    occupied = np.flatnonzero(p + q > 0)
    bets, rng, audits = strategy(claim), np.random.default_rng(11), 300
    prices, wealth, highest = bets.log_prices(claim), np.zeros((audits, len(bets.log_weights))), np.zeros(audits)
    trials = np.unique(np.geomspace(1, 100_000, 30).astype(int))
    for n in np.diff(trials, prepend=0):
        for law, payoffs in ((p, bets.log_payoffs0), (q, bets.log_payoffs1)):
            wealth += rng.multinomial(n, law[occupied] / law.sum(), audits) @ payoffs[:, occupied].T
        wealth -= n * prices
        highest = np.maximum(highest, np.logaddexp.reduce(bets.log_weights + wealth, axis=1))
    assert np.sum(highest >= log_threshold(0.95)) <= binom.ppf(1 - 1e-6, audits, 0.05)


@pytest.mark.parametrize(("claim", "edition"), [(PureDP(1.0), 1), (POINT, 2), (GaussianDP(1.0), 2)], ids=str)
def test_shares_are_positive_and_sum_to_one(claim: TradeoffFunction, edition: int) -> None:
    shares = np.exp(strategy(claim, edition=edition).log_weights)
    assert np.all(shares > 0)
    assert shares.sum() == pytest.approx(1.0)
    assert np.all(strategy(claim, edition=edition).stakes >= 0)


def test_coins_that_select_the_datasets_add_variance() -> None:
    """Compares with the exact variance of one output whose dataset a fair coin selects."""
    claim, (p, q) = GaussianDP(0.5), scaled(GaussianDP(1.5), 1.0)
    bets = strategy(claim)
    fixed, coins = (growths(bets, claim, (p, q), coin_selected=coin)[1] for coin in (False, True))
    payoffs0, payoffs1 = np.maximum(bets.log_payoffs0, -60.0), np.maximum(bets.log_payoffs1, -60.0)
    mean = (payoffs0 @ p + payoffs1 @ q) / 2
    exact = (payoffs0**2 @ p + payoffs1**2 @ q) / 2 - mean**2
    assert coins == pytest.approx(2 * exact, abs=1e-9)
    assert np.all(coins >= fixed)
    margins = [
        power_margin(bets, claim, (p, q), 200, significance=0.05, power=0.9, coin_selected=coin)
        for coin in (False, True)
    ]
    assert margins[1] < margins[0]
