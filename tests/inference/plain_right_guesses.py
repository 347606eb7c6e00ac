"""Slow reference implementations of the law of right guesses about both sides, written from the definition."""

from __future__ import annotations

from math import lgamma

import numpy as np
from scipy.special import expit, ndtr
from scipy.stats import binom

from dpaudit.claims import TradeoffFunction


def plain_gaussian(mu: float, m: int, r: int, v: int, points: int = 60) -> float:
    """Compute P[at least v of r < m - 1 guesses are right] by quadrature over the two ranks next to the guesses."""
    low, high = r // 2, r - r // 2
    at = np.linspace(-12, 12 + mu, 100_001)
    ranks, wrong = (ndtr(at) + ndtr(at - mu)) / 2, ndtr(at - mu) / 2
    node, weight = np.polynomial.legendre.leggauss(points)
    node, weight = (node + 1) / 2, weight / 2
    constant = lgamma(m + 1) - lgamma(low + 1) - lgamma(high + 1) - lgamma(m - r - 1)
    total, k = 0.0, np.arange(low + 1)
    for x, one in zip(node, weight, strict=True):
        y = x + (1 - x) * node
        density = np.exp(constant + low * np.log(x) + (m - r - 2) * np.log(y - x) + high * np.log(1 - y))
        of_low = binom.pmf(k, low, 1 - np.interp(x, ranks, wrong) / x)
        of_high = binom.sf(v - k[:, None] - 1, high, 1 - np.interp(1 - y, ranks, wrong) / (1 - y))
        total += one * float(np.sum(weight * (1 - x) * density * (of_low @ of_high)))
    return total


def plain_response(epsilon: float, m: int, r: int, v: int) -> float:
    """Sum over the number of canaries whose randomised response is "left out"."""
    total = 0.0
    for out in range(m + 1):
        agreeing = min(r // 2, out) + min(r - r // 2, m - out)
        right = np.convolve(
            binom.pmf(np.arange(agreeing + 1), agreeing, expit(epsilon)),
            binom.pmf(np.arange(r - agreeing + 1), r - agreeing, expit(-epsilon)),
        )
        total += float(binom.pmf(out, m, 0.5) * right[v:].sum())
    return total


def simulated_right(
    truth: TradeoffFunction, m: int, numbers: tuple[int, ...], *, runs: int, half: bool = False
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Simulate runs with the most distinguishable scores: U if a canary is left out, and the claim's f(U) if not."""
    rng = np.random.default_rng(7)
    coins = rng.random((runs, m)) < 0.5
    if half:
        coins = rng.permuted(np.tile(np.arange(m) < m // 2, (runs, 1)), axis=1)
    uniform = rng.random((runs, m))
    value = np.where(coins, truth.beta(uniform), uniform)
    # the ratio of the densities of f(U) and U rises as the value falls; ties and atoms are ordered at random
    order = np.argsort(-value + 1e-12 * rng.random((runs, m)), axis=1)
    ranked = np.take_along_axis(coins, order, axis=1)
    each = [(~ranked[:, : r // 2]).sum(axis=1) + ranked[:, m - (r - r // 2) :].sum(axis=1) for r in numbers]
    return np.asarray(np.sum(each, axis=0))
