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
