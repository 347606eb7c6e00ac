"""Scores of independent runs: tests from the number of runs on d1 among the runs with the highest scores.

There are n0 runs on d0 and n1 runs on d1, all independent.  The scores of all runs are sorted, with ties broken at
random.  Of the r highest scores, k come from d1; r is chosen before the scores are seen.  The cut is a rank, so no
threshold has to be learned and no pilot is needed.  Unlike the test of `fixed.exact_binomial`, this test has no unknown
rate.

**Theorem.**  Let f be the claim and g = 1 - f.  Write down the datasets of all runs, in the order of their scores.  Let
h be any function of this sequence that does not fall when a d1 is exchanged with a d0 just above it.  Let U be uniform,
and let P[W <= a] = g(a).  Under the claim, P[h >= c] is at most its value if the scores of d0 are replaced by
independent copies of U, the scores of d1 by independent copies of W, and small numbers are ranked first.

*Proof.*  By Blackwell's theorem (Dong, Roth & Su 2022, Thm 2) each score is a randomised function of such a copy of U
or W.  Condition on the n0 + n1 numbers, but not on which runs are on d1.  The probability that a given set of n1
numbers is that of d1 is proportional to the product of their likelihood ratios.  These ratios fall as the numbers grow.
The scores put the numbers in some order.  If two neighbours are not in the order of their ratios, exchange their
numbers.  The probability of (d1, d0) then grows at the expense of (d0, d1).  The probabilities of (d0, d0) and (d1, d1)
do not change.  So P[h >= c] does not fall.  A sequence of such exchanges leads to the order of the ratios.  (Hollander,
Proschan & Sethuraman 1977, Ann. Stat. 5, call such functions arrangement increasing.)

**Corollary.**  With U' ~ Beta(r - k + 1, n0 - r + k), the (r - k + 1)-th of n0 uniform numbers,

    P[K >= k] <= E P[Binomial(n1, g(U')) >= k].

*Proof.*  Consider the k-th number of d1.  This number is among the first r if and only if fewer than r - k + 1 numbers
of d0 come before it.

The bound rises as f falls.  So the bound can be inverted along nested families as in `confident`.

**Direction of errors.**  The integrand rises with U'.  The sum over cells takes its value at each cell's upper end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, ndtr

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.claims.operations.pair_curves import Curve, pair_curves
from dpaudit.inference.fixed.binomial import check_count
from dpaudit.inference.scores.families import largest_refuted
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.caches import read_only

_CELLS = 1000  # number of cells of the law of U'
_NEAR, _FAR = 7.0, 38.0  # range of integration over U' in standard deviations; _FAR for p-values < _TINY
_TINY = 1e-9  # a p-value below this needs the range _FAR
_TYPICAL = 0.3  # type I error at the cut: both errors of mu-GDP with mu = 1 are about 0.3 there


def default_cut(n0: int, n1: int) -> int:
    """Return the number of scores that count as high: 0.3 n0 + 0.7 n1, rounded."""
    return round(_TYPICAL * n0 + (1 - _TYPICAL) * n1)


def count_high(scores0: npt.ArrayLike, scores1: npt.ArrayLike, r: int, *, rng: np.random.Generator) -> int:
    """Count the runs on d1 among the r highest scores; ties are broken at random.

    Returns:
        The count, between max(0, r - n0) and min(r, n1).
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
    """Return the maximum probability, under a claim, that k or more of the r highest scores are of d1."""
    check_count(r, n0 + n1)
    if not max(0, r - n0) <= k <= min(r, n1):
        raise ValueError(f"between {max(0, r - n0)} and {min(r, n1)} of {r} high scores must be of d1, got {k}")
    if k == max(0, r - n0):
        return 1.0
    f = claim.symmetrized()
    p = _chance(f, n0, n1, r, k, _NEAR)
    return p if p > _TINY else min(p, _chance(f, n0, n1, r, k, _FAR))


