"""Independent canaries: tests from the number of wrong guesses among the most confident ones.

An independent fair coin decides whether each of m canaries is included.  The scores of different canaries are assumed
to be independent given the coins.  The score of canary i has the law P_i if the canary is left out, and the
law Q_i if the canary is included.  These laws may be any laws that satisfy the claim, and may differ from canary to
canary.  An attacker sees the scores, but not the coins, and makes r guesses.  The number r is chosen before the scores
are seen.  T is the number of wrong guesses.

**The most distinguishable pair.**  Let f be the claim, made symmetric.  Under f no score is more informative than the
"p-value" of the canary.  This number is U without the canary and f(U) with the canary, where U is uniform.  By
Blackwell's theorem (Dong, Roth & Su 2022, JRSS-B 84(1), Thm 2) every pair that satisfies f is a randomised function of
that pair.  Among the most confident share u of all guesses, the wrong guesses are a share a(u) of all guesses, where

    a + 1 - f(a) = u,    0 <= u <= 1,                                                                (1)

The equation holds because f is symmetric and the guess is "included" for p-values below a and "left out" for their
mirror images.

**Theorem.**  Let V be the (r + 1)-th smallest of m uniform numbers (V = 1 if r = m), and K, given V, be
Binomial(r, a(V) / V).  Under the claim P[T <= t] <= P[K <= t] for every t, every choice of the r canaries, and every
rule of guessing.  The most distinguishable pair with its most confident guesses attains equality.

*Proof.*  Each canary gets a number from the most distinguishable pair, and its score is a randomised function of that
number.  Given all these numbers, the coins are independent of the scores and of each other.  A guess about canary i is
then wrong with probability at least e_i, the smaller posterior probability of the two sides.  T is therefore
stochastically at least the sum of independent Bernoulli(e_i) over the r canaries that were guessed.  This sum is
stochastically smallest if these canaries have the r smallest e_i.  The ranks of confidence of the m numbers are
independent uniform numbers; rank u has posterior error e(u) with integral a(u).  Given that the (r + 1)-th smallest
rank is V, the r smaller ones are independent and uniform on (0, V).  Each of these guesses is then wrong with
probability a(V) / V.  QED

For iid Gaussian scores, Xiang et al. 2025 (arXiv:2509.08704) show that the tail of errors among the r most confident
guesses is exact.  The theorem shows that it is a bound for all scores that satisfy f.

**Corollary (nested families).**  If f_t falls as t grows, a_t(u) falls and P_t[K <= k] grows.  So, at a given level, T
refutes exactly the members below a bound.  Bisection finds this bound.  The probability that the bound exceeds the true
parameter is at most the level, without a multiplicity correction.

**Direction of errors.**  a + 1 - f(a) rises with a, and its root is approached from below.  P[K <= t | V] does not rise
with V, since a is convex with a(0) = 0.  So the sum over cells of V, with the value at the lower end of each cell, is
an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, ndtr, ndtri

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.inference.one_run import check_counts
from dpaudit.inference.scores.families import Family, largest_refuted
from dpaudit.numerics.arrays import Array, Flags
from dpaudit.numerics.bisect import Bracket, bisect_each
from dpaudit.numerics.caches import kept, read_only

_SHARE = 0.62  # share of canaries guessed; the standard error of mu is within 5 % of its minimum for mu <= 3
_CELLS = 400  # number of cells of the law of V
_NEAR, _FAR = 7.0, 38.0  # range of integration over V in standard deviations; _FAR for p-values < _TINY
_CLOSE = 0.02  # relative difference between the sizes of two claims at which the search for a start ends
_STEPS = 36  # bisection steps for a(u); the error is below 1e-11 and changes no printed digit of a p-value
_TINY = 1e-9  # a p-value below this needs the range _FAR


def default_confident(m: int) -> int:
    """Return a number of guesses for independent canaries that suits bounds of mu: 0.62 m."""
    return min(m, round(_SHARE * m))


def p_value(claim: TradeoffFunction, m: int, r: int, v: int) -> float:
    """Return the maximum probability of v or more right guesses about independent canaries under a claim."""
    check_counts(m, r, v)
    if v == 0:
        return 1.0
    f = claim.symmetrized()
    p = _chance(f, m, r, v, _NEAR)
    return p if p > _TINY or r == m else min(p, _chance(f, m, r, v, _FAR))


def parameter_lower(
    family: Family,
    m: int,
    r: int,
    v: int,
    *,
    significance: float,
    precision: float = 1e-4,
    most: float = 64.0,
) -> float:
    """Compute a lower confidence bound of the parameter of a nested family of claims.

    Theorem:
        If every canary satisfies family(t), P[parameter_lower > t] <= significance; see the corollary of this module.

    Args:
        family: Function from the parameter, > 0, to a claim that weakens as the parameter grows; see
            `families.check_nested`.
        m: Number of canaries.
        r: Number of guesses, chosen before the scores are seen.
        v: Number of right guesses.
        significance: Maximum probability that the bound is too large, in (0, 1).
        precision: Relative amount by which the bound may be rounded down.
        most: The largest parameter that is tried.

    Returns:
        The largest parameter refuted, rounded down; 0 if none is refuted.

    Raises:
        ValueError: If the counts are impossible or the significance is out of its range.
    """
    check_counts(m, r, v, significance)
    return nested_lower(
        family,
        lambda claim: p_value(claim, m, r, v),
        share=r / m,
        significance=significance,
        precision=precision,
        most=most,
    )


def nested_lower(
    family: Family,
    p_value: Callable[[TradeoffFunction], float],
    *,
    share: float,
    significance: float,
    precision: float = 1e-4,
    most: float = 64.0,
    guess: float = 1.0,
    step: float = 0.3,
) -> float:
    """Find the largest refuted member as `families.largest_refuted` does, but with fewer members.

    The search computes the bound of mu first, and starts where guesses are about as often wrong as under this mu.
    """
    members: dict[float, TradeoffFunction] = {}  # a member may take a second to compute

    def member(t: float) -> TradeoffFunction:
        return members.setdefault(t, family(t)) if t not in members else members[t]

    def bound(of: Family, guess: float, step: float) -> float:
        return largest_refuted(
            of, p_value, significance=significance, precision=precision, most=most, guess=guess, step=step
        )

    mu = bound(GaussianDP, guess, step)
    if family is GaussianDP or mu == 0.0:
        return mu
    return bound(member, *_start(member, share, mu, most))


def _start(member: Callable[[float], TradeoffFunction], share: float, mu: float, most: float) -> tuple[float, float]:
    """Return the start and the relative first step of a search.

    At the start, guesses are about as often wrong as under mu-GDP.
    """
    t = min(1.0, most)
    for _ in range(8):
        ratio = mu / max(_size(member(t).symmetrized(), share), 1e-3)
        if abs(ratio - 1) < _CLOSE:
            return t, _CLOSE
        t = min(t * min(max(ratio, 0.1), 10.0), most)
    return t, 0.3


def _size(claim: TradeoffFunction, share: float) -> float:
    """Return the mu, at most 64, at which mu-GDP has the claim's share of wrong guesses among the most confident ones.

    The result solves a + 1 - f(a) = share for mu.  Here f is the curve of mu-GDP, and a is the claim's share of wrong
    guesses.
    """
    wrong = float(wrong_share(claim, share))
    return min(max(float(-ndtri(wrong) - ndtri(1 + wrong - share)), 0.0), 64.0)


def mu_lower(m: int, r: int, v: int, *, significance: float) -> float:
    """Compute a lower confidence bound of mu.

    Theorem:
        If every canary satisfies mu-GDP, P[mu_lower > mu] <= significance.

    Args:
        m: Number of canaries.
        r: Number of guesses, chosen before the scores are seen.
        v: Number of right guesses.
        significance: In (0, 1).

    Returns:
        The largest mu refuted, rounded down; 0 if none is refuted.

    Raises:
        ValueError: If the counts are impossible or the significance is out of its range.
    """
    return parameter_lower(GaussianDP, m, r, v, significance=significance)


def epsilon_lower(m: int, r: int, v: int, *, delta: float, significance: float) -> float:
    """Compute a lower confidence bound of epsilon at `delta`, without an assumption on the shape of the curve.

    Theorem:
        If every canary satisfies (epsilon, delta)-DP, P[epsilon_lower > epsilon] <= significance.

    Args:
        m: Number of canaries.
        r: Number of guesses, chosen before the scores are seen.
        v: Number of right guesses.
        delta: In [0, 1).
        significance: In (0, 1).

    Returns:
        The largest epsilon refuted, in nats, rounded down; 0 if none is refuted.

    Raises:
        ValueError: If the counts are impossible or a number is out of its range.
    """
    return parameter_lower(lambda t: ApproxDP(epsilon=t, delta=delta), m, r, v, significance=significance)


def wrong_share(claim: TradeoffFunction, u: npt.ArrayLike) -> Array:
    """Return a(u) of Eq. (1), rounded down: the wrong guesses among the most confident share u of all guesses."""
    return np.asarray(wrong_bracket(claim, u).inside * (1 - 1e-14))


def wrong_bracket(claim: TradeoffFunction, u: npt.ArrayLike) -> Bracket[Array]:
    """Return two numbers, `inside` and `outside`, between which a(u) of Eq. (1) lies except for rounding errors."""
    share = np.asarray(u, dtype=np.float64)

    def fits(wrong: Array) -> Flags:
        return np.asarray(wrong + (1 - np.asarray(claim.beta(wrong))) <= share)

    return bisect_each(fits, np.zeros_like(share), share / 2, steps=_STEPS)  # f(a) <= 1 - a, so that u >= 2 a


def _chance(claim: TradeoffFunction, m: int, r: int, v: int, reach: float) -> float:
    """Return an upper bound of P[K <= r - v] for the variable K of the module's theorem."""
    few = betainc(float(v), r - v + 1.0, 1 - _rates(claim, m, r, reach))  # P[at least v of r are right]
    return min(1.0, float(_cells(m, r, reach)[1] @ few) * (1 + 1e-9))


@kept(32)  # the rates do not depend on the number of right guesses
def _rates(claim: TradeoffFunction, m: int, r: int, reach: float) -> Array:
    """Return a(V) / V, the probability that a guess is wrong, at the lower ends of the cells of V."""
    low, _ = _cells(m, r, reach)
    with np.errstate(invalid="ignore", divide="ignore"):
        return read_only(np.where(low > 0, wrong_share(claim, low) / low, 0.0))


@lru_cache(maxsize=32)  # the cells do not depend on the claim
def _cells(m: int, r: int, reach: float) -> tuple[Array, Array]:
    """Divide the law of V, the (r + 1)-th smallest of m uniform numbers; return lower ends and masses of the cells."""
    if r == m:
        return read_only(np.ones(1)), read_only(np.ones(1))
    z = np.linspace(-reach, min(reach, _NEAR), _CELLS)
    ends = np.concatenate([[0.0], np.maximum.accumulate(betaincinv(r + 1.0, float(m - r), ndtr(z))), [1.0]])
    mass = np.diff(betainc(r + 1.0, float(m - r), ends))
    mass[-1] = betainc(float(m - r), r + 1.0, 1 - ends[-2])
    return read_only(ends[:-1]), read_only(mass)
