"""Bets against a claim, priced by the privacy profile of the claim.

A bet pays A(x) for an output x of d0 and B(y) for an output y of d1.  Let v be the score of an output.  A bet is
defined by thresholds t_k of the score, slopes s_k, stakes stake_k >= 0, and safe0, safe1 >= 0:

    A = safe0 + sum_k stake_k e^{s_k} 1[v <= t_k]        B = safe1 + sum_k stake_k 1[v > t_k]
    budget(f) = safe0 + safe1 + sum_k stake_k (e^{s_k} + delta_f(s_k))

**Theorem.**  Let X and Y be independent outputs on d0 and d1.  Under the claim f, E A(X) + E B(Y) <= budget(f).  So the
e-value  e(X, Y) = A(X) B(Y) / (budget/2)^2  has expectation at most 1.  If the score of each trial is learned from past
trials only, the product of the e-values of all trials is a nonnegative supermartingale.

*Proof.*  Let S_k be the event {v > t_k}, and let P and Q be the laws of X and Y.  Then E A + E
B = safe0 + safe1 + sum_k stake_k (e^{s_k} - e^{s_k} P(S_k) + Q(S_k)), and the claim states Q(S_k) - e^{s_k}
P(S_k) <= delta_f(s_k).  X and Y are independent, so E e = E A E B / (budget/2)^2 <= 1 by the inequality of arithmetic
and geometric means.

The two runs of a trial may depend on each other, for example if their running times are measured on the same machine.
In this case, a fair coin decides which run of each trial is made first, and only the first run is counted.  The e-value
is then A(X) / (budget/2) or B(Y) / (budget/2).  Given the past and the state of the machine before the trial, its
expectation is (E A + E B) / budget <= 1, if the claim holds in that state.

If the claim is true, the probability that the product of the e-values ever reaches 1/significance is at most
`significance`, by Ville's inequality.

**Choice of bets.**  For an alternative with output laws p and q, the stakes maximise the growth rate, which is E log
A(X) + E log B(Y) minus 2 log(budget/2).  This corresponds to the reverse information projection of (p, q) on the
set {(P, Q): T(P, Q) >= f}.  The growth rate is then the minimum of KL(p||P) + KL(q||Q) over this set.  No test has a
larger growth rate (Gruenwald, de Heide & Koolen 2024, JRSS-B 86(5), Thm 1).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dposv

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.grid import BINS, EDGES
from dpaudit.inference.sequential.alternatives import Alternative
from dpaudit.numerics import Array, kept, read_only


def log_optimal(returns: Array, weights: Array) -> Array:
    """Compute the portfolio x >= 0, sum 1, that maximises sum_i weights[i] log(x . returns[:, i]); positive, (assets,).

    The function is concave (Cover & Thomas, Elements of Information Theory, Thm 16.2.1), and maximised by Newton's
    method with a logarithmic barrier.
    """
    assets = len(returns)
    x = np.full(assets, 1.0 / assets)
    barrier = 1e-2
    sides = np.ones((assets, 2), order="F")  # right-hand sides of the Newton system: gradient and constraint
    for _ in range(60):
        growth = returns / (x @ returns)
        sides[:, 0] = growth @ weights + barrier / x
        hessian = (growth * weights) @ growth.T
        hessian.ravel()[:: assets + 1] += barrier / x**2  # the Hessian of the barrier is diagonal
        _, solved, failed = dposv(hessian, sides)  # a Gram matrix plus a positive diagonal
        step, sums = (np.linalg.solve(hessian, sides) if failed else solved).T  # dposv may fail by rounding
        step = step - sums * (step.sum() / sums.sum())
        shrink = np.max(-step / x)
        length = min(1.0, 0.95 / shrink) if shrink > 0 else 1.0
        x = x + length * step
        x = x / x.sum()
        if length > 0.5:
            if barrier < 1e-10:
                break
            barrier *= 0.05
    return x


THRESHOLDS = 32  # default number of thresholds that divide the outputs of an alternative into bins of equal probability

_STRONGEST = 10  # maximum number of additional thresholds at which the claim is violated most clearly
_SLOPES = np.concatenate([-np.geomspace(1e-3, 30, 120)[::-1], [0.0], np.geomspace(1e-3, 30, 120)])
_SIXTEENTHS = np.linspace(0.0, 1.0, 17)
_NO_MORE = 1e-10  # the search for slopes ends when no maximum rises by more than this value
_TINY_PAYOFF = 1e-300  # added to all payoffs so that their logarithms are finite


@dataclass(frozen=True, slots=True)
class Bet:
    """Bet on threshold events of a score, as defined in this module."""

    safe0: float  # constant part of the payoff for an output of d0, >= 0
    safe1: float  # constant part of the payoff for an output of d1, >= 0
    thresholds: npt.NDArray[np.intp]  # bins t_k of the events {bin > t_k}; shape (k,)
    slopes: Array  # slopes s_k in nats; shape (k,)
    stakes: Array  # stakes on the events, >= 0; shape (k,)

    def __post_init__(self) -> None:
        if not (self.safe0 >= 0 and self.safe1 >= 0 and np.all(self.stakes >= 0)):
            raise AssertionError("a negative stake would make the test invalid")

    def log_payoffs(self) -> tuple[Array, Array]:
        """Return log A and log B of every bin, as two arrays of shape (BINS,)."""
        below = np.arange(BINS)[None, :] <= self.thresholds[:, None]
        return (
            np.log(self.safe0 + (self.stakes * np.exp(self.slopes)) @ below + _TINY_PAYOFF),
            np.log(self.safe1 + self.stakes @ ~below + _TINY_PAYOFF),
        )


_CASH = Bet(1.0, 1.0, np.zeros(0, np.intp), np.zeros(0), np.zeros(0))  # bet that keeps the wealth constant


def best_bet(alternative: Alternative, claim: TradeoffFunction, *, thresholds: int = THRESHOLDS) -> Bet:
    """Compute the bet against a claim with the largest growth rate under an alternative, by column generation.

    For fixed slopes, the stakes are a log-optimal portfolio.  The payoffs determine the measures P* = p/A and Q* = q/B,
    which estimate the reverse information projection of (p, q).  Each slope is then replaced by that at which (P*, Q*)
    violates the claim most.  If only one bin has positive probability, the bet keeps the wealth constant.
    """
    edges = _informative_edges(alternative, claim, thresholds)
    if len(edges) == 0:
        return _CASH
    group = np.searchsorted(edges, np.arange(BINS))  # index of the group of each bin; thresholds separate groups
    p = np.bincount(group, alternative.p, minlength=len(edges) + 1)
    q = np.bincount(group, alternative.q, minlength=len(edges) + 1)
    below = np.arange(len(edges) + 1)[None, :] <= np.arange(len(edges))[:, None]
    slopes = np.clip(EDGES[edges], _SLOPES[0], _SLOPES[-1])
    weights = np.concatenate([p, q])
    best, best_growth = _CASH, 0.0
    for _ in range(6):
        price = np.exp(slopes) + claim.delta(slopes)
        pays0 = np.vstack([np.ones(len(p)), np.zeros(len(p)), below * (np.exp(slopes) / price)[:, None]])
        pays1 = np.vstack([np.zeros(len(p)), np.ones(len(p)), ~below * (1 / price)[:, None]])
        share = log_optimal(np.hstack([pays0, pays1]), weights)
        growth = float(weights @ np.log(2 * share @ np.hstack([pays0, pays1])))
        if growth > best_growth:
            best_growth = growth
            best = Bet(2 * share[0], 2 * share[1], edges, slopes, 2 * share[2:] / price)
        nearest0, nearest1 = p / (2 * share @ pays0), q / (2 * share @ pays1)
        above0, above1 = (np.cumsum(near[::-1])[::-1][1:] for near in (nearest0, nearest1))
        slopes, excess = _steepest(claim, above0, above1)
        if excess.max() < max(1e-7, 1e-3 * growth):
            break
    return best


def _steepest(claim: TradeoffFunction, above0: Array, above1: Array, *, rounds: int = 6) -> tuple[Array, Array]:
    """Find, for each event with laws P and Q, the slope s that maximises Q - e^s P - delta(s), and the maximum.

    This is concave in e^s, and may have its maximum at a kink, so a grid brackets it, and each round divides by 16.
    """
    slopes = np.broadcast_to(_SLOPES, (len(above0), len(_SLOPES)))
    rows = np.arange(len(above0))

    excess = above1[:, None] - np.exp(_SLOPES) * above0[:, None] - _on_grid(claim)
    best = np.argmax(excess, axis=1)
    for _ in range(rounds):
        low = slopes[rows, np.maximum(best - 1, 0)]
        high = slopes[rows, np.minimum(best + 1, slopes.shape[1] - 1)]
        slopes = low[:, None] + (high - low)[:, None] * _SIXTEENTHS
        before = excess[rows, best]
        excess = above1[:, None] - np.exp(slopes) * above0[:, None] - claim.delta(slopes)
        best = np.argmax(excess, axis=1)
        if np.max(excess[rows, best] - before) < _NO_MORE:
            break
    return slopes[rows, best], excess[rows, best]


@kept(8)  # each bet against a claim needs them several times
def _on_grid(claim: TradeoffFunction) -> Array:
    return read_only(claim.delta(_SLOPES))


def _informative_edges(alternative: Alternative, claim: TradeoffFunction, most: int) -> npt.NDArray[np.intp]:
    """Select edges of bins as thresholds: quantiles of an alternative, and edges where it violates a claim most.

    Of successive bins with probability 0, only the middle edge is used, so that slight errors of a score do not matter.
    """
    mass = (alternative.p + alternative.q) / 2
    occupied = np.flatnonzero(mass > 1e-12)
    gaps = np.array([(int(a) + int(b - 1)) // 2 for a, b in itertools.pairwise(occupied)], dtype=np.intp)
    if len(gaps) <= most:
        return gaps
    cumulative = np.cumsum(mass)[gaps]
    even = np.searchsorted(cumulative, np.linspace(0, 1, most + 2)[1:-1]).clip(0, len(gaps) - 1)
    above0, above1 = (np.cumsum(law[::-1])[::-1][1:][gaps] for law in (alternative.p, alternative.q))
    slopes, excess = _steepest(claim, above0, above1, rounds=0)
    noise = np.exp(2 * slopes) * above0 * (1 - above0) + above1 * (1 - above1)
    strength = np.maximum(excess, 0.0) / np.sqrt(noise + 1e-12)
    strong = np.flatnonzero(strength > strength.max() / 2) if strength.max() > 0 else np.zeros(0, dtype=np.intp)
    places = np.linspace(0, len(strong) - 1, min(_STRONGEST, len(strong))).astype(np.intp)
    chosen: npt.NDArray[np.intp] = gaps[np.unique(np.concatenate([even, strong[places]]))]
    return chosen
