"""Binomial probabilities and log-likelihoods."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import betaincc, xlogy

from dpaudit.numerics.arrays import Array

Counts = npt.NDArray[np.int64]

MIN_PROBABILITY = 1e-100  # smaller probabilities are rounded up to this value


def divergence_of_rates(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of Bernoulli(p) from Bernoulli(q), nats; inf if q is 0 or 1 and p != q."""
    if p == q:
        return 0.0
    if q in (0.0, 1.0):
        return math.inf
    return float(xlogy(p, p / q) + xlogy(1 - p, (1 - p) / (1 - q)))


def at_most(k: Counts, n: int, rate: Array) -> Array:
    """Return P[Binomial(n, rate) <= k]; elementwise."""
    return np.where(k < n, betaincc(k + 1, np.maximum(n - k, 1), rate), 1.0)


def log_likelihood(k: Array, n: int, rate: Array) -> Array:
    """Return log(rate^k (1 - rate)^(n - k)), rounded up where it would be infinite; elementwise."""
    return np.asarray(k * log_rate(rate) + (n - k) * log_complement(rate), dtype=np.float64)


def log_rate(p: Array) -> Array:
    """Return log p for p in [0, 1]; the result is finite also at p = 0."""
    return np.log(np.maximum(p, 1e-320))


def log_complement(p: Array) -> Array:
    """Return log(1 - p) for p in [0, 1]; the result is finite also at p = 1."""
    return np.where(p < 1, np.log1p(-np.minimum(p, 1 - 1e-16)), -1e3)


def rounding(n: int) -> float:
    """Return an upper bound of the rounding error of a log-likelihood of n outputs, nats."""
    return 1e-9 + 1e-14 * n
