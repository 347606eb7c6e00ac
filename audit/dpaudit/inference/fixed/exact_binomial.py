"""The exact test of a claim at a fixed number of trials, from the counts of one frozen rejection region.

A region S is chosen before the trials that are counted.  Of n0 outputs of d0, x are in S (false positives).  Of n1
outputs of d1, y are in S and z = n1 - y are not (false negatives).  Then x ~ Binomial(n0, alpha) and
z ~ Binomial(n1, beta) are independent, and the claim states beta >= f(alpha).  The difficulty is that the claim leaves
one coordinate of the point (alpha, beta) unknown.

**Evidence** orders the outcomes by how extreme they are.  Evidence is the log-likelihood ratio against the claim, that
is, the minimum divergence

    evidence(x, z) = min over points (a, f(a)) of  (n0+1) kl(p, a)+ + (n1+1) kl(q, f(a))+

in nats, with the rates p = (x + 1/2)/(n0 + 1) and q = (z + 1/2)/(n1 + 1).  Here kl(p, a)+ is the divergence of
Bernoulli(p) from Bernoulli(a) if p < a and 0 otherwise, since too many errors are not evidence against a claim.  Half
an output is added to each cell to make rare and common events comparable.  Otherwise an event that d0 never showed
would rank as too extreme, at the expense of all other outcomes.  The points form a fixed grid along the curve; see
`Arc`.

**Lemma 1.**  Evidence does not rise with x, nor with z, nor when f is replaced by a lower f.
*Proof.*  The same holds for each term of the minimum, at each point of the grid.

So the outcomes with evidence of at least e are {z <= limit(x)} for a nonincreasing limit (`Outcomes`).  Their
probability F(alpha, beta) = sum_x Bin(x; n0, alpha) P[Bin(n1, beta) <= limit(x)] falls with alpha and with beta.
Under the claim it is at most F(alpha, f(alpha)), in which only alpha is unknown.

**Theorem 1 (p-value).**  Let M(s) = max { F(a, f(a)) : a in C(s) } / (1 - c), where F is the probability of all
outcomes with at least the observed evidence, c = 1/200, and C(s) the Clopper-Pearson interval of alpha at confidence
1 - cs.  If the claim is true, P[M(s) <= s] <= s for every s, and these events grow with s: inf { s : M(s) <= s } is a
p-value.  (Berger & Boos 1994, JASA 89, 1012-1016; here the interval's level is a share of the test's level.)

*Proof.*  P[alpha not in C(s)] <= cs.  Otherwise M(s) <= s implies F(alpha, beta) <= s - cs.  F at the true point is the
tail probability of the observed evidence, so this event has probability at most s - cs.  C(s) shrinks as s grows, so
M(s) falls.

**Theorem 2 (bounds).**  Let f_t fall as t grows, and let t* = sup { t : evidence against f_t >= a cutoff }, an
approximate bound.  Rank the outcomes by t*, and outcomes without t* by their evidence against f_0.  Let F be the
probability of all outcomes of at least the observed rank.  Then
L = sup { t : max { F(a, f_t(a)) : a in C(s) } <= s - cs } satisfies P[L > t] <= s for every t with f_t true.

*Proof.*  By Lemma 1, {t* >= u} = {evidence against f_u >= cutoff}, a region as above.  The ranks do not depend on t, so
the maximum grows with t, and L > t only if t itself is refuted.  This refutation has probability at most s, as in
Theorem 1.

Apart from the cost of the share c, L is the largest valid bound for the given ranks (Buehler 1957, JASA 52, 482-493).
Kabaila & Lloyd 2002, Technometrics 44, 390-395, advise ranking by an approximate bound of the same significance.  The
bounds are not computed by inverting the p-value of Theorem 1, whose ranks change with the claim.  That p-value need
not be monotone along a family, so bisection could return an invalid bound.

**Theorem 3 (all sizes at once).**  Take the ranks of Theorem 2 from one family, fixed before the counted outputs are
sampled.  Say that a curve g is refuted if max { F(a, g(a)) : a in C(s) } <= s - cs.  If the mechanism satisfies the
curves of a set, infinitely many perhaps, some of them is refuted with probability at most s.

*Proof.*  A satisfied curve has g(alpha) <= beta at the true point.  By Lemma 1, F(alpha, beta) <= F(alpha, g(alpha)).
So if alpha is in C(s) and some satisfied curve is refuted, then F(alpha, beta) <= s - cs, whichever curve this is.
This event has probability at most s - cs, and P[alpha not in C(s)] <= cs.

**Orientation.**  The complement of S, with d0 and d1 exchanged, has the counts (z, x).  Claims are made symmetric here,
so the evidence is symmetric, too.  Hence the region and its complement are interchangeable, except that C(s) becomes an
interval of beta.  Only a higher rate of S under d1 than under d0 is evidence, so S must be the event that indicates d1.

**Between grid points** of alpha, `largest_probability` bounds F over whole cells; see Lemma 2 there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.inference.fixed.binomial import PROBABILITY_FLOOR, check_count, clopper_pearson, rounding
from dpaudit.inference.fixed.evidence import Outcomes, evidence_of, largest_probability, square_sine
from dpaudit.numerics import Array, kept

_LARGEST = 64.0  # parameter that is tried
_CORNERS = 64  # of the staircase of `Sizes.boundary`
ALPHA_SHARE = 1 / 200  # share c of the significance spent on the interval of alpha


@kept(256)  # the verdict, the witness and the report need the same p-value
def p_value(claim: TradeoffFunction, x: int, n0: int, y: int, n1: int) -> float:
    """Return an exact p-value of a claim.

    `x` of `n0` outputs of d0, and `y` of `n1` outputs of d1, are in the region.  It is 1 if the rates agree with the
    claim, and rounded up: above 0.01 by at most 3 %, below by at most 3 % of its logarithm.

    Theorem:
        If the claim is true, P[p_value <= s] <= s for every s, n0, n1 and mechanism; see Theorem 1 of this module.

    ValueError if a count is out of its range.
    """
    check_count(x, n0)
    check_count(y, n1)
    if n0 == 0 or n1 == 0:
        return 1.0
    claim = claim.symmetrized()
    observed = evidence_of(claim, x, n0, n1 - y, n1)
    if observed <= rounding(n0 + n1):
        return 1.0

    def attained(level: float) -> float:
        low, high = clopper_pearson(x, n0, significance=ALPHA_SHARE * level)
        region = Outcomes.of(claim, observed, n0, n1, low, high)
        return max(largest_probability(region, claim, low, high) / (1 - ALPHA_SHARE), PROBABILITY_FLOOR)

    # max(s, M(s)) is at least the p-value for every s.  The iteration to s = M(s) starts at the normal approximation
    # and takes one or two steps, since M is nearly constant.
    s, p = max(float(ndtr(-math.sqrt(2 * observed))), PROBABILITY_FLOOR), 1.0
    for _ in range(5):
        m = attained(s)
        p = min(p, max(s, m))
        if abs(math.log(m / s)) < 0.03 + 0.02 * max(math.log(0.01 / p), 0.0):
            break
        s = math.sqrt(s * m) if m > s else m
    return p


def mu_lower(x: int, n0: int, y: int, n1: int, *, significance: float) -> float:
    """Compute a lower confidence bound of mu; see `parameter_lower`.

    Theorem:
        If the mechanism is mu-GDP, P[mu_lower > mu] <= significance for every n0 and n1; see Theorem 2 of this module.
    """
    return parameter_lower(GaussianDP, x, n0, y, n1, significance=significance)


def epsilon_lower(x: int, n0: int, y: int, n1: int, *, delta: float, significance: float) -> float:
    """Compute a lower confidence bound of epsilon, in nats, at a delta in [0, 1); see `parameter_lower`.

    Theorem:
        If the mechanism is (epsilon, delta)-DP, P[epsilon_lower > epsilon] <= significance; see Theorem 2 of this
        module.
    """
    return parameter_lower(lambda t: ApproxDP(epsilon=t, delta=delta), x, n0, y, n1, significance=significance)


def parameter_lower(
    family: Callable[[float], TradeoffFunction], x: int, n0: int, y: int, n1: int, *, significance: float
) -> float:
    """Compute a lower confidence bound of the parameter of a nested family of claims.

    `family` maps a parameter >= 0 to a claim that weakens as it grows; the counts are those of `p_value`.  The bound is
    at most 64, 0 if nothing is refuted, and rounded down by at most a few hundredths of a standard deviation.

    Theorem:
        If family(t) is true, P[parameter_lower > t] <= significance; see Theorem 2 of this module.

    ValueError if a count or the significance is out of its range.
    """
    check_count(x, n0, significance)
    check_count(y, n1, significance)
    if n0 == 0 or n1 == 0 or significance == 0:
        return 0.0
    return Sizes.of(family, x, n0, y, n1, significance=significance).parameter(family)


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Which curves the counts of one frozen region refute at once; see Theorem 3 of this module."""

    outcomes: Outcomes | None  # outcomes of at least the observed rank; None if no curve is refuted
    low: float  # the interval C(s) of alpha
    high: float
    allowed: float  # s - cs
    rough: float  # an approximate bound of the parameter of the family that ranks the outcomes
    precision: float  # of bounds of parameters

    @classmethod
    def of(
        cls, family: Callable[[float], TradeoffFunction], x: int, n0: int, y: int, n1: int, *, significance: float
    ) -> Sizes:
        """Return the refuted curves for ranks by the parameter of a family."""
        precision = 0.003 / math.sqrt(min(n0, n1))

        def rank(t: float) -> float:
            return math.sqrt(2 * evidence_of(family(t).symmetrized(), x, n0, n1 - y, n1)) - math.sqrt(2 * usual)

        # The observed t* is rounded down.  More outcomes then have at least this rank, which is the safe side.
        usual = max(float(ndtri(min(significance, 0.45))) ** 2 / 2, 1e-2)
        cutoff = min(usual, evidence_of(family(0.0).symmetrized(), x, n0, n1 - y, n1))
        if cutoff <= rounding(n0 + n1):
            return cls(None, 0.0, 1.0, 0.0, 0.0, precision)
        rough = _last(rank, 0.0, precision) if cutoff == usual else 0.0
        low, high = clopper_pearson(x, n0, significance=ALPHA_SHARE * significance)
        outcomes = Outcomes.of(family(rough).symmetrized(), cutoff, n0, n1, low, high)
        return cls(outcomes, low, high, (1 - ALPHA_SHARE) * significance, rough, precision)

    def _largest(self, claim: TradeoffFunction) -> float:
        if self.outcomes is None:
            return 1.0
        return largest_probability(self.outcomes, claim.symmetrized(), self.low, self.high)

    def refutes(self, claim: TradeoffFunction) -> bool:
        """Return whether the counts refute a claim."""
        return self._largest(claim) <= self.allowed

    def boundary(self) -> tuple[Array, Array]:
        """Return corners (a, b) of a staircase that covers all points (alpha, beta) that are not refuted.

        Each such point, with alpha in C(s), has alpha <= a and beta <= b for some corner: F falls with alpha, so on a
        cell [a1, a2] of alpha, the largest beta that is not refuted at a1 is at least that of every alpha of the cell.
        """
        if self.outcomes is None:
            return np.array([1.0]), np.array([1.0])
        a = square_sine(np.linspace(math.asin(math.sqrt(self.low)), math.asin(math.sqrt(self.high)), _CORNERS + 1))
        low, high = np.zeros(_CORNERS), np.ones(_CORNERS)
        for _ in range(40):
            middle = (low + high) / 2
            refuted = self.outcomes.probability(a[:-1], middle) <= self.allowed
            low, high = np.where(refuted, low, middle), np.where(refuted, middle, high)
        possible = self.outcomes.probability(a[:-1], np.zeros(_CORNERS)) > self.allowed  # for some beta
        return a[1:][possible], high[possible]

    def parameter(self, family: Callable[[float], TradeoffFunction]) -> float:
        """Return the largest refuted parameter of a nested family, rounded down and at most 64; 0 without one."""
        if self.outcomes is None:
            return 0.0

        def margin(t: float) -> float:
            largest = self._largest(family(t))
            gap = _deviate(largest) - _deviate(self.allowed)
            return (
                max(gap, 0.0) if largest <= self.allowed else min(-PROBABILITY_FLOOR, gap)
            )  # exact sign, also for NaN

        return _last(margin, self.rough, self.precision)


