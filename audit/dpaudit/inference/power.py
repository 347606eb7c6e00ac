"""How small a violation a given number of trials would have shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.fixed.binomial import MIN_PROBABILITY
from dpaudit.inference.fixed.exact_binomial import p_value
from dpaudit.inference.fixed.regions import deviations, evidence_against, thresholds_for_claim
from dpaudit.inference.sequential.alternatives import scaled
from dpaudit.inference.sequential.strategy import Strategy
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect

Law = tuple[Array, Array]
"""Laws of the bin of the log-likelihood ratio under d0 and d1, (BINS,) each."""

_MIN_LOG_PAYOFF = -60.0  # log payoff below which an outcome has ended a bet anyway


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
    payoffs0, squares0, payoffs1, squares1 = _payoffs(strategy)
    mean0, mean1 = payoffs0 @ p, payoffs1 @ q
    variance = (squares0 @ p - mean0**2) + (squares1 @ q - mean1**2)
    return mean0 + mean1 - strategy.log_prices(claim), np.maximum(variance, 0.0)


@lru_cache(maxsize=4)
def _payoffs(strategy: Strategy) -> tuple[Array, Array, Array, Array]:
    """Log payoffs of outputs of d0 and their squares, and the same of d1."""
    payoffs0, payoffs1 = (
        np.maximum(strategy.log_payoffs0, _MIN_LOG_PAYOFF),
        np.maximum(strategy.log_payoffs1, _MIN_LOG_PAYOFF),
    )
    return payoffs0, payoffs0**2, payoffs1, payoffs1**2


def threshold_margin(claim: TradeoffFunction, truth: Law, trials: int, *, significance: float, power: float) -> float:
    """By how many standard deviations the fixed test clears its cutoff with probability `power`; an estimate.

    With the best single threshold.  The signed root of the likelihood ratio is nearly normal with variance 1.
    """
    p, q = truth
    reached = float(np.max(deviations(claim, trials * p, trials, trials * q, trials)))
    return reached - float(-ndtri(significance) + ndtri(power))


_PILOTS, _OUTCOMES = 64, 16  # simulated pilots, and outcomes of each one's region
_CAUTION = 0.03  # more power than is stated: what so few pilots may be off by
_TRIES = 8


def fixed_margin(
    claim: TradeoffFunction, truth: Law, *, pilot: int, trials: int, significance: float, power: float
) -> float:
    """By how many standard deviations a fixed audit clears its cutoff with probability `power`, if >= 0.

    Whole audits are simulated: a pilot, the region it freezes, the counts of that region.  Of the outcome that is
    exceeded with probability `power`, and a little more, the p-value is the exact one.  Deterministic.

    Args:
        claim: what is tested, for both orders.
        truth: laws of the bin of the log-likelihood ratio under d0 and d1, (BINS,) each.
        pilot: outputs of each dataset that choose the region.
        trials: outputs of each dataset that are tested.
        significance: of the test.
        power: probability with which the margin is reached.
    """
    best = threshold_margin(claim, truth, trials, significance=significance, power=power)
    if best < 0:
        return best
    rng = np.random.default_rng(0)
    p, q = (side / side.sum() for side in truth)
    pilots = np.array([(rng.multinomial(pilot, p), rng.multinomial(pilot, q)) for _ in range(_PILOTS)])
    regions = thresholds_for_claim(pilots[:, 0], pilots[:, 1], claim, trials=trials, significance=significance)
    alpha, beta = np.cumsum(p[::-1])[::-1][1:][regions], np.cumsum(q)[:-1][regions]
    x, z = (rng.binomial(trials, np.minimum(rate, 1.0), size=(_OUTCOMES, _PILOTS)).ravel() for rate in (alpha, beta))
    order = np.argsort(evidence_against(claim, x, trials, z, trials))
    at = order[max(0, math.floor((1 - power - _CAUTION) * len(order)))]
    found = max(p_value(claim, int(x[at]), trials, trials - int(z[at]), trials), MIN_PROBABILITY)
    return float(ndtri(significance) - ndtri(found))


@lru_cache(maxsize=256)
def least_detectable_fixed(
    claim: TradeoffFunction, *, pilot: int, trials: int, significance: float, power: float
) -> TradeoffFunction | None:
    """`least_detectable` of a fixed audit, its pilot's choice of a region included; arguments as of `fixed_margin`."""
    missing = 0.0  # standard deviations that the best region must clear the cutoff by

    def margin(law: Law) -> float:
        return threshold_margin(claim, law, trials, significance=significance, power=power) - missing

    for _ in range(_TRIES):
        least = least_detectable(claim, margin)
        if least is None:
            return None
        found = fixed_margin(
            claim, scaled(least, 1.0), pilot=pilot, trials=trials, significance=significance, power=power
        )
        if found >= 0:
            return least
        missing += max(-found, 0.05)
    return None


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
        if high > _MAX_EVIDENCE:
            return None

    def close(high: float, low: float) -> bool:
        return _readable(high) <= _readable(low) or high - low <= 1e-3 * high

    return _readable(bisect(seen, inside=high, outside=high / 1.5, close=close).inside)


_MAX_EVIDENCE = 60.0  # nats or standard deviations; the evidence is not counted beyond


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


def rule_of_three_rate(trials: float) -> float:
    """The probability of an event that shows in none of `trials` runs with probability 5 %: about 3/trials.

    Rarer events are missed more often.  They may show all the same.
    """
    return float(-np.expm1(math.log(0.05) / trials)) if trials else 1.0


def largest_epsilon(trials: float, *, significance: float) -> float:
    """The epsilon at delta = 0 above which no valid test is sure to refute, whatever the mechanism does.

    Theorem:
        Let a test of "the mechanism is epsilon-DP" on n runs of d0 and n runs of d1, of any pairs, refute a true
        claim with probability at most s.  Then it refutes with probability at most s (1 + e^-epsilon)^(2n), whatever
        the mechanism.  If the test refutes the outcome that speaks most clearly against the claim whenever it
        refutes any outcome at all, it never refutes an epsilon at which that number exceeds 1.

    Proof:
        Let (P, Q) be the laws of a mechanism.  Then P' = (e^epsilon P + Q)/(1 + e^epsilon) and Q' = (P + e^epsilon
        Q)/(1 + e^epsilon) keep the claim.  All 2n draws from (P', Q') are draws from (P, Q) with probability
        (1 + e^-epsilon)^(-2n).  So s is at least that times the probability of a refutation under (P, Q).  For the
        second part let P and Q be certain, each of its own most telling output: then the test refutes with
        probability 1 or never.  The wealth of `strategy` and the evidence of `exact_binomial` are monotone in every
        output, so both tests are of that kind.  Hence `epsilon_lower(0)` is never above this value.

        A test that singles out a rare outcome may refute more by luck, but only with the probability above.

    Args:
        trials: runs per dataset, those of all pairs together; a half where an odd number of outputs was counted.
        significance: of the test.
    """
    if trials <= 0:
        return 0.0
    return max(0.0, -math.log(math.expm1(-math.log(significance) / (2 * trials))))
