"""The variance of a bet's gain if coins select the datasets."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.claims import GaussianDP
from dpaudit.inference.power import growths, power_margin
from dpaudit.inference.sequential.alternatives import scaled
from dpaudit.inference.sequential.strategy import strategy


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
