"""Scores: copies among them, and the worst-case law of the count of right guesses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom, hypergeom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.scores import exchangeability, runs

from .plain import simulated_runs


def counts(scores: np.ndarray) -> np.ndarray:
    return np.unique(scores, return_counts=True)[1]


def test_weights_fulfil_the_condition_of_the_theorem() -> None:
    """Checks (1) for the rates of 4,000 atoms, with 200 multiplicities, by Poisson probabilities."""
    weights, x = exchangeability._weights(), np.geomspace(1e-4, 60.0, 4000)
    k = np.arange(200)
    log_mass = k * np.log(x)[:, None] - np.array([math.lgamma(i + 1) for i in k]) - x[:, None]
    gain = np.exp(log_mass) @ weights[:, np.minimum(k, 64)].T
    assert gain.max() <= 1e-12
    assert weights.min() > -1
    assert np.all(weights[:, 0] == 0)


@pytest.mark.parametrize("rate", [0.3, 1.0, 2.0, 3.0, 5.0, 20.0])
def test_independent_scores_rarely_look_copied(rate: float) -> None:
    """Simulates 1,000 pairs of sides, of Poisson sizes, for each rate of the atoms; a tenth of the scores has no atom.

    E >= 5 has probability 1/5 at most.  Fails by chance < 1 in 10**6.
    """
    rng, called = np.random.default_rng(4), 0
    for _ in range(1000):
        sides = []
        for n in map(int, rng.poisson(60, 2)):
            sides.append(np.where(rng.random(n) < 0.1, rng.random(n), rng.integers(int(60 / rate), size=n)))
        called += exchangeability._log_e(*map(counts, sides)) >= math.log(5)
    assert called <= binom.ppf(1 - 1e-6, 1000, 1 / 5)


def test_the_weights_of_lemma_a_leave_nothing_over() -> None:
    """At one rate of an atom the gain is exactly 0, so no larger weight is valid."""
    for c, (u, v) in [(2, (0.5, 0.5)), (3, (0.05, 0.9))]:
        x = math.sqrt(u * c * (c + 1) / v)
        b = 2 * math.sqrt(u * v * c / (c + 1))
        mass = [x**k / math.factorial(k) for k in (c - 1, c, c + 1)]
        assert -u * mass[0] + b * mass[1] - v * mass[2] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("times", [2, 3, 4, 6])
def test_copies_are_found(times: int) -> None:
    scores = np.random.default_rng(0).normal(size=(2, 20))
    assert exchangeability.repeats_p_value(*(counts(np.tile(side, times)) for side in scores)) <= 1e-6


def test_copies_of_scores_with_atoms_are_found() -> None:
    rng = np.random.default_rng(1)
    sides = np.round(rng.normal(size=(2, 500)), 2)
    assert exchangeability.repeats_p_value(*map(counts, sides)) == 1.0
    assert exchangeability.repeats_p_value(*(counts(np.tile(side, 2)) for side in sides)) <= 1e-6


def test_copies_of_a_part_and_of_varying_number_are_found() -> None:
    rng = np.random.default_rng(2)
    sides = rng.normal(size=(2, 400))
    assert exchangeability.repeats_p_value(*(counts(np.append(side, side[:200])) for side in sides)) <= 1e-6
    assert (
        exchangeability.repeats_p_value(*(counts(np.repeat(side, rng.integers(2, 4, 400))) for side in sides)) <= 1e-6
    )


def test_scores_that_all_differ_or_few_copies_are_no_evidence() -> None:
    assert exchangeability.repeats_p_value(np.ones(100, dtype=int), np.ones(100, dtype=int)) == 1.0
    assert exchangeability.repeats_p_value([2, 2, 2], [2, 2]) > 0.05
    assert exchangeability.repeats_p_value([1000, 1000], [900, 1100]) == 1.0


def test_without_privacy_loss_the_law_is_hypergeometric() -> None:
    for n0, n1, r, k in [(10, 10, 10, 8), (30, 20, 15, 10), (5, 40, 20, 20)]:
        exact = hypergeom.sf(k - 1, n0 + n1, n1, r)
        assert exact * (1 - 1e-9) <= runs.p_value(PureDP(0.0), n0, n1, r, k) <= 1.04 * exact


@pytest.mark.parametrize(
    "claim", [GaussianDP(1.0), LaplaceDP(1.0), PureDP(1.0), ApproxDP(epsilon=0.5, delta=0.1)], ids=str
)
@pytest.mark.parametrize(("n0", "n1"), [(40, 40), (50, 20)])
def test_the_most_distinguishable_pair_attains_the_bound(claim: TradeoffFunction, n0: int, n1: int) -> None:
    """Allows six standard errors of 4,000 draws and 4 % for the cells.  Fails by chance < 1 in 10**7."""
    r = (n0 + n1) // 2
    high = simulated_runs(claim, n0, n1, r, 4000, np.random.default_rng(2))
    for k in range(max(0, r - n0) + 1, min(r, n1) + 1, 3):
        share, ours = float(np.mean(high >= k)), runs.p_value(claim, n0, n1, r, k)
        assert abs(share - ours) <= 6 * np.sqrt(ours * (1 - ours) / 4000 + 1e-7) + 0.04 * ours


@pytest.mark.parametrize(("n0", "n1", "r", "k"), [(80, 20, 8, 6), (50, 50, 50, 32), (5, 4, 3, 2), (300, 200, 230, 120)])
@pytest.mark.parametrize("claim", [GaussianDP(1.27), LaplaceDP(0.8)])
def test_p_values_are_rounded_up(claim: TradeoffFunction, n0: int, n1: int, r: int, k: int) -> None:
    law = beta(r - k + 1, n0 - r + k)

    def integrand(share: float) -> float:
        return float(binom.sf(k - 1, n1, 1 - float(claim.beta(float(law.ppf(share))))))

    plain, error = quad(integrand, 0, 1, limit=200, epsabs=1e-7)
    assert plain - error <= runs.p_value(claim, n0, n1, r, k) < plain + 0.02


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 5 of 5 high scores must be of d1, got 6"):
        runs.p_value(PureDP(1.0), 10, 10, 5, 6)
