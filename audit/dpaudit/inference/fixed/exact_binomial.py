"""The exact test of a claim at a fixed number of trials, from the counts of one frozen rejection region.

A region S is chosen before the trials that are counted.  Of n0 outputs of d0, x fall into S (false positives); of n1
outputs of d1, y do, and z = n1 - y are missed.  Then x ~ Binomial(n0, alpha) and z ~ Binomial(n1, beta), independent,
and the claim says beta >= f(alpha).  One point (alpha, beta) of the attack's curve is tested, and the claim leaves
one of its coordinates free: that is the difficulty.

**Evidence** says which outcomes are how extreme.  It is the likelihood ratio against the claim, the least divergence

    evidence(x, z) = min over points (a, f(a)) of  (n0+1) kl(p, a)+ + (n1+1) kl(q, f(a))+

in nats, with the rates p = (x + 1/2)/(n0 + 1) and q = (z + 1/2)/(n1 + 1), and kl(p, a)+ the divergence of
Bernoulli(p) from Bernoulli(a) if p < a and 0 otherwise: too many mistakes never speak against a claim.  Half an
output added to each cell makes rare and common events comparable; without it an event that d0 never showed counts as
too extreme, and the whole test pays for it.  The points form a fixed grid along the curve, see `Arc`.

**Lemma 1.**  Evidence does not rise with x, nor with z, nor when f is replaced by a lower f.
*Proof.*  So does each term of the minimum, at each point of the grid.

So the outcomes with evidence of at least e are {z <= limit(x)} for a nonincreasing limit (`Outcomes`).  Their
probability F(alpha, beta) = sum_x Bin(x; n0, alpha) P[Bin(n1, beta) <= limit(x)] falls with alpha and with beta:
under the claim it is at most F(alpha, f(alpha)), and only alpha is unknown.

**Theorem 1 (p-value).**  Let M(s) = max { F(a, f(a)) : a in C(s) } / (1 - c), where F is the probability of all
outcomes with at least the observed evidence, c = 1/200, and C(s) the Clopper-Pearson interval of alpha at confidence
1 - cs.  If the claim is true, P[M(s) <= s] <= s for every s, and these events grow with s: inf { s : M(s) <= s } is a
p-value.  (Berger & Boos 1994, JASA 89, 1012-1016, with the interval's level as a share of the test's.)

*Proof.*  P[alpha not in C(s)] <= cs.  Else M(s) <= s implies F(alpha, beta) <= s - cs.  F at the truth is the tail
probability of the observed evidence, so that has probability at most s - cs.  C(s) shrinks as s grows, so M(s) falls.

**Theorem 2 (bounds).**  Let f_t fall as t grows, and let t* = sup { t : evidence against f_t >= a cutoff }, an
approximate bound.  Rank the outcomes by t* (where there is none, by their evidence against f_0), and let F be the
probability of all outcomes of at least the observed rank.  Then
L = sup { t : max { F(a, f_t(a)) : a in C(s) } <= s - cs } satisfies P[L > t] <= s for every t with f_t true.

*Proof.*  By Lemma 1, {t* >= u} = {evidence against f_u >= cutoff}: a region as above.  The ranks do not depend on t,
so the maximum grows with t, and L > t only if t itself is refuted; this happens with probability at most s, as in
Theorem 1.

For given ranks no bound is larger, up to c (Buehler 1957, JASA 52, 482-493); to rank by an approximate bound of the
same significance is the advice of Kabaila & Lloyd 2002, Technometrics 44, 390-395.  The p-value is not inverted
because its ranks change with the claim: it need not be monotone along a family, and a bisection could certify what is
not certain.

**Which way round.**  The complement of S, with d0 and d1 exchanged, has the counts (z, x).  Claims are made symmetric
here, and so is the evidence: it does not matter which of the two is called the region, up to C(s), which is then an
interval of beta.  But y > x is the only direction that speaks against a claim: S must be the event that says "d1".

**Between grid points** of alpha nothing is missed: `largest_probability` bounds F over whole cells, see Lemma 2 there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from scipy.special import ndtr, ndtri

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.inference.fixed.binomial import MIN_PROBABILITY, rounding
from dpaudit.inference.fixed.clopper_pearson import check_count, clopper_pearson
from dpaudit.inference.fixed.evidence import evidence_of
from dpaudit.inference.fixed.outcomes import Outcomes, largest_probability

_SHARE = 1 / 200  # of the significance, for not knowing alpha: a wider interval costs less than a larger share


def p_value(claim: TradeoffFunction, x: int, n0: int, y: int, n1: int) -> float:
    """Exact p-value of `claim`, for x of n0 outputs of d0 and y of n1 outputs of d1 in the region.

    If the claim is true, P[p_value <= s] <= s for every s, n0, n1 and mechanism; see Theorem 1.  It is 1 where the
    observed rates keep the claim.  Rounded up: by 3 % at most, and mostly by 0.5 %, above 0.01; by 3 % of its logarithm
    below.
    """
    check_count(x, n0)
    check_count(y, n1)
    if n0 == 0 or n1 == 0:
        return 1.0
    return _p_value(claim.symmetrized(), x, n0, y, n1)


@lru_cache(maxsize=256)  # the verdict, the witness and the report ask for the same one
def _p_value(claim: TradeoffFunction, x: int, n0: int, y: int, n1: int) -> float:
    observed = evidence_of(claim, x, n0, n1 - y, n1)
    if observed <= rounding(n0 + n1):
        return 1.0

    def attained(level: float) -> float:
        low, high = clopper_pearson(x, n0, significance=_SHARE * level)
        region = Outcomes.of(claim, observed, n0, n1, low, high)
        return max(largest_probability(region, claim, low, high) / (1 - _SHARE), MIN_PROBABILITY)

    # max(s, M(s)) is at least the p-value for every s.  Look for s = M(s), from where it is for a normal deviate; M is
    # nearly flat, so that this takes a step or two.
    s, p = max(float(ndtr(-math.sqrt(2 * observed))), MIN_PROBABILITY), 1.0
    for _ in range(5):
        m = attained(s)
        p = min(p, max(s, m))
        if abs(math.log(m / s)) < 0.03 + 0.02 * max(math.log(0.01 / p), 0.0):
            break
        s = math.sqrt(s * m) if m > s else m
    return p


# --- families of claims


def mu_lower(x: int, n0: int, y: int, n1: int, *, significance: float) -> float:
    """Lower confidence bound of mu, for x of n0 outputs of d0 and y of n1 outputs of d1 in the region.

    If the mechanism is mu-GDP, then P[mu_lower > mu] <= significance, for every n0 and n1; see Theorem 2.
    """
    return parameter_lower(GaussianDP, x, n0, y, n1, significance=significance)


def epsilon_lower(x: int, n0: int, y: int, n1: int, *, delta: float, significance: float) -> float:
    """Lower confidence bound of epsilon in nats at `delta`, in [0, 1).  Otherwise as `mu_lower`.

    If the mechanism is (epsilon, delta)-DP, then P[epsilon_lower > epsilon] <= significance.
    """
    return parameter_lower(lambda t: ApproxDP(epsilon=t, delta=delta), x, n0, y, n1, significance=significance)


def parameter_lower(
    family: Callable[[float], TradeoffFunction],
    x: int,
    n0: int,
    y: int,
    n1: int,
    *,
    significance: float,
    most: float = 64.0,
) -> float:
    """Lower confidence bound of the parameter of a family of claims that promise less as it grows from 0.

    If family(t) is true, then P[parameter_lower > t] <= significance; see Theorem 2.  0 where nothing is refuted,
    at most `most`; rounded down, at 5 % by less than a hundredth of a standard deviation, below 1 % by some hundredths.
    """
    check_count(x, n0, significance)
    check_count(y, n1, significance)
    if n0 == 0 or n1 == 0 or significance == 0:
        return 0.0
    precision = 0.003 / math.sqrt(min(n0, n1))

    def against(t: float) -> float:
        return evidence_of(family(t).symmetrized(), x, n0, n1 - y, n1)

    def rank(t: float) -> float:
        return math.sqrt(2 * against(t)) - math.sqrt(2 * cutoff)

    # The observed t*.  Rounded down, more outcomes count as being of at least this rank, which is the safe side.
    usual = max(float(ndtri(min(significance, 0.45))) ** 2 / 2, 1e-2)
    cutoff = min(usual, against(0.0))
    if cutoff <= rounding(n0 + n1):
        return 0.0
    rough = _last(rank, 0.0, most, precision) if cutoff == usual else 0.0

    low, high = clopper_pearson(x, n0, significance=_SHARE * significance)
    region = Outcomes.of(family(rough).symmetrized(), cutoff, n0, n1, low, high)
    allowed = (1 - _SHARE) * significance

    def margin(t: float) -> float:
        largest = largest_probability(region, family(t).symmetrized(), low, high)
        gap = _deviate(largest) - _deviate(allowed)
        return max(gap, 0.0) if largest <= allowed else min(-MIN_PROBABILITY, gap)  # the sign is exact, of nan, too

    return _last(margin, rough, most, precision)


def _last(margin: Callable[[float], float], guess: float, most: float, precision: float) -> float:
    """Largest t in [0, most] with margin(t) >= 0, rounded down by at most `precision`; 0 if there is none.

    `margin` must be at least 0 and then below, and is best in standard deviations, where it is nearly straight: after
    a gallop from the guess, points close to where the line between the ends crosses 0 are tried, from both sides in
    turn, and the middle now and then.  What is returned rests on signs alone.
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
        if high >= most:
            return most
        low, of_low = high, of_high
        high, step = min(high + step, most), 4 * step
        of_high = margin(high)
    tried = 0
    while high - low > precision:
        crossing = low + (high - low) * of_low / (of_low - of_high)
        t = ((low + high) / 2, crossing - precision / 3, crossing + precision / 3)[(tried + 1) % 3]
        t = min(max(t, low + precision / 4), high - precision / 4)
        of_t = margin(t)
        if of_t >= 0:
            low, of_low = t, of_t
        else:
            high, of_high = t, of_t
        tried += 1
    return low


def _deviate(p: float) -> float:
    """The normal deviate that is exceeded with probability p, finite."""
    return -float(ndtri(min(max(p, MIN_PROBABILITY), 1 - 1e-16)))
