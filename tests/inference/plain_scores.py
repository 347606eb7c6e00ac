"""Simulated scores of the most distinguishable pair."""

from __future__ import annotations

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics import Array


def simulated_runs(claim: TradeoffFunction, n0: int, n1: int, r: int, draws: int, rng: np.random.Generator) -> Array:
    """Simulate the number of d1's among the r smallest numbers, if d0 shows U and d1 shows f(U), (draws,)."""
    numbers = np.hstack([rng.random((draws, n0)), claim.beta(rng.random((draws, n1)))])
    return np.asarray((np.argsort(numbers, axis=1)[:, :r] >= n0).sum(axis=1))
