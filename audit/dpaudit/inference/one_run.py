"""Tests and bounds from guesses about the canaries of one run, for canaries with any dependence.

An independent fair coin decides whether each of m canaries is included in the data.  An attacker sees the output of the
mechanism, but not the coins, and guesses for r of the canaries whether they were included.  Let v be the number of
right guesses.  This module bounds the probability of v or more right guesses under a claim.

The number r must be fixed in advance; it may depend on the output only if delta = 0.  For delta > 0, a mechanism could
spend all of delta on the most revealing r.  The choice of the r canaries and the guesses count as parts of the output:
they may depend on it in any way, but not on the coins.  The claim must hold for adding and for removing one canary.

**The measures A and B.**  Choose one canary uniformly at random.  Let p_k be the probability that exactly k guesses are
right.  Then A_k = k p_k / m is the probability that the guess about this canary and k guesses in total are right, and
B_k = (r - k + 1) p_{k-1} / m that the guess is wrong and k - 1 guesses in total are right.  Flipping this canary's coin
while the output stays the same turns the first event into the second, and the flipped coin is as fair as the others.
So a claim with profile delta implies, for every set K of counts and every real epsilon,

    A(K) <= e^epsilon B(K) + delta(epsilon)    and    B(K) <= e^epsilon A(K) + delta(epsilon).            (1)

Counts are integers, 0 <= v <= r <= m.  Every approximation can only increase a p-value and decrease a lower bound.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, betainc, expit, xlog1py, xlogy

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics import Array, bisect, kept, log_choose


def p_value(claim: TradeoffFunction, m: int, r: int, v: int) -> float:
    """Bound the probability of v or more right guesses under a claim.

    The `r` guesses about `m` canaries are fixed in advance; `v` are right.  The claim, about one canary, is
    symmetrized.

    Theorem:
        The minimum of the following two numbers is a p-value of the claim:

        1. The minimum of `p_value_exact` over many epsilon >= 0, since the claim implies (epsilon, delta(epsilon))-DP.
        2. The smallest significance at which `_Shape.refutes` is true, found by bisection to one part in 10**6.

    Proof:
        Both numbers bound the same probability.  Let v* be the smallest v whose bound is at most s.  The bound is at
        most s if and only if v* or more guesses are right, which has probability at most s.

    The bound is sharp for claims of (epsilon, delta)-DP.

    Raises:
        ValueError: If 0 <= v <= r <= m is violated.
    """
    shape = shape_of(claim.symmetrized())
    least = float(np.min(p_value_exact(shape.epsilon, shape.delta, m, r, v)))
    high = math.log(least)
    if not shape.refutes(m, r, v, least):
        return least

    def refuted(x: float) -> bool:
        return shape.refutes(m, r, v, math.exp(x))

    width = 1.0
    while refuted(high - width):
        high, width = high - width, 2 * width
    return math.exp(bisect(refuted, high, high - width, close=lambda high, low: high - low <= 1e-6).inside)


def p_value_exact(epsilon: npt.ArrayLike, delta: npt.ArrayLike, m: int, r: int, v: int) -> Array:
    """Return the maximum probability, rounded up, of v or more right guesses under (epsilon, delta)-DP; elementwise.

    **Theorem.**  With W ~ Binomial(r, q), q = e^epsilon / (1 + e^epsilon), b = P[W >= v] and w = P[W = v], the maximum
    is min{1, b + m delta b (1 - b) / (v w)}.  For v = 0 the maximum is 1, and no claim is refuted.

    *Upper bound.*  Let y_k = m (1 - b) P[W >= k] / (k P[W = k]) for k >= v, and y_k = m b P[W < k] / (k P[W = k]) for
    k < v.  Since (k + 1) P[W = k + 1] = e^epsilon (r - k) P[W = k], these satisfy  k y_k - e^epsilon (r - k)
    y_{k+1} = m (1[k >= v] - b).  So  P[v or more] - b = sum_k y_k (A_k - e^epsilon B_k) <= max y sum_k (A_k - e^epsilon
    B_k)^+, which is at most delta max y, by (1) for the k with a positive bracket.  The binomial law is log-concave, so
    y_k falls with k for k >= v.  For k < v, y_k rises with k, since for W' ~ Binomial(r - 1, q), k P[W = k] = r q
    P[W' = k - 1] and P[W < k] = P[W' < k] - q P[W' = k - 1].  At k = v both formulas give m b (1 - b) / (v w).

    *Equality.*  Let x = m delta / (v w), or the smaller x with b x = 1.  Draw the number k of right guesses with
    probability P[W = k] (1 - b x) for k < v, and P[W = k] (1 + (1 - b) x) for k >= v.  Then draw the guessed canaries
    and the right guesses uniformly.  Then A_v <= e^epsilon B_v + delta, and A_k = e^epsilon B_k for all k except v.

    The result is a maximum over mechanisms, so it rises with epsilon and with delta.  It is at most the bound of
    Steinke, Nasr & Jagielski 2023.  The upper bound needs only the first inequality of (1), so it also holds for
    epsilon < 0.  ValueError if 0 <= v <= r <= m is violated, an epsilon is not finite, or a delta is not in [0, 1].
    """
    if not 0 <= operator.index(v) <= operator.index(r) <= operator.index(m):
        raise ValueError(f"counts must be 0 <= right <= guesses <= canaries, got {v} right, {r} guesses, {m} canaries")
    eps, gap = np.broadcast_arrays(np.asarray(epsilon, dtype=np.float64), np.asarray(delta, dtype=np.float64))
    if not np.all(np.isfinite(eps) & (gap >= 0) & (gap <= 1)):
        raise ValueError(f"epsilon must be finite and delta in [0, 1], got {eps} and {gap}")
    if v == 0:
        return np.ones(eps.shape)
    wrong = expit(-eps)  # 1 - q
    b, rest = betainc(float(v), r - v + 1.0, expit(eps)), betainc(r - v + 1.0, float(v), wrong)
    log_w = log_choose(r, v) + xlog1py(v, -wrong) + xlogy(r - v, wrong)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.exp(np.log(b) + np.log(rest) - log_w)  # b (1 - b) / w
        falling = np.minimum((r - v) * np.exp(eps) / (v + 1), 1.0)  # P[W = v + 1] / P[W = v]
        ratio = np.where(b > _FAINT, ratio, 1 / (1 - falling))
        spent = np.where(gap > 0, m * gap / v * ratio * _UP, 0.0)
    return np.minimum(np.where(np.isnan(spent), 1.0, np.maximum(b, _FAINT) + spent) * (1 + 1e-12), 1.0)


_FAINT = 1e-280  # a tail probability of W below this value may be inaccurate
_UP = 1 + 1e-8  # factor that bounds the rounding error of log-factorials up to 10**7


@dataclass(frozen=True, eq=False)
class _Shape:
    """Points of a symmetric claim's profile, and supporting lines slope * x - offset of g; `refutes` defines g."""

    epsilon: Array  # epsilons of the points in nats, >= 0, ascending
    delta: Array
    slopes: list[float]  # slopes of the supporting lines, ascending
    offsets: list[float]
    ends: list[float]  # line i is the highest line up to x = ends[i]; no line exceeds g anywhere

    @classmethod
    def of(cls, epsilon: Array, delta: Array) -> _Shape:
        """Compute the lines at +-epsilon; by symmetry, delta(-eps) = 1 - e^-eps (1 - delta(eps))."""
        mirrored = (epsilon > 0) & (epsilon < _STEEPEST)
        slopes = np.concatenate([np.exp(-epsilon)[::-1], np.exp(epsilon[mirrored])])
        offsets = np.concatenate([(np.exp(-epsilon) * delta)[::-1], (np.expm1(epsilon) + delta)[mirrored]])
        new = np.append(True, np.diff(slopes) > 0)
        slopes, offsets = slopes[new] * (1 - _MARGIN), offsets[new] * (1 + _MARGIN)
        ends = np.maximum.accumulate(np.diff(offsets) / np.diff(slopes)) if len(slopes) > 1 else np.zeros(0)
        return cls(epsilon, delta, slopes.tolist(), offsets.tolist(), ends.tolist())

    def inverse(self, x: float) -> float:
        """Return a lower bound of g(x), for x in [0, 1]."""
        line = bisect_right(self.ends, x)
        return max(0.0, self.slopes[line] * x - self.offsets[line])

    def refutes(self, m: int, r: int, v: int, significance: float) -> bool:
        """Return whether P[v or more right guesses] < significance is certain under the claim.

        Mahloujifar, Melis & Chaudhuri 2024, "Auditing f-differential privacy in one run", arXiv:2410.22235.  Let g be
        the inverse of a -> 1 - f(a), f = claim.symmetrized(): g(x) = sup over real epsilon of
        (x - delta(epsilon)) e^-epsilon.  Start with t_v = S_v = significance, and for c = v, ..., 1

            t_{c-1} = max{ t_c, (S_c + m g(((c - 1) t_c + S_c) / m)) / (r - c + 1) },    S_{c-1} = S_c + t_{c-1}.

        **Theorem.**  If t_0 > 1, then P[v or more right] < significance under the claim.

        *Proof.*  Let T_c = P[c or more right].  By (1) for K = {c, c + 1, ...} and all epsilon, B(K) >= g(A(K)), that
        is, (r - c + 1) T_{c-1} >= sum_{j>=c} T_j + m g(((c - 1) T_c + sum_{j>=c} T_j) / m).  If T_v >= t_v, then
        T_c >= t_c for all c <= v by induction, as g does not fall, and in particular t_0 <= T_0 = 1.

        The paper states the recursion for R = ((c - 1) t_c + S_c) / m and H = ((r - c + 1) t_{c-1} - S_c) / m.  The
        paper's condition R + H > r / m is equivalent to t_0 > 1.  By the same induction, t_0 rises with `significance`
        and with g.  So bisection finds p-values, and bounds for nested families of claims.

        **Numerical errors.**  The code replaces g by the maximum of finitely many of its supporting lines, and rounds
        every t_c down.  So a numerical error can prevent a refutation, but never cause a refutation.
        """
        tail = total = significance
        for c in range(v, 0, -1):
            x = ((c - 1) * tail + total) * _DOWN / m
            if x > 1:
                return True
            needed = (total + m * self.inverse(x)) * _DOWN / (r - c + 1)
            if needed <= tail:  # x is the same for the next c, so `tail` no longer changes
                break
            tail = needed
            total = (total + tail) * _DOWN
            if tail > 1:
                return True
        return tail > 1


_DOWN = 1 - 1e-15  # factor that bounds the rounding error of a few operations
_MARGIN = 1e-14  # relative margin for rounding errors of a supporting line and of its value
_STEEPEST = 25.0  # nats; supporting lines for a larger epsilon matter only for x > 1 - e^-25
_TINY = 1e-12  # a profile that never reaches its limit is cut off at this distance from the limit


@kept(64)
def shape_of(claim: TradeoffFunction) -> _Shape:
    """Choose points of a claim's profile such that the lines approximate g with relative error 1e-4."""
    floor = float(claim.delta(math.inf))
    largest = float(claim.epsilon(floor))
    if largest == math.inf:
        largest = float(claim.epsilon(min(1.0, floor + _TINY)))
    epsilon = np.unique(np.linspace(0.0, min(largest, 700.0), 33))
    while True:
        delta, slope = np.asarray(claim.delta(epsilon)), np.exp(-epsilon)
        middle = (epsilon[1:] + epsilon[:-1]) / 2
        corner = np.diff(delta * slope) / np.diff(slope)  # x where two neighbouring lines meet
        height = (corner - delta[1:]) * slope[1:]
        gain = (corner - np.asarray(claim.delta(middle))) * np.exp(-middle) - height
        poor = (gain > 1e-4 * np.maximum(height, 1e-300)) & (np.diff(epsilon) > 1e-9)
        if not np.any(poor) or len(epsilon) > 5000:
            return _Shape.of(epsilon, delta)
        epsilon = np.sort(np.concatenate([epsilon, middle[poor]]))


def coins_p_value(n0: int, n1: int) -> float:
    """Return a two-sided p-value of "the coins were fair and independent".

    The test cannot detect a design that includes exactly half of the canaries.
    """
    return float(min(1.0, 2 * bdtr(min(n0, n1), n0 + n1, 0.5)))


def number_factor(m: int, included: int, share: float = 0.5) -> float:
    """Return the factor 1 / P[B = included], rounded up, of p-values if the included number may have been fixed before.

    Fair coins rarely include exactly half of the canaries, but many designs always include half.  Coins with a fixed
    sum depend on each other, so a few right guesses reveal information about the other coins.

    **Theorem.**  Let p be a p-value that is valid if independent coins decide which canaries are included.  If a
    uniformly random set of `included` canaries is included instead, P[p / P[B = included] <= s] <= s for every s, with
    B ~ Binomial(m, share).

    *Proof.*  The random set has the law of the coins, given that `included` canaries are included.  The conditional
    probability of an event is at most its probability under coins, divided by the probability of the condition.

    The factor is at least 1, so the p-value remains valid for coins.

    Args:
        m: Number of canaries that guesses are about.
        included: Number of them that were included.
        share: Probability with which each coin includes its canary, in (0, 1).
    """
    log_chance = float(log_choose(m, included)) + included * math.log(share) + (m - included) * math.log1p(-share)
    return max(1.0, math.exp(-log_chance) * (1 + 1e-9 + 1e-14 * m))


def half_included(n0: int, n1: int) -> bool:
    """Return whether half of all canaries, rounded up or down, were included, so that the number may be fixed."""
    return abs(n0 - n1) <= 1


def half_by_chance(m: int) -> float:
    """Return the probability with which fair coins include half of m canaries, rounded up or down."""
    return sum(1 / number_factor(m, k) for k in {m // 2, (m + 1) // 2})
