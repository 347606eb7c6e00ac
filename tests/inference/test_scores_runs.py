"""Scores of independent runs: the exact test with a cut at a fixed rank."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom, hypergeom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.scores import runs

from .plain_scores import simulated_runs


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
    r = runs.default_cut(n0, n1)
    high = simulated_runs(claim, n0, n1, r, 4000, np.random.default_rng(2))
    for k in range(max(0, r - n0) + 1, min(r, n1) + 1, 3):
        share, ours = float(np.mean(high >= k)), runs.p_value(claim, n0, n1, r, k)
        assert abs(share - ours) <= 6 * np.sqrt(ours * (1 - ours) / 4000 + 1e-7) + 0.04 * ours


@pytest.mark.parametrize("rounded", [False, True])
def test_true_claims_are_rarely_refuted(rounded: bool) -> None:
    """Simulates 500 audits.  Fails by chance < 1 in 10**6 at the stated level."""
    rng, refuted = np.random.default_rng(3), 0
    least = next(k for k in range(41) if runs.p_value(GaussianDP(1.0), 50, 40, 43, k) <= 0.05)
    for _ in range(500):
        x, y = rng.normal(0, 1, 50), rng.normal(1, 1, 40)
        if rounded:
            x, y = np.round(x), np.round(y)
        refuted += runs.count_high(x, y, 43, rng=rng) >= least
    assert refuted <= binom.ppf(1 - 1e-6, 500, 0.05)


def test_bounds_are_where_the_p_value_is_the_significance() -> None:
    mu = runs.mu_lower(1000, 1000, 1000, 700, significance=0.05)
    assert runs.p_value(GaussianDP(mu), 1000, 1000, 1000, 700) <= 0.05
    assert runs.p_value(GaussianDP(mu + 2e-3), 1000, 1000, 1000, 700) > 0.05
    eps = runs.epsilon_lower(1000, 1000, 1000, 700, delta=0.01, significance=0.05)
    assert 0 < eps < np.log(0.7 / 0.3)
    assert runs.mu_lower(10, 10, 10, 5, significance=0.05) == 0.0


@pytest.mark.parametrize(("n0", "n1", "r", "k"), [(80, 20, 8, 6), (50, 50, 50, 32), (5, 4, 3, 2), (300, 200, 230, 120)])
@pytest.mark.parametrize("truth", [GaussianDP(1.27), LaplaceDP(0.8)])
def test_power_is_rounded_down_and_p_values_are_rounded_up(
    truth: TradeoffFunction, n0: int, n1: int, r: int, k: int
) -> None:
    law = beta(r - k + 1, n0 - r + k)

    def integrand(share: float) -> float:
        u = float(law.ppf(share))
        return float(binom.sf(k - 1, n1, 1 - float(truth.beta(u))))

    plain, error = quad(integrand, 0, 1, limit=200, epsabs=1e-7)
    low, high = runs.attained(truth, n0, n1, r, k), runs.p_value(truth, n0, n1, r, k)
    assert plain - 0.02 < low <= plain + error
    assert plain - error <= high < plain + 0.02
    assert low < high


def test_power_of_certain_and_impossible_counts() -> None:
    assert runs.attained(GaussianDP(1.0), 10, 10, 12, 2) == 1.0
    assert runs.attained(GaussianDP(1.0), 10, 10, 5, 6) == 0.0


def test_equal_scores_are_no_evidence() -> None:
    rng = np.random.default_rng(0)
    high = [runs.count_high(np.zeros(30), np.zeros(30), 30, rng=rng) for _ in range(200)]
    assert 14 < np.mean(high) < 16  # fails by chance < 1 in 10**12


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="got nan for run 2"):
        runs.count_high([0.0, 1.0], [np.nan], 1, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="between 0 and 5 of 5 high scores must be of d1, got 6"):
        runs.p_value(PureDP(1.0), 10, 10, 5, 6)
