"""Slow reference implementation of the exact test with a fixed number of trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import bisect
from scipy.special import comb, ndtri, xlogy
from scipy.stats import beta as beta_law

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TabulatedTradeoff, TradeoffFunction
from dpaudit.inference.fixed.exact_binomial import ALPHA_SHARE
from dpaudit.numerics import Array

ASYMMETRIC = TabulatedTradeoff(alpha=[0.0, 0.1, 0.5, 1.0], beta=[0.9, 0.5, 0.1, 0.0])
CLAIMS: list[TradeoffFunction] = [
    PureDP(0.0),
    PureDP(1.0),
    PureDP(3.0),
    GaussianDP(0.0),
    GaussianDP(0.7),
    GaussianDP(2.0),
    ApproxDP(epsilon=0.0, delta=0.3),
    ApproxDP(epsilon=0.5, delta=0.1),
    ApproxDP(epsilon=2.0, delta=0.01),
    LaplaceDP(1.5),
    ASYMMETRIC,
]
ALPHAS: Array = np.unique(np.concatenate([[0.0, 1.0], np.geomspace(1e-6, 0.5, 150), np.linspace(0, 1, 301)]))


def points(claim: TradeoffFunction, n0: int, n1: int) -> tuple[Array, Array]:
    """Return the complete grid along the curve from which evidence is computed."""

    def grid(n: int) -> Array:
        step = 0.1 / (2 * math.sqrt(n))
        angles = np.minimum(step * np.arange(math.ceil(math.pi / 2 / step) + 1), math.pi / 2)
        return np.asarray(np.sin(angles) ** 2)

    alpha, beta = grid(n0), grid(n1)
    return np.concatenate([alpha, claim.beta(beta)]), np.concatenate([claim.beta(alpha), beta])


@lru_cache
def plain_evidence(claim: TradeoffFunction, n0: int, n1: int) -> Array:
    """Return the evidence of every outcome (x, z), (n0 + 1, n1 + 1)."""

    def divergence(n: int, rates: Array) -> Array:
        p = ((np.arange(n + 1) + 0.5) / (n + 1))[:, None]
        with np.errstate(divide="ignore"):
            value = xlogy(p, p) - xlogy(p, rates) + xlogy(1 - p, 1 - p) - xlogy(1 - p, 1 - rates)
        return np.where(p < rates, (n + 1) * value, 0.0)

    alpha, beta = points(claim.symmetrized(), n0, n1)
    return np.asarray((divergence(n0, alpha)[:, None, :] + divergence(n1, beta)[None, :, :]).min(axis=2))


def law(n: int, rates: Array) -> Array:
    """Return the probability of 0, ..., n errors at each rate, (n + 1, rates)."""
    k = np.arange(n + 1)[:, None]
    return np.asarray(comb(n, k) * rates**k * (1 - rates) ** (n - k))


def tail(inside: Array, n0: int, n1: int, alpha: Array, beta: Array) -> Array:
    """Return the probability of a set of outcomes, (n0 + 1, n1 + 1), at each (alpha, beta)."""
    return np.asarray((law(n0, alpha) * (inside @ law(n1, beta))).sum(axis=0))


def dense(x: int, n: int, level: float) -> Array:
    """Return a fine grid over the Clopper-Pearson interval of alpha, as angles."""
    low = beta_law.ppf(ALPHA_SHARE * level / 2, x, n - x + 1) if x > 0 else 0.0
    high = beta_law.isf(ALPHA_SHARE * level / 2, x + 1, n - x) if x < n else 1.0
    return np.asarray(np.linspace(math.asin(math.sqrt(low)), math.asin(math.sqrt(high)), 300))


def plain_p_value(claim: TradeoffFunction, x: int, n0: int, z: int, n1: int) -> float:
    """Compute inf { s : M(s) <= s } by bisection."""
    evidence = plain_evidence(claim, n0, n1)
    if evidence[x, z] <= 1e-9:
        return 1.0
    claim = claim.symmetrized()
    inside = (evidence >= evidence[x, z] * (1 - 1e-9) - 1e-9).astype(float)

    def refuted(level: float) -> bool:
        alpha = np.sin(dense(x, n0, level)) ** 2
        return float(tail(inside, n0, n1, alpha, claim.beta(alpha)).max()) <= (1 - ALPHA_SHARE) * level

    low, high = 0.0, 1.0
    if not refuted(high):
        return 1.0
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high


def plain_bound(family: Callable[[float], TradeoffFunction], x: int, n0: int, z: int, n1: int) -> float:
    """Compute the bound of Theorem 2 for a significance of 0.05 by a scan from above."""
    cutoff, steps = float(ndtri(0.05)) ** 2 / 2, np.arange(0, 6, 0.02)
    against_none = plain_evidence(family(0.0), n0, n1)
    if against_none[x, z] <= 1e-9:
        return 0.0
    if against_none[x, z] < cutoff:
        inside = against_none >= against_none[x, z] - 1e-9
    else:
        rank = bisect(lambda t: plain_evidence(family(t), n0, n1)[x, z] - cutoff, 0.0, 20.0, xtol=1e-6)
        inside = plain_evidence(family(rank - 2e-6), n0, n1) >= cutoff - 1e-9
    alpha = np.sin(dense(x, n0, 0.05)) ** 2
    for t in steps[::-1]:
        if tail(inside.astype(float), n0, n1, alpha, family(t).beta(alpha)).max() <= (1 - ALPHA_SHARE) * 0.05:
            return float(t)
    return 0.0
