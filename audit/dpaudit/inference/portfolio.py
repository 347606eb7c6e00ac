"""Log-optimal portfolios: how to divide one unit among bets."""

from __future__ import annotations

import numpy as np

from dpaudit.claims import Array


def log_optimal(returns: Array, weights: Array) -> Array:
    """The x >= 0 with sum 1 that maximises sum_i weights_i log(x . returns[:, i]).

    `returns`: (assets, outcomes), >= 0, each outcome paid by some asset; `weights`: (outcomes,), >= 0.
    The problem is concave (Cover & Thomas, Elements of Information Theory, Thm 16.2.1).  Solved by Newton's
    method on a logarithmic barrier; the result is strictly positive.
    """
    assets = len(returns)
    x = np.full(assets, 1.0 / assets)
    barrier = 1e-2
    ones = np.ones(assets)
    for _ in range(60):
        growth = returns / (x @ returns)
        gradient = growth @ weights + barrier / x
        hessian = (growth * weights) @ growth.T
        hessian[np.diag_indices(assets)] += barrier / x**2
        step, sums = np.linalg.solve(hessian, np.column_stack([gradient, ones])).T
        step = step - sums * (step.sum() / sums.sum())
        shrink = np.max(-step / x)
        length = min(1.0, 0.95 / shrink) if shrink > 0 else 1.0
        x = x + length * step
        x = x / x.sum()
        if length > 0.5:
            if barrier < 1e-10:
                break
            barrier *= 0.05
    return x