def attained(truth: TradeoffFunction, n0: int, n1: int, r: int, k: int) -> float:
    """Return the probability that k or more of the r highest scores are of d1, if scores are likelihood ratios.

    The result is that of the corollary, rounded down, for the direction of the pair of datasets with less power.
    """
    if k <= max(0, r - n0):
        return 1.0  # every order of the scores gives at least this number
    if k > min(r, n1):
        return 0.0
    return min(_chance(curve, n0, n1, r, k, _NEAR, up=False) for curve in pair_curves(truth))


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
    """Compute a lower confidence bound of the parameter of a nested family of claims.

    Theorem:
        If family(t) is true, P[parameter_lower > t] <= significance.

    Args:
        family: Function from the parameter, > 0, to a claim that weakens as the parameter grows.
        n0: Number of runs on d0.
        n1: Number of runs on d1.
        r: Number of scores that count as high, chosen before the scores are seen.
        k: Number of high scores that are of d1.
        significance: In (0, 1).
        precision: As in `families.largest_refuted`.
        most: The largest parameter that is tried.

    Returns:
        The largest parameter refuted, rounded down; 0 if none is refuted.

    Raises:
        ValueError: If the counts are impossible.
    """
    return largest_refuted(
        family, lambda f: p_value(f, n0, n1, r, k), significance=significance, precision=precision, most=most
    )


def mu_lower(n0: int, n1: int, r: int, k: int, *, significance: float) -> float:
    """Compute a lower confidence bound of mu.

    Theorem:
        If the mechanism is mu-GDP, P[mu_lower > mu] <= significance.

    Args:
        n0: Number of runs on d0.
        n1: Number of runs on d1.
        r: Number of scores that count as high, chosen before the scores are seen.
        k: Number of high scores that are of d1.
        significance: In (0, 1).

    Returns:
        The largest mu refuted, rounded down; 0 if none is refuted.

    Raises:
        ValueError: If the counts are impossible.
    """
    return parameter_lower(GaussianDP, n0, n1, r, k, significance=significance)


def epsilon_lower(n0: int, n1: int, r: int, k: int, *, delta: float, significance: float) -> float:
    """Compute a lower confidence bound of epsilon at `delta`, without an assumption on the shape of the curve.

    Theorem:
        If the mechanism is (epsilon, delta)-DP, P[epsilon_lower > epsilon] <= significance.

    Args:
        n0: Number of runs on d0.
        n1: Number of runs on d1.
        r: Number of scores that count as high, chosen before the scores are seen.
        k: Number of high scores that are of d1.
        delta: In [0, 1).
        significance: In (0, 1).

    Returns:
        The largest epsilon refuted, in nats, rounded down; 0 if none is refuted.

    Raises:
        ValueError: If the counts are impossible or `delta` is out of its range.
    """
    return parameter_lower(lambda t: ApproxDP(epsilon=t, delta=delta), n0, n1, r, k, significance=significance)


def _chance(claim: Curve, n0: int, n1: int, r: int, k: int, reach: float, *, up: bool = True) -> float:
    """Return an upper or a lower bound of the corollary's E P[Binomial(n1, g(U')) >= k], where g = 1 - f."""
    high, mass = _cells(float(r - k + 1), float(n0 - r + k), reach)
    ends = high if up else np.concatenate([[0.0], high[:-1]])
    reached = betainc(float(k), n1 - k + 1.0, np.clip(1 - np.asarray(claim.beta(ends)), 0.0, 1.0))
    bound = float(mass @ reached)
    return min(1.0, bound * (1 + 1e-9) + 1e-300) if up else max(0.0, bound * (1 - 1e-9) - 1e-12)


@lru_cache(maxsize=256)  # the cells do not depend on the claim
def _cells(before: float, after: float, reach: float) -> tuple[Array, Array]:
    """Return the upper ends of the cells of U' and their probabilities."""
    z = np.linspace(-_NEAR, reach, _CELLS)
    upper = np.maximum.accumulate(betaincinv(after, before, ndtr(-z[::-1])))  # 1 - U', which may be tiny
    rest = np.concatenate([[0.0], upper, [1.0]])[::-1]  # 1 - U' at the ends of the cells, descending
    return read_only(1 - rest[1:]), read_only(-np.diff(betainc(after, before, rest)))
