"""What an audit can detect: the smallest violation with a given power, and the largest epsilon for a number of runs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate, repeat
from operator import mul

import numpy as np
from scipy.special import ndtri

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.fixed.binomial import PROBABILITY_FLOOR
from dpaudit.inference.fixed.exact_binomial import p_value
from dpaudit.inference.fixed.regions import deviations, evidence_against, thresholds_for_claim
from dpaudit.inference.sequential.alternatives import scaled
from dpaudit.inference.sequential.strategy import LOG_PAYOFF_FLOOR, Strategy
from dpaudit.numerics import Array, bisect

Law = tuple[Array, Array]
"""Probability of each bin of the log-likelihood ratio under d0, and under d1; two arrays of shape (BINS,)."""

_NO_GROWTH = 1e-10  # nats per trial; smaller growth is rounding error
_BETS = 40  # bets among which `certain_trials` finds the best one
_EXPONENTS = np.geomspace(0.02, 3.0, 25)  # grid of exponents of Chernoff bounds


def power_margin(
    strategy: Strategy,
    claim: TradeoffFunction,
    truth: Law,
    trials: int,
    *,
    significance: float,
    power: float,
    coin_selected: bool = False,
) -> float:
    """Estimate the log-wealth in nats that the test exceeds with probability `power`, minus log(1/significance).

    The log-wealth of a bet is nearly normal, and that of all bets is at least that of the best.  No verdict depends on
    it.
    """
    growth, variance = growths(strategy, claim, truth, coin_selected=coin_selected)
    reached = strategy.log_weights + trials * growth - ndtri(power) * np.sqrt(trials * variance)
    return float(np.max(reached)) + math.log(significance)


def growths(
    strategy: Strategy, claim: TradeoffFunction, truth: Law, *, coin_selected: bool = False
) -> tuple[Array, Array]:
    """Compute the mean, in nats, and the variance of the change in log-wealth of each bet in one trial; (m,) each.

    Let m0 and m1 be the means, and v0 and v1 the variances, of the payoffs of one output of each dataset.  If a trial
    has one output of each, the variance is v0 + v1.  If coins select the datasets of two outputs, the variance is
    v0 + v1 + (m0 - m1)^2 / 2.
    """
    p, q = truth
    payoffs0, squares0, payoffs1, squares1 = _payoffs(strategy)
    mean0, mean1 = payoffs0 @ p, payoffs1 @ q
    variance = (squares0 @ p - mean0**2) + (squares1 @ q - mean1**2)
    if coin_selected:
        variance = variance + (mean0 - mean1) ** 2 / 2
    return mean0 + mean1 - strategy.log_prices(claim), np.maximum(variance, 0.0)


def certain_trials(strategy: Strategy, claim: TradeoffFunction, truth: Law, needed: Array, power: float) -> float:
    """Return trials after which the log-wealth of one bet exceeds its threshold with a given probability.

    `needed` are the log-wealths c of the m bets in nats, (m,); the result is inf if no bet grows.

    Theorem (Chernoff 1952).  Let G be the sum of the changes in log-wealth of a bet in n independent trials, and let
    k(s) = log E[exp(-s g)] be the logarithm of the moment generating function of one change g.  For all s > 0,

        P[G < c] <= exp(s c + n k(s)).

    So n = (s c - log(1 - power)) / -k(s) trials suffice for every s with k(s) < 0.  The least number over a grid of s
    and over the bets with the largest growth is returned.  In contrast to a normal approximation, the number is on the
    safe side even if the evidence comes from few outputs, as under claims that allow large losses.
    """
    p, q = truth
    payoffs0, payoffs1 = strategy.log_payoffs0, strategy.log_payoffs1  # not clipped, because rare ruin counts
    growth, _ = growths(strategy, claim, truth)
    best = np.argsort(needed / np.maximum(growth, _NO_GROWTH))[:_BETS]
    prices = strategy.log_prices(claim)[best, None]
    exponents = _EXPONENTS[None, :, None]
    with np.errstate(over="ignore", invalid="ignore"):
        moments0, moments1 = (
            np.where(law > 0, np.exp(-exponents * payoffs[best, None, :]) * law, 0.0).sum(axis=-1)
            for payoffs, law in ((payoffs0, p), (payoffs1, q))
        )
    rates = np.log(moments0) + np.log(moments1) + _EXPONENTS * prices
    trials = (_EXPONENTS * needed[best, None] - math.log1p(-power)) / np.maximum(-rates, _NO_GROWTH)
    return float(np.min(np.where((rates < -_NO_GROWTH) & (growth[best, None] > _NO_GROWTH), trials, math.inf)))


@lru_cache(maxsize=4)
def _payoffs(strategy: Strategy) -> tuple[Array, Array, Array, Array]:
    """Return the log payoffs of all bets and the squared log payoffs, for outputs of d0 and then of d1."""
    payoffs0 = np.maximum(strategy.log_payoffs0, LOG_PAYOFF_FLOOR)
    payoffs1 = np.maximum(strategy.log_payoffs1, LOG_PAYOFF_FLOOR)
    return payoffs0, payoffs0**2, payoffs1, payoffs1**2


def threshold_margin(claim: TradeoffFunction, truth: Law, trials: int, *, significance: float, power: float) -> float:
    """Estimate the margin, in standard deviations, by which the fixed test with the best threshold refutes a claim."""
    reached = float(np.max(deviations(claim, trials * truth[0], trials, trials * truth[1], trials)))
    return reached - float(-ndtri(significance) + ndtri(power))


_PILOTS, _OUTCOMES = 64, 16  # number of simulated pilots, and number of simulated outcomes for each pilot
_CAUTION = 0.03  # added to the requested power, because a simulation with 64 pilots has an error
_TRIES = 8  # maximum number of attempts to find a violation that simulated audits detect


def fixed_margin(
    claim: TradeoffFunction, truth: Law, *, pilot: int, trials: int, significance: float, power: float
) -> float:
    """Estimate the margin, in standard deviations, by which a fixed audit with a learned region refutes a claim.

    Complete audits are simulated, with a fixed seed, and sorted by evidence.  The margin is that of the exact test at a
    quantile that is exceeded with a probability slightly above `power`.  A negative `threshold_margin` is returned
    itself.
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
    found = max(p_value(claim, int(x[at]), trials, trials - int(z[at]), trials), PROBABILITY_FLOOR)
    return float(ndtri(significance) - ndtri(found))


