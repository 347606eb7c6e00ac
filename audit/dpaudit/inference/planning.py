"""How small a violation a given number of trials would have shown."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from dpaudit.claims import ApproxDP, Array, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.alternatives import scaled
from dpaudit.inference.strategy import Strategy

_RUIN = -60.0  # log payoff below which an outcome has ended a bet anyway


def power_margin(
    strategy: Strategy,
    claim: TradeoffFunction,
    truth: tuple[Array, Array],
    trials: int,
    *,
    significance: float,
    power: float,
) -> float:
    """By how many nats the log-wealth after `trials` clears log(1/significance) with probability `power`.

    `truth`: laws of the bin of the log-likelihood ratio under d0 and d1, (BINS,) each.  A bet's log-wealth is a sum
    of independent terms, so nearly normal; the best single bet is a lower bound for the mixture.  An estimate: it
    plans and explains audits and decides no verdict.
    """
    p, q = truth
    payoffs0, payoffs1 = np.maximum(strategy.log_payoffs0, _RUIN), np.maximum(strategy.log_payoffs1, _RUIN)
    mean0, mean1 = payoffs0 @ p, payoffs1 @ q
    variance = (payoffs0**2 @ p - mean0**2) + (payoffs1**2 @ q - mean1**2)
    growth = mean0 + mean1 - strategy.log_prices(claim)
    reached = strategy.log_weights + trials * growth - ndtri(power) * np.sqrt(trials * np.maximum(variance, 0.0))
    return float(np.max(reached)) + math.log(significance)


def least_detectable(
    strategy: Strategy, claim: TradeoffFunction, trials: int, *, significance: float, power: float = 0.9
) -> TradeoffFunction | None:
    """The least violation that an audit of this size would most likely have found, as a claim that is just kept.

    It is looked for in the claim's own family if that is the family of some noise (Gaussian, Laplace, randomised
    response with or without a mass delta), else among Gaussian noise.  Assumes that the attack knows the likelihood
    ratio.  None if nothing in the family would have been seen.
    """
    family = _family(claim)

    def seen(parameter: float) -> bool:
        truth = scaled(family(parameter), 1.0)
        return power_margin(strategy, claim, truth, trials, significance=significance, power=power) >= 0

    high = 0.01
    while not seen(high):
        high *= 1.5
        if high > _MOST:
            return None
    low = high / 1.5
    while _readable(high) > _readable(low) and high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return family(_readable(high))


_MOST = 60.0  # nats or standard deviations; the evidence is not counted beyond


def _family(claim: TradeoffFunction) -> Callable[[float], TradeoffFunction]:
    match claim:
        case PureDP():
            return PureDP
        case ApproxDP():
            return lambda epsilon: ApproxDP(epsilon=epsilon, delta=claim.parameters["delta"])
        case LaplaceDP():
            return LaplaceDP
    return GaussianDP


def _readable(value: float) -> float:
    """`value` rounded up to three significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit * (1 - 1e-9)) * unit:.3g}")


def smallest_rate(trials: int) -> float:
    """Events rarer than this show up in none of `trials` runs with probability over 5 %: about 3/trials."""
    return 1 - 0.05 ** (1 / trials) if trials else 1.0


def largest_epsilon(trials: int, *, significance: float) -> float:
    """The epsilon that perfect separation in all of `trials` runs would certify: Clopper-Pearson on both errors."""
    if trials == 0:
        return 0.0
    error = 1 - (significance / 2) ** (1 / trials)
    return max(0.0, math.log((1 - error) / error))
