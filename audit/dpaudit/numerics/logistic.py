"""Logistic regression with little overhead for each fit, for audits that fit hundreds of small models."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.numerics.arrays import Array

_MAX_STEPS = 30  # maximum number of steps of Newton's method in one fit
_CLOSE = 1e-4  # nats; Newton's method stops when the loss exceeds its estimated minimum by less than half of this
_MIN_ROWS_OF_WARM_START = 10_000  # above this number of rows, a fit to a subset gives the start
_WARM_START_STRIDE = 8  # the subset for the starting point consists of every eighth row


def fit_logistic(rows: Array, n0: int) -> tuple[Array, float]:
    """Fit a logistic regression that separates rows of d0 from rows of d1.

    The loss function is that of scikit-learn's LogisticRegression(C=1, solver="newton-cholesky").  This function does
    not check its arguments, because checks such as those of scikit-learn would take longer than the fit.

    Args:
        rows: Finite values of d features for each of n rows; shape (n, d).  The first `n0` rows belong to dataset d0,
            and the other rows belong to dataset d1.
        n0: Number of rows that belong to dataset d0.

    Returns:
        The d coefficients and the intercept of the log-odds that a row belongs to d1.
    """
    n, columns = rows.shape
    x = np.column_stack([rows, np.ones(n)])
    y = np.arange(n) >= n0
    signs = np.where(y, 1.0, -1.0)
    penalty = np.append(np.ones(columns), 1e-9)
    beta, margins, now = np.zeros(columns + 1), np.zeros(n), n * math.log(2)

    def loss(beta: Array, margins: Array) -> float:
        return float(np.logaddexp(0.0, -signs * margins).sum() + 0.5 * penalty @ beta**2)

    if n > _MIN_ROWS_OF_WARM_START:
        slopes, intercept = fit_logistic(rows[::_WARM_START_STRIDE], -(-n0 // _WARM_START_STRIDE))
        guess = np.append(slopes, intercept)
        there = x @ guess
        if (then := loss(guess, there)) < now:
            beta, margins, now = guess, there, then
    for _ in range(_MAX_STEPS):
        chance = 0.5 * (1 + np.tanh(0.5 * margins))
        gradient = x.T @ (chance - y) + penalty * beta
        curvature = (x.T * (chance * (1 - chance))) @ x
        curvature[np.diag_indices(columns + 1)] += penalty
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < _CLOSE:  # to second order, the product is twice the remaining decrease of the loss
            beta = beta - step
            break
        slopes = x @ step
        length, then = 1.0, loss(beta - step, margins - slopes)
        while then > now and length > 1e-4:
            length /= 2
            then = loss(beta - length * step, margins - length * slopes)
        if then >= now:
            break
        beta, margins, now = beta - length * step, margins - length * slopes, then
    return beta[:-1], float(beta[-1])
