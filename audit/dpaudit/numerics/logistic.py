"""Logistic regression with little overhead for each fit, for audits that fit hundreds of small models."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.numerics.arrays import Array

_CLOSE = 1e-4  # nats; Newton's method stops when the loss exceeds its estimated minimum by less than half of this
_MIN_ROWS_OF_CLOSE = 100_000  # above this number of rows, `_CLOSE_EACH` replaces `_CLOSE`
# nats for each row; the last step of Newton's method leaves about the square of this, far less than the error of a
# sample of so many rows
_CLOSE_EACH = 1e-4
_MIN_ROWS_OF_WARM_START = 10_000  # above this number of rows, a fit to a subset gives the start
_WARM_START_STRIDE = 8  # the subset for the starting point consists of every eighth row
_NUMBERS_AT_ONCE = 2**17  # numbers (1 MB) in a product


def linear(rows: Array, slopes: Array) -> Array:
    """Return the product of each row (n, d) with the slopes (d,); shape (n,).

    The product of a row has the same bits whatever the other rows are.  The products of BLAS (`rows @ slopes`) have
    not, since their rounding depends on the number of rows and on the place of the row.
    """
    found: Array = np.einsum("ij,j->i", np.ascontiguousarray(rows), slopes)
    return found


def fit_logistic(rows: Array, n0: int) -> tuple[Array, float]:
    """Return the d coefficients and the intercept of the log-odds that a row belongs to d1.

    The loss function is that of scikit-learn's LogisticRegression(C=1, solver="newton-cholesky").  This function does
    not check its arguments, because checks such as those of scikit-learn would take longer than the fit.
    """
    n, columns = rows.shape
    close = _CLOSE if n <= _MIN_ROWS_OF_CLOSE else n * _CLOSE_EACH
    x = np.empty((columns + 1, n))  # one row for each coefficient, so that products with weights are fast
    x[:columns], x[columns] = rows.T, 1.0
    penalty = np.append(np.ones(columns), 1e-9)
    beta, margins, now = np.zeros(columns + 1), np.zeros(n), n * math.log(2)

    def loss(beta: Array, margins: Array) -> float:
        return _log_loss(margins, n0) + float(0.5 * penalty @ beta**2)

    if n > _MIN_ROWS_OF_WARM_START:
        slopes, intercept = fit_logistic(rows[::_WARM_START_STRIDE], -(-n0 // _WARM_START_STRIDE))
        guess = np.append(slopes, intercept)
        there = guess @ x
        if (then := loss(guess, there)) < now:
            beta, margins, now = guess, there, then
    for _ in range(30):  # steps of Newton's method
        chance = 0.5 * (1 + np.tanh(0.5 * margins))
        curvature = _weighted_products(x, chance * (1 - chance))
        curvature[np.diag_indices(columns + 1)] += penalty
        chance[n0:] -= 1  # now the derivative of the loss with respect to the margins
        gradient = x @ chance + penalty * beta
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < close:  # to second order, the product is twice the remaining decrease of the loss
            beta = beta - step
            break
        slopes = step @ x
        length, then = 1.0, loss(beta - step, margins - slopes)
        while then > now and length > 1e-4:
            length /= 2
            then = loss(beta - length * step, margins - length * slopes)
        if then >= now:
            break
        beta, margins, now = beta - length * step, margins - length * slopes, then
    return beta[:-1], float(beta[-1])


def _log_loss(margins: Array, n0: int) -> float:
    """Return the sum of log(1 + exp(+-margin)) over all log-odds; the first `n0` belong to d0."""
    rest = np.abs(margins)
    np.negative(rest, out=rest)
    np.exp(rest, out=rest)
    np.log1p(rest, out=rest)
    return float(rest.sum() + np.maximum(margins[:n0], 0.0).sum() - np.minimum(margins[n0:], 0.0).sum())


def _weighted_products(x: Array, weights: Array) -> Array:
    """Return the sum over i of weights[i] * outer(x[:, i], x[:, i]), in half the time of other products."""
    roots = np.sqrt(weights)
    size = max(1, _NUMBERS_AT_ONCE // len(x))
    total = np.zeros((len(x), len(x)))
    for start in range(0, len(roots), size):
        some = x[:, start : start + size] * roots[start : start + size]
        total += some @ some.T
    return total