@lru_cache(maxsize=256)
def least_detectable_fixed(
    claim: TradeoffFunction, *, pilot: int, trials: int, significance: float, power: float
) -> TradeoffFunction | None:
    """Find the smallest violation that a fixed audit detects with a given power; see `least_detectable`."""
    missing = 0.0  # margin in standard deviations that the best region must have

    def margin(law: Law) -> float:
        return threshold_margin(claim, law, trials, significance=significance, power=power) - missing

    for _ in range(_TRIES):
        least = least_detectable(claim, margin)
        if least is None:
            return None
        law = scaled(least, 1.0)
        left = fixed_margin(claim, law, pilot=pilot, trials=trials, significance=significance, power=power)
        if left >= 0:
            return least
        missing += max(-left, 0.05)
    return None


def least_detectable(claim: TradeoffFunction, margin: Callable[[Law], float]) -> TradeoffFunction | None:
    """Find the strongest claim that the smallest violation with a margin >= 0 satisfies; None if there is none."""
    return least_in_family(claim, lambda truth: margin(scaled(truth, 1.0)) >= 0)


def least_in_family(claim: TradeoffFunction, seen: Callable[[TradeoffFunction], bool]) -> TradeoffFunction | None:
    """Return the claim with the smallest parameter for which `seen` is true; None if there is none up to 60.

    The family is Laplace noise for a Laplace claim, randomised response for (epsilon, delta)-DP, and else Gaussian
    noise.  The parameter is rounded up to three significant digits.
    """
    family = _family(claim)
    first = bisect_left(_COARSE, True, key=lambda parameter: seen(family(parameter)))
    if first == len(_COARSE):
        return None

    def close(high: float, low: float) -> bool:
        return _readable(high) <= _readable(low) or high - low <= 1e-3 * high

    high = _COARSE[first]
    least = bisect(lambda parameter: seen(family(parameter)), inside=high, outside=high / 1.5, close=close).inside
    return family(_readable(least))


_LARGEST = 60.0  # parameter tried; the bins of `grid` end at a log-likelihood ratio of 60
_COARSE = [*accumulate(repeat(1.5, 21), mul, initial=0.01)]  # parameters tried first, up to `_LARGEST`


def largest_violation(claim: TradeoffFunction) -> TradeoffFunction:
    """Return the largest violation that `least_in_family` tries: nearly every output reveals its dataset."""
    return _family(claim)(_COARSE[-1])


def larger_violation(claim: TradeoffFunction, factor: float) -> TradeoffFunction | None:
    """Return the member of the family whose parameter is the claim's, times a factor; None if the claim has none."""
    named = isinstance(claim, PureDP | ApproxDP | LaplaceDP)
    parameter = float(claim.parameters["epsilon"]) if named else claim.mu()
    if not 0 < factor * parameter < _LARGEST:
        return None
    return _family(claim)(float(f"{factor * parameter:.6g}"))


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
    """Round a positive number up to three significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit * (1 - 1e-9)) * unit:.3g}")


def rule_of_three_rate(trials: float) -> float:
    """Return the probability, about 3/trials, of an event that occurs in none of `trials` runs with probability 5 %."""
    return float(-np.expm1(math.log(0.05) / trials)) if trials else 1.0


def largest_epsilon(trials: float, *, significance: float) -> float:
    """Return the epsilon in nats above which no valid test can refute epsilon-DP with certainty; 0 without trials.

    `trials` is n, summed over all pairs; it may be a half-integer if the total number of outputs is odd.

    Theorem:
        Let a test of the claim "the mechanism is epsilon-DP" use n runs on d0 and n runs on d1, summed over all pairs
        of datasets.  If the claim is true, let the test refute it with probability at most s.  Then the test refutes
        the claim with probability at most s (1 + e^-epsilon)^(2n) under every mechanism.  Now suppose that the test, if
        it refutes the claim on any outcome, also refutes it on the outcome with the strongest evidence.  Then the test
        never refutes an epsilon for which s (1 + e^-epsilon)^(2n) < 1.

    Proof:
        Let P and Q be the laws of an output of the mechanism on d0 and on d1.  Then P' = (e^epsilon
        P + Q)/(1 + e^epsilon) and Q' = (P + e^epsilon Q)/(1 + e^epsilon) satisfy the claim.  P' and Q' are mixtures, so
        all 2n samples from (P', Q') come from the components (P, Q) with probability (1 + e^-epsilon)^(-2n).  So s is
        at least (1 + e^-epsilon)^(-2n) times the probability of a refutation under (P, Q).  To prove the second
        statement, let P and Q each put all mass on the output that is the strongest evidence.  Then the test refutes
        with probability 1 or 0.  The wealth of `strategy` and the evidence of `exact_binomial` are monotone in every
        output, so the second statement applies to both tests.  Hence `epsilon_lower(0)` never exceeds this value.

        Other tests may refute a larger epsilon, but only with probability at most s (1 + e^-epsilon)^(2n).
    """
    if trials <= 0:
        return 0.0
    return max(0.0, -math.log(math.expm1(-math.log(significance) / (2 * trials))))
