"""Confidence bounds of one proportion.  Clopper & Pearson 1934, Biometrika 26, 404-413."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincc, betaincinv, xlogy

from dpaudit.numerics import Array, Integers

PROBABILITY_FLOOR = 1e-100  # smaller probabilities are rounded up to this value


def divergence_of_rates(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of Bernoulli(p) from Bernoulli(q), nats; inf if q is 0 or 1 and p != q."""
    if p == q:
        return 0.0
    if q in (0.0, 1.0):
        return math.inf
    return float(xlogy(p, p / q) + xlogy(1 - p, (1 - p) / (1 - q)))


def at_most(k: Integers, n: int, rate: Array) -> Array:
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


def clopper_pearson_upper(k: int, n: int, *, significance: float) -> float:
    """Return the Clopper-Pearson upper bound, in [0, 1], of a proportion with k successes in n trials.

    Theorem:
        If K ~ Binomial(n, p), P[clopper_pearson_upper(K, n) < p] <= significance for every n and p.

    ValueError if k is not in [0, n], or the significance not in [0, 1).
    """
    check_count(k, n, significance)
    if k == n or significance == 0:
        return 1.0
    return 1.0 - float(betaincinv(n - k, k + 1, significance))


def clopper_pearson_lower(k: int, n: int, *, significance: float) -> float:
    """Return the Clopper-Pearson lower bound; arguments and errors are those of `clopper_pearson_upper`.

    Theorem:
        If K ~ Binomial(n, p), P[clopper_pearson_lower(K, n) > p] <= significance for every n and p.
    """
    check_count(k, n, significance)
    if k == 0 or significance == 0:
        return 0.0
    return float(betaincinv(k, n - k + 1, significance))


def clopper_pearson(k: int, n: int, *, significance: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a proportion, with the significance split evenly between its ends."""
    return (
        clopper_pearson_lower(k, n, significance=significance / 2),
        clopper_pearson_upper(k, n, significance=significance / 2),
    )


def check_count(k: int, n: int, significance: float = 0.5) -> None:
    """Check that 0 <= k <= n and that the significance lies in [0, 1)."""
    if not 0 <= k <= n:
        raise ValueError(f"a count must lie between 0 and the number of outputs, got {k} of {n}")
    if not 0 <= significance < 1:
        raise ValueError(f"significance must lie in [0, 1), got {significance}")
