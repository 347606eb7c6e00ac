"""Log-optimal portfolios: shares of wealth that maximise the expected logarithm of the return."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from dpaudit.numerics.arrays import Array


def log_optimal(returns: Array, weights: Array) -> Array:
    """Compute the portfolio that maximises the expected logarithm of the return.

    The portfolio is the vector x >= 0 with sum 1 that maximises sum_i weights[i] log(x . returns[:, i]).  This function
    of x is concave (Cover & Thomas, Elements of Information Theory, Thm 16.2.1).  It is maximised by Newton's method
    with a logarithmic barrier.

    Returns:
        The share of each asset; shape (assets,).  The shares are strictly positive and sum to 1.
    """
    assets = len(returns)
    x = np.full(assets, 1.0 / assets)
    barrier = 1e-2
    sides = np.ones((assets, 2), order="F")  # right-hand sides of the Newton system: gradient and constraint
    for _ in range(60):
        growth = returns / (x @ returns)
        sides[:, 0] = growth @ weights + barrier / x
        hessian = (growth * weights) @ growth.T
        hessian.ravel()[:: assets + 1] += barrier / x**2  # the Hessian of the barrier is diagonal
        _, solved, failed = dposv(hessian, sides)  # a Gram matrix plus a positive diagonal
        step, sums = (np.linalg.solve(hessian, sides) if failed else solved).T  # dposv may fail by rounding
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
