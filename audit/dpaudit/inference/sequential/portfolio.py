"""Log-optimal portfolios: how to divide one unit among bets."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from dpaudit.numerics.arrays import Array


def log_optimal(returns: Array, weights: Array) -> Array:
    """The x >= 0 with sum 1 that maximises sum_i weights_i log(x . returns[:, i]).

    `returns`: (assets, outcomes), >= 0, each outcome paid by some asset; `weights`: (outcomes,), >= 0.
    The problem is concave (Cover & Thomas, Elements of Information Theory, Thm 16.2.1).  Solved by Newton's
    method on a logarithmic barrier; the result is strictly positive.
    """
    assets = len(returns)
    x = np.full(assets, 1.0 / assets)
    barrier = 1e-2
    sides = np.ones((assets, 2), order="F")  # of the equations: the gradient, and that x sums to one
    for _ in range(60):
        growth = returns / (x @ returns)
        sides[:, 0] = growth @ weights + barrier / x
        hessian = (growth * weights) @ growth.T
        hessian.ravel()[:: assets + 1] += barrier / x**2  # its diagonal
        _, solved, failed = dposv(hessian, sides)  # positive definite: a Gram matrix and the barrier's diagonal
        step, sums = (np.linalg.solve(hessian, sides) if failed else solved).T  # but for rounding
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
