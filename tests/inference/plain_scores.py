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


def simulated_confident(claim: TradeoffFunction, m: int, r: int, draws: int, rng: np.random.Generator) -> Array:
    """Simulate right guesses for the most distinguishable pair, U without and f(U) with a canary, (draws,)."""
    uniform, coins = rng.random((draws, m)), rng.random((draws, m)) < 0.5
    number = np.where(coins, claim.beta(uniform), uniform)
    mirrored = claim.beta(number)  # below the number where the guess is "included"
    guessed, confidence = mirrored > number, np.minimum(mirrored, number)
    order = np.argsort(confidence, axis=1)[:, :r]
    return np.asarray(np.take_along_axis(guessed == coins, order, axis=1).sum(axis=1))


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
