"""Independent canaries: how few of the most confident guesses can be wrong under a claim.

Each of m canaries is included by a fair coin of its own.  Given the coins, the scores of different canaries are
independent; that is the assumption.  The laws of a canary's score without and with it, P_i and Q_i, may be any that
keep the claim, and may differ from canary to canary.  Whoever sees the scores, but not the coins, makes r guesses; r is
chosen before the scores are seen.  T counts the wrong guesses.

**The least confused pair.**  Let f be the claim, made symmetric.  Under f no score is more informative than a uniform
number that is a canary's "p-value": U without the canary, f(U) with it.  By Blackwell's theorem (Dong, Roth & Su 2022,
JRSS-B 84(1), Thm 2) every pair that keeps f is a randomised function of that pair.  Its most confident guesses, a share
u of all, are wrong for a share a(u), where

    a + 1 - f(a) = u,    0 <= u <= 1,                                                                (1)

because "included" is said for p-values below a, "left out" for their mirror images, and f is symmetric.

**Theorem.**  Let V be the (r + 1)-th smallest of m uniform numbers (V = 1 if r = m), and K, given V, be
Binomial(r, a(V) / V).  Under the claim P[T <= t] <= P[K <= t] for every t, every choice of the r canaries, and every
rule of guessing.  The least confused pair and its own most confident guesses attain it.

*Proof.*  Let the least confused pair give its number to each canary, and each score be made of that number.  Given all
these numbers, the coins are independent of the scores and of each other, and a guess about canary i is wrong with
probability at least e_i, the smaller posterior probability of the two sides.  T is therefore stochastically at least a
sum of independent Bernoulli(e_i) over any r canaries, and so over the r smallest e_i.  The ranks of confidence of the
m numbers are uniform numbers, rank u having posterior error e(u) with integral a(u).  Given that the (r + 1)-th of them
is V, the r before it are independent and uniform on (0, V), and each guess is wrong with probability a(V) / V.  QED

That the tail of errors among the r most confident is exact for iid Gaussian scores is in Xiang et al. 2025
(arXiv:2509.08704).  The theorem shows that it is a bound for all scores that keep f.

**Corollary (nested families).**  If f_t falls as t grows, a_t(u) falls and P_t[K <= k] grows.  So the members that T
refutes at a given level are those below a bound, and bisection finds it.  The bound exceeds the true member with
probability at most the level; it has no multiplicity cost.

**Direction of errors.**  a + 1 - f(a) is rising, and its root is found from below.  P[K <= t | V] does not rise with V,
since a is convex with a(0) = 0; so the sum over cells of V, each with the value at its lower end, is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, ndtr

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.inference.one_run import check_counts
from dpaudit.inference.scores.families import largest_refuted
from dpaudit.numerics.arrays import Array

_SHARE = 0.62  # of the canaries: within 2 % of the least standard error of mu for mu <= 1, within 5 % for mu <= 3
_CELLS = 400  # of the law of V
_NEAR, _FAR = 7.0, 38.0  # standard deviations of V that are looked at; the second where p-values are tiny
_CLOSE = 0.02  # relative difference of two sizes of claims
_TINY = 1e-9  # a p-value for which the first is not enough


def default_confident(m: int) -> int:
    """A number of guesses for independent canaries, 0.62 m, that suits bounds of mu.

    Guessing about fewer, more certain canaries costs little; guessing about all costs a tenth of precision.
    """
    return min(m, round(_SHARE * m))


def p_value(claim: TradeoffFunction, m: int, r: int, v: int) -> float:
    """The largest chance of v or more right ones among r guesses, of m independent canaries, under a claim.

    Args:
        claim: About one canary; it must hold for adding and for removing it.
        m: Canaries, each included by a fair coin of its own.
        r: Guesses, 0 <= r <= m; their number must be chosen before the scores are seen.
        v: Right guesses, 0 <= v <= r.

    Returns:
        An exact p-value, at most about 3 % too large where it is above 1e-9; see the theorem of this module.

    Raises:
        ValueError: If the counts are impossible.
    """
    check_counts(m, r, v)
    if v == 0:
        return 1.0
    f = claim.symmetrized()
    p = _chance(f, m, r, v, _NEAR)
    return p if p > _TINY or r == m else min(p, _chance(f, m, r, v, _FAR))


def parameter_lower(
    family: Callable[[float], TradeoffFunction],
    m: int,
    r: int,
    v: int,
    *,
    significance: float,
    precision: float = 1e-4,
    most: float = 64.0,
) -> float:
    """Lower confidence bound of the parameter of a family that promises less as it grows from 0.

    If every canary keeps family(t), then P[parameter_lower > t] <= significance; see the corollary of this module.

    Args:
        family: From the parameter to the claim.  `families.check_nested` tests that it promises less and less.
        m: Canaries.
        r: Guesses, chosen beforehand.
        v: Right guesses.
        significance: Probability allowed that the bound is too large, in (0, 1).
        precision: By how much the bound may be rounded down, relatively.
        most: The largest parameter that is tried.

    Returns:
        The largest parameter refuted, rounded down; 0 if none is.
    """
    check_counts(m, r, v, significance)
    members: dict[float, TradeoffFunction] = {}  # some take a second

    def member(t: float) -> TradeoffFunction:
        return members.setdefault(t, family(t)) if t not in members else members[t]

    def bound(of: Callable[[float], TradeoffFunction], guess: float, step: float) -> float:
        return largest_refuted(
            of,
            lambda claim: p_value(claim, m, r, v),
            significance=significance,
            precision=precision,
            most=most,
            guess=guess,
            step=step,
        )

    mu = bound(GaussianDP, 1.0, 0.3)
    if family is GaussianDP or mu == 0.0:
        return mu
    return bound(member, *_start(member, r / m, mu, most))


def _start(member: Callable[[float], TradeoffFunction], share: float, mu: float, most: float) -> tuple[float, float]:
    """A parameter at which guesses are about as often wrong as under mu-GDP, and how far from it to look next."""
    t = min(1.0, most)
    for _ in range(8):
        ratio = mu / max(_size(member(t).symmetrized(), share), 1e-3)
        if abs(ratio - 1) < _CLOSE:
            return t, _CLOSE
        t = min(t * min(max(ratio, 0.1), 10.0), most)
    return t, 0.3


def _size(claim: TradeoffFunction, share: float) -> float:
    """The mu whose most confident `share` of guesses is as often wrong as that of the claim, roughly."""
    wrong = float(wrong_share(claim, share))
    low, high = 0.0, 64.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if float(wrong_share(GaussianDP(middle), share)) > wrong else (low, middle)
    return low


def mu_lower(m: int, r: int, v: int, *, significance: float) -> float:
    """Mu up to which mu-GDP is refuted; P[mu_lower > mu] <= significance if every canary is mu-GDP."""
    return parameter_lower(GaussianDP, m, r, v, significance=significance)


def epsilon_lower(m: int, r: int, v: int, *, delta: float, significance: float) -> float:
    """Epsilon in nats up to which (epsilon, delta)-DP is refuted.  No shape of the curve is assumed."""
    return parameter_lower(lambda t: ApproxDP(epsilon=t, delta=delta), m, r, v, significance=significance)


def wrong_share(claim: TradeoffFunction, u: npt.ArrayLike) -> Array:
    """a(u) of Eq. (1), or a little less: how many canaries the most confident share u of guesses is wrong about.

    `claim` must be symmetric; `u` in [0, 1].
    """
    share = np.asarray(u, dtype=np.float64)
    low, high = np.zeros_like(share), share / 2  # f(a) <= 1 - a, so that u >= 2 a
    for _ in range(48):
        middle = (low + high) / 2
        fits = middle + (1 - np.asarray(claim.beta(middle))) <= share
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.asarray(low * (1 - 1e-14))


def _chance(claim: TradeoffFunction, m: int, r: int, v: int, reach: float) -> float:
    """An upper bound of P[K <= r - v]."""
    if r == m:
        v_low, mass = np.ones(1), np.ones(1)
    else:
        z = np.linspace(-reach, min(reach, _NEAR), _CELLS)
        ends = np.concatenate([[0.0], np.maximum.accumulate(betaincinv(r + 1.0, float(m - r), ndtr(z))), [1.0]])
        v_low, mass = ends[:-1], np.diff(betainc(r + 1.0, float(m - r), ends))
        mass[-1] = betainc(float(m - r), r + 1.0, 1 - ends[-2])
    with np.errstate(invalid="ignore", divide="ignore"):
        wrong = np.where(v_low > 0, wrong_share(claim, v_low) / v_low, 0.0)
    few = betainc(float(v), r - v + 1.0, 1 - wrong)  # P[at least v of r are right]
    return min(1.0, float(mass @ few) * (1 + 1e-9))
