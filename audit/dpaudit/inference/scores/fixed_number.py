"""Designs that include a fixed number of canaries: k of m, sampled without replacement.

Coins with a fixed sum depend on each other, so a few right guesses reveal information about the other coins.  The
theorems of `confident`, `tight` and `one_run` assume independent coins, so these theorems do not hold.

**Independent canaries.**  Given which canaries are included, let the scores of different canaries be independent, and
let each depend on its own inclusion only.  Then the theorem of `runs` holds with n1 = k and n0 = m - k, although the
laws P_i and Q_i of the scores may differ between canaries.

*Proof.*  By Blackwell's theorem (Dong, Roth & Su 2022, JRSS-B 84(1), Thm 2) the score of each canary is a randomised
function of a number from the most distinguishable pair.  The function may differ between canaries.  Given the m
numbers, all sets of k canaries are included with probabilities proportional to the products of their likelihood ratios,
since all sets are equally likely beforehand.  The scores depend on the set only through the numbers.  The proof of
`runs` uses nothing else.

**Any dependence, half included.**  Let k be m / 2, rounded up or down.  Given their sum, independent fair coins have
the law of the set.  The conditional probability of an event is at most its probability under coins, divided by the
probability of the condition.  So the bound of `tight` is valid when it is multiplied by `dependence.number_factor`.

**Any dependence, any share.**  All r guesses are about the rarer side: "included" if k < m / 2, else "left out".  Let q
be the share of the rarer side, and l = log(q / (1 - q)).

*Theorem.*  Let b(v) bound the probability of v or more right guesses whenever

    A(K) <= e^(epsilon + l) B(K) + q delta(epsilon)    for every set K of counts and every epsilon,            (1)

with A, B of `inference.one_run` and the profile delta of the claim.  Then P[V >= v] <= b(v) / P[Binomial(m, q) = qm].

*Proof.*  First let independent coins, each with probability q, decide which canaries are on the rarer side.  Fix one
canary, and the coins of all others.  With probability q this canary is on the rarer side.  Let E then be the event that
the canary is guessed and that k guesses are right.  Let E' be the event of the same outputs when the canary is on the
other side, which has probability 1 - q.  On E', k - 1 guesses are right.  Under the claim P[E | rarer] <= e^epsilon
P[E' | other] + delta(epsilon).  This inequality, multiplied by q and averaged over canaries and coins, is (1): A_k = k
p_k / m and B_k = (r - k + 1) p_{k-1} / m as in `inference.one_run`.  Secondly, a uniformly random set of qm canaries
has the law of these coins, given their sum.

The bounds of `one_run.p_value_exact` and `tight.bound` follow from (1) alone; b is the smaller of them.

*Remark.*  If the claim is (epsilon, delta)-DP and r <= qm, `one_run.p_value_exact` is at most `tight.bound`.
*Proof.*  The law that attains the bound has A_k = e^(epsilon + l) B_k, except for an excess x <= q delta at k = v.  So
(1) holds for larger epsilons.  For a smaller epsilon e, (1) holds if A(all) <= q delta + q (1 - delta)
e^epsilon / (1 + e^epsilon), since A(K) - e^(e + l) B(K) <= (1 - e^(e - epsilon)) A(K) + e^(e - epsilon) q delta.  From
A(all) + B(all) = r / m <= q, A(all) / q <= w + (1 - w) delta with w = q e^epsilon / (1 - q + q e^epsilon), and
w <= e^epsilon / (1 + e^epsilon).

**Corollary.**  Along nested claims, the probability that the largest refuted parameter exceeds the true parameter is at
most the level; see the corollary of `tight`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import xlogy

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.inference.one_run import check_counts, p_value_exact
from dpaudit.inference.scores import several, tight
from dpaudit.inference.scores.dependence import half_included, number_factor
from dpaudit.inference.scores.families import Family, largest_refuted
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.binomials import log_choose
from dpaudit.numerics.caches import kept


def default_cut(m: int, included: int) -> int:
    """Return the number of scores that count as high, for m independent canaries of which k are included.

    For k <= m / 2, the number is sqrt(m k / 2), rounded, which is k if half are included.  If more than half are
    included, the number of low scores equals the number of high scores for m - k included canaries.
    """
    rare = min(included, m - included)
    cut = round(math.sqrt(m * rare / 2))
    return cut if included == rare else m - cut


def default_guesses(m: int, included: int) -> int:
    """Return the number that `several.default_guesses` gives for twice as many canaries as the rarer side has."""
    return several.default_guesses(2 * min(included, m - included))


def about_both_sides(m: int, included: int) -> bool:
    """Return whether guesses may be about both sides: half of the canaries, rounded up or down, are included."""
    return half_included(m - included, included)


def conditioning_factor(m: int, included: int) -> float:
    """Return 1 / P[Binomial(m, included / m) = included], rounded up."""
    rest = m - included
    log_chance = float(log_choose(m, included)) + float(xlogy(included, included / m) + xlogy(rest, rest / m))
    return max(1.0, math.exp(-log_chance) * (1 + 1e-9 + 1e-14 * m))


def p_value(
    claim: TradeoffFunction, m: int, included: int, r: int, v: int, *, sharp: bool = True, enough: float = 0.0
) -> float:
    """Bound the probability of v or more right guesses under a claim, if canaries depend on each other in any way.

    Returns:
        A p-value; see the theorem of this module.
    """
    check_counts(m, r, v)
    if not 0 < included < m:
        raise ValueError(f"between 1 and {m - 1} of {m} canaries must be included, got {included}")
    f, rare = claim.symmetrized(), min(included, m - included)
    if about_both_sides(m, included):
        factor = number_factor(m, included)
        fair = tight.p_value(f, m, r, v, enough=enough / factor) if sharp else one_run.p_value(f, m, r, v)
        return min(1.0, factor * fair)
    factor, quick = conditioning_factor(m, included), float(np.min(p_value_exact(*_profile(f, m, rare), m, r, v)))
    attained = r <= rare and tight.is_approximate(f)
    if not sharp or v == 0 or r > tight.MAX_GUESSES or quick >= tight.HOPELESS or factor * quick <= enough or attained:
        return min(1.0, factor * quick)
    return min(1.0, factor * min(quick, _sharp(f, m, rare, r, v)))


def _profile(claim: TradeoffFunction, m: int, rare: int) -> tuple[Array, Array]:
    """Return epsilon + l and q delta(epsilon) of Eq. (1) at several epsilons; `rare` = q m is the rarer side's size."""
    at = tight.epsilons(claim)
    return at + math.log(rare / (m - rare)), rare / m * np.asarray(claim.delta(at))


@kept(256)  # the verdict, the detection limit and the report need the same p-values
def _sharp(claim: TradeoffFunction, m: int, rare: int, r: int, v: int) -> float:
    return tight.bound(*_profile(claim, m, rare), m, r, v)


def mu_lower(m: int, included: int, r: int, v: int, *, significance: float) -> float:
    """Compute a lower confidence bound of mu, rounded down; 0 if none is refuted.  See the module's corollary."""
    return _parameter_lower(GaussianDP, m, included, r, v, significance=significance)


def epsilon_lower(m: int, included: int, r: int, v: int, *, delta: float, significance: float) -> float:
    """Compute a lower confidence bound of epsilon at `delta`, rounded down; 0 if no epsilon is refuted."""
    if delta >= 1:
        return 0.0
    return _parameter_lower(lambda t: ApproxDP(epsilon=t, delta=delta), m, included, r, v, significance=significance)


def _parameter_lower(family: Family, m: int, included: int, r: int, v: int, *, significance: float) -> float:
    check_counts(m, r, v, significance)
    return largest_refuted(
        family,
        lambda claim: p_value(claim, m, included, r, v),
        significance=significance,
        precision=tight.PRECISION,
    )
