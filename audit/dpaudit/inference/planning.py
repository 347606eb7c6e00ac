"""How small a violation a given number of trials would have shown."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from dpaudit.claims import ApproxDP, Array, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.alternatives import scaled
from dpaudit.inference.regions import deviations
from dpaudit.inference.strategy import Strategy

Law = tuple[Array, Array]
"""Laws of the bin of the log-likelihood ratio under d0 and d1, (BINS,) each."""

_RUIN = -60.0  # log payoff below which an outcome has ended a bet anyway


def power_margin(
    strategy: Strategy, claim: TradeoffFunction, truth: Law, trials: int, *, significance: float, power: float
) -> float:
    """By how many nats the log-wealth after `trials` clears log(1/significance) with probability `power`.

    `truth`: laws of the bin of the log-likelihood ratio under d0 and d1, (BINS,) each.  A bet's log-wealth is a sum
    of independent terms, so nearly normal; the best single bet is a lower bound for the mixture.  An estimate: it
    plans and explains audits and decides no verdict.
    """
    growth, variance = growths(strategy, claim, truth)
    reached = strategy.log_weights + trials * growth - ndtri(power) * np.sqrt(trials * variance)
    return float(np.max(reached)) + math.log(significance)


def growths(strategy: Strategy, claim: TradeoffFunction, truth: Law) -> tuple[Array, Array]:
    """Mean and variance of what each bet's log-wealth gains in one trial, (m,) each."""
    p, q = truth
    payoffs0, payoffs1 = np.maximum(strategy.log_payoffs0, _RUIN), np.maximum(strategy.log_payoffs1, _RUIN)
    mean0, mean1 = payoffs0 @ p, payoffs1 @ q
    variance = (payoffs0**2 @ p - mean0**2) + (payoffs1**2 @ q - mean1**2)
    return mean0 + mean1 - strategy.log_prices(claim), np.maximum(variance, 0.0)


def threshold_margin(claim: TradeoffFunction, truth: Law, trials: int, *, significance: float, power: float) -> float:
    """By how many standard deviations the fixed test clears its cutoff with probability `power`; an estimate.

    With the best single threshold.  The signed root of the likelihood ratio is nearly normal with variance 1.
    """
    p, q = truth
    reached = float(np.max(deviations(claim, trials * p, trials, trials * q, trials)))
    return reached - float(-ndtri(significance) + ndtri(power))


def least_detectable(claim: TradeoffFunction, margin: Callable[[Law], float]) -> TradeoffFunction | None:
    """The least violation that an audit would most likely have found, as a claim that is just kept.

    `margin`: of the audit against a truth, >= 0 if that would have been found.  It is looked for in the claim's own
    family if that is the family of some noise (Gaussian, Laplace, randomised response with or without a mass delta),
    else among Gaussian noise.  Assumes that the attack knows the likelihood ratio.  None if nothing in the family would
    have been seen.
    """
    family = _family(claim)
    least = least_parameter(lambda parameter: margin(scaled(family(parameter), 1.0)) >= 0)
    return None if least is None else family(least)


def least_parameter(seen: Callable[[float], bool]) -> float | None:
    """The least parameter at which a violation is seen, to three digits, rounded up; None if there is none."""
    high = 0.01
    while not seen(high):
        high *= 1.5
        if high > _MOST:
            return None
    low = high / 1.5
    while _readable(high) > _readable(low) and high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return _readable(high)


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
    """No valid test can certify a larger epsilon at delta = 0, whatever comes out of so many runs on each dataset.

    *Proof.*  Randomised response is epsilon-DP and gives the most telling outputs, all of d0 and all of d1 on their own
    side, with probability (1 + e^-epsilon)^(-2 trials); a test that ever refutes epsilon refutes it then.  Where this
    exceeds `significance`, no valid test may do so.
    """
    if trials == 0:
        return 0.0
    return max(0.0, -math.log(math.expm1(-math.log(significance) / (2 * trials))))
