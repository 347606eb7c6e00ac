"""Slow reference implementations of the bounds from scores, written from the formulas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import beta, binom

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics.arrays import Array


def plain_confident(claim: TradeoffFunction, m: int, r: int, v: int) -> float:
    """Compute P[at most r - v of the r most confident guesses are wrong] by quadrature over the order statistic."""

    def wrong(u: float) -> float:
        if u <= 1 - claim.beta(0.0):  # these canaries are revealed
            return 0.0
        return float(brentq(lambda a: a + 1 - claim.beta(a) - u, 0.0, u / 2 + 1e-9)) / u

    if r == m:
        return float(binom.cdf(r - v, r, wrong(1.0)))
    law = beta(r + 1, m - r)
    low, high = law.ppf(1e-13), law.ppf(1 - 1e-13)
    return float(quad(lambda u: law.pdf(u) * binom.cdf(r - v, r, wrong(u)), low, high, limit=200)[0])


def plain_levels(claim: TradeoffFunction, m: int, numbers: tuple[int, int], nodes: int = 40) -> Array:
    """Compute P[K <= 0], P[K <= 1], ... in the theorem of `levels` by quadrature over both order statistics.

    The slope of a is a difference over a short distance, and the law of K is a product of polynomials.
    """
    r1, r2 = numbers

    def wrong(u: float) -> float:
        if u <= 1 - claim.beta(0.0):  # these canaries are revealed
            return 0.0
        return float(brentq(lambda a: a + 1 - claim.beta(a) - u, 0.0, u / 2 + 1e-9, xtol=1e-15))

    def law(e: float, weight: int, size: int) -> Array:
        one = np.zeros(weight + 1)
        one[0], one[weight] = 1 - e, e
        found = np.ones(1)
        for _ in range(size):
            found = np.convolve(found, one)
        return found

    points, weights = np.polynomial.legendre.leggauss(nodes)
    points, weights = (points + 1) / 2, weights / 2
    total = np.zeros(5 * r1 + 3 * (r2 - r1) + m - r2 + 1)
    for p1, w1 in zip(points, weights, strict=True):
        x = float(beta(r1 + 1, m - r1).ppf(p1))
        at_x = (wrong(x) - wrong(x - 1e-6)) / 1e-6
        first = np.convolve(law(wrong(x) / x, 5, r1), law(at_x, 3, 1))
        for p2, w2 in zip(points, weights, strict=True):
            y = x + (1 - x) * float(beta(r2 - r1, m - r2).ppf(p2))
            second = law((wrong(y) - wrong(x)) / (y - x), 3, r2 - r1 - 1)
            at_y = (wrong(y) - wrong(y - 1e-6)) / 1e-6
            third = np.convolve(law(at_y, 1, 1), law((wrong(1.0) - wrong(y)) / (1 - y), 1, m - r2 - 1))
            total += w1 * w2 * np.cumsum(np.convolve(np.convolve(first, second), third))
    return total


def simulated_wrong(claim: TradeoffFunction, m: int, draws: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Simulate wrong guesses for the most distinguishable pair, the most confident first, (draws, m)."""
    uniform, coins = rng.random((draws, m)), rng.random((draws, m)) < 0.5
    number = np.where(coins, claim.beta(uniform), uniform)
    mirrored = claim.beta(number)  # below the number where the guess is "included"
    order = np.argsort(np.minimum(mirrored, number), axis=1)
    return np.asarray(np.take_along_axis((mirrored > number) != coins, order, axis=1))


def simulated_confident(claim: TradeoffFunction, m: int, r: int, draws: int, rng: np.random.Generator) -> Array:
    """Simulate right guesses for the most distinguishable pair, U without and f(U) with a canary, (draws,)."""
    return np.asarray(r - simulated_wrong(claim, m, draws, rng)[:, :r].sum(axis=1))


def simulated_runs(claim: TradeoffFunction, n0: int, n1: int, r: int, draws: int, rng: np.random.Generator) -> Array:
    """Simulate the number of d1's among the r smallest numbers, if d0 shows U and d1 shows f(U), (draws,)."""
    numbers = np.hstack([rng.random((draws, n0)), claim.beta(rng.random((draws, n1)))])
    return np.asarray((np.argsort(numbers, axis=1)[:, :r] >= n0).sum(axis=1))


def rare_revelation(epsilon: float, delta: float, m: int, r: int, v: int) -> float:
    """Compute the p-value of (epsilon, delta)-DP by summation; a canary is revealed with probability delta."""
    total = 0.0
    for revealed in range(m + 1):
        sure = min(revealed, r)
        total += binom.pmf(revealed, m, delta) * binom.sf(v - sure - 1, r - sure, expit(epsilon))
    return float(total)


@dataclass(frozen=True)
class Channel:
    """Dependence of the scores on the coins; every canary keeps the claim."""

    name: str

    def scores(self, coins: npt.NDArray[np.bool_], mu: float, rng: np.random.Generator) -> Array:
        noise, odd = rng.normal(0.0, 1.0, coins.shape), np.arange(coins.shape[-1]) % 2 == 1
        exact: Array = coins * mu + noise
        match self.name:
            case "exact":
                found = exact
            case "rounded":
                found = np.round(exact)
            case "scaled":  # every other canary has a different scale
                found = exact * np.where(odd, 1.0, 30.0)
            case "half":  # half of the canaries reveal nothing
                found = np.where(odd, exact, noise)
            case "cubed":
                found = exact**3
            case _:
                raise ValueError(self.name)
        return found


def right_guesses(answers: npt.NDArray[np.int8], included: npt.ArrayLike) -> tuple[int, int]:
    """Return the number of guesses and the number of right guesses."""
    right = answers == np.where(np.asarray(included, dtype=bool), 1, -1)
    return int(np.count_nonzero(answers)), int(np.count_nonzero(right))
