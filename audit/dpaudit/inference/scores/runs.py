"""Scores of independent runs: how many runs of d1 are among those with the highest scores.

n0 runs on d0 and n1 runs on d1, all independent.  The scores of all runs are put in one order, ties by chance.  Of the
r highest, k come from d1.  r is chosen before the scores are seen.  The cut is a rank, so no threshold has to be
learned and no pilot is needed; and no rate is unknown under the claim, as it is in `fixed.exact_binomial`.

**Theorem.**  Let f be the claim and g = 1 - f.  Let h be any function of the order of d0's and d1's that does not fall
when a d1 changes places with a d0 just above it.  Under the claim P[h >= c] is at most what it is for the pair (U, W)
of d0 and d1 with U uniform, P[W <= a] = g(a), and small numbers ranked first.

*Proof.*  By Blackwell's theorem (Dong, Roth & Su 2022, Thm 2) each score is a randomised function of such a number.
Given the n0 + n1 numbers, but not which run is of d1, the chance that a set of n1 of them is that of d1 is proportional
to the product of their likelihood ratios, which fall as the numbers grow.  The scores put the numbers in some order.
Of two neighbours that are not in the order of their ratios, exchange the numbers: the chance of (d1, d0) grows at the
expense of (d0, d1), and that of (d0, d0) and (d1, d1) stays.  So P[h >= c] does not fall.  Exchanges of this kind lead
to the order of the ratios.  (Hollander, Proschan & Sethuraman 1977, Ann. Stat. 5, call this arrangement increasing.)

**Corollary.**  With U' ~ Beta(r - k + 1, n0 - r + k), the (r - k + 1)-th of n0 uniform numbers,

    P[K >= k] <= E P[Binomial(n1, g(U')) >= k].

*Proof.*  k of d1 are among the first r if and only if fewer than r - k + 1 of d0 come before the k-th of d1.

The bound rises as f falls, so that it is inverted along nested families as in `confident`.

**Direction of errors.**  The integrand rises with U'; the sum over cells has the value at each cell's upper end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, ndtr

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.inference.fixed.clopper_pearson import check_count
from dpaudit.inference.scores.families import largest_refuted

_CELLS = 1000
_NEAR, _FAR = 7.0, 38.0  # standard deviations that are looked at; the second where p-values are tiny
_TINY = 1e-9
_TYPICAL = 0.3  # type I error at the cut: that of a claim of about mu = 1 where both errors are equal


def default_cut(n0: int, n1: int) -> int:
    """How many runs are counted as having high scores: half of them if n0 = n1."""
    return round(_TYPICAL * n0 + (1 - _TYPICAL) * n1)


def count_high(scores0: npt.ArrayLike, scores1: npt.ArrayLike, r: int, *, rng: np.random.Generator) -> int:
    """How many of the r highest scores are of d1; equal scores are put in an order by chance.

    Raises:
        ValueError: If a score is NaN, or r is not between 0 and the number of scores.
    """
    first, second = np.asarray(scores0, dtype=np.float64).ravel(), np.asarray(scores1, dtype=np.float64).ravel()
    both = np.concatenate([first, second])
    if np.any(np.isnan(both)):
        raise ValueError(f"scores must be numbers, got nan for run {int(np.argmax(np.isnan(both)))}")
    check_count(r, len(both))
    mixed = rng.permutation(len(both))
    order = mixed[np.argsort(-both[mixed], kind="stable")]
    return int(np.count_nonzero(order[:r] >= len(first)))


def p_value(claim: TradeoffFunction, n0: int, n1: int, r: int, k: int) -> float:
    """The largest chance that k or more of the r highest scores are of d1, under a claim.

    Args:
        claim: What is tested; made symmetric.
        n0: Runs on d0.
        n1: Runs on d1.
        r: How many scores count as high; chosen before the scores are seen.
        k: How many of these are of d1, max(0, r - n0) <= k <= min(r, n1).

    Returns:
        An exact p-value, at most about 3 % too large where it is above 1e-9.

    Raises:
        ValueError: If the counts are impossible.
    """
    check_count(r, n0 + n1)
    if not max(0, r - n0) <= k <= min(r, n1):
        raise ValueError(f"of {r} high scores between {max(0, r - n0)} and {min(r, n1)} are of d1, got {k}")
    if k == max(0, r - n0):
        return 1.0
    f = claim.symmetrized()
    p = _chance(f, n0, n1, r, k, _NEAR)
    return p if p > _TINY else min(p, _chance(f, n0, n1, r, k, _FAR))


def parameter_lower(
    family: Callable[[float], TradeoffFunction],
    n0: int,
    n1: int,
    r: int,
    k: int,
    *,
    significance: float,
    precision: float = 1e-4,
    most: float = 64.0,
) -> float:
    """Lower confidence bound of the parameter of a family that promises less as it grows from 0.

    If family(t) is true, then P[parameter_lower > t] <= significance.  Counts as in `p_value`; `precision` and `most`
    as in `families.largest_refuted`.
    """
    return largest_refuted(
        family, lambda f: p_value(f, n0, n1, r, k), significance=significance, precision=precision, most=most
    )


def mu_lower(n0: int, n1: int, r: int, k: int, *, significance: float) -> float:
    """Mu up to which mu-GDP is refuted; P[mu_lower > mu] <= significance if the mechanism is mu-GDP."""
    return parameter_lower(GaussianDP, n0, n1, r, k, significance=significance)


def epsilon_lower(n0: int, n1: int, r: int, k: int, *, delta: float, significance: float) -> float:
    """Epsilon in nats up to which (epsilon, delta)-DP is refuted.  No shape of the curve is assumed."""
    return parameter_lower(lambda t: ApproxDP(epsilon=t, delta=delta), n0, n1, r, k, significance=significance)


def _chance(claim: TradeoffFunction, n0: int, n1: int, r: int, k: int, reach: float) -> float:
    """An upper bound of E P[Binomial(n1, g(U')) >= k]."""
    before, after = float(r - k + 1), float(n0 - r + k)
    z = np.linspace(-_NEAR, reach, _CELLS)
    upper = np.maximum.accumulate(betaincinv(after, before, ndtr(-z[::-1])))  # 1 - U', which may be tiny
    rest = np.concatenate([[0.0], upper, [1.0]])[::-1]  # falling: 1 - U' at the ends of the cells
    mass = -np.diff(betainc(after, before, rest))
    high = 1 - rest[1:]
    reached = betainc(float(k), n1 - k + 1.0, np.minimum(1 - np.asarray(claim.beta(high)), 1.0))
    return min(1.0, float(mass @ reached) * (1 + 1e-9) + 1e-300)