def _last(margin: Callable[[float], float], guess: float, precision: float) -> float:
    """Find the largest t in [0, 64] with margin(t) >= 0, rounded down by at most `precision`; 0 if there is none.

    The margin, in standard deviations, is nearly linear, so the search alternates between the secant's root and the
    middle of a bracket.  The result depends on the signs of `margin` only.
    """
    low = high = guess
    of_low = of_high = margin(guess)
    step = 8 * precision
    while of_low < 0:
        if low <= 0:
            return 0.0
        high, of_high = low, of_low
        low, step = max(low - step, 0.0), 4 * step
        of_low = margin(low)
    while of_high >= 0:
        if high >= _LARGEST:
            return _LARGEST
        low, of_low = high, of_high
        high, step = min(high + step, _LARGEST), 4 * step
        of_high = margin(high)
    tried = 0
    while high - low > precision:
        tried += 1
        crossing = low + (high - low) * of_low / (of_low - of_high)
        t = ((low + high) / 2, crossing - precision / 3, crossing + precision / 3)[tried % 3]
        t = min(max(t, low + precision / 4), high - precision / 4)
        of_t = margin(t)
        if of_t >= 0:
            low, of_low = t, of_t
        else:
            high, of_high = t, of_t
    return low


def _deviate(p: float) -> float:
    """Return the normal deviate that is exceeded with probability p, clipped so that the result is finite."""
    return -float(ndtri(min(max(p, PROBABILITY_FLOOR), 1 - 1e-16)))


_POWER = 0.9  # probability with which the number of runs confirms a violation
_ENDLESS = 10**9  # runs per dataset; if more are needed, the counts show no sign of a violation


def runs_to_confirm(claim: TradeoffFunction, rates: tuple[float, float], runs: int, *, level: float) -> float:
    """Estimate the runs per dataset that the exact test of one region needs if its observed error rates are true.

    It is above `runs` and rounded up to two digits; inf if the rates show no sign of a violation.
    """
    alpha, beta = rates
    if runs == 0 or beta >= float(claim.beta(alpha)):
        return math.inf
    wanted = (float(-ndtri(level)) + float(ndtri(_POWER))) ** 2 / 2
    needed = float(runs)
    for _ in range(60):
        needed *= 1.5
        n = math.ceil(needed)
        if n > _ENDLESS:
            return math.inf
        if evidence_of(claim, round(n * alpha), n, round(n * beta), n) >= wanted:
            digits = max(0, math.floor(math.log10(needed)) - 1)
            return float(math.ceil(needed / 10**digits) * 10**digits)
    return math.inf
