"""The anytime-valid test of a claim: betting on its whole privacy profile.

A bet pays A(x) on an output x of d0 and B(y) on an output y of d1.  It is built from thresholds t_k of
a score v, slopes s_k and stakes >= 0:

    A = safe0 + sum_k stake_k e^{s_k} 1[v <= t_k]        B = safe1 + sum_k stake_k 1[v > t_k]
    budget(f) = safe0 + safe1 + sum_k stake_k (e^{s_k} + delta_f(s_k))

**Theorem.**  Under the claim f, E A(X) + E B(Y) <= budget(f), so  e(x, y) = A(x) B(y) / (budget/2)^2  has
expectation at most 1, and the product of e over trials is a nonnegative supermartingale whatever past
trials the scores were learned from.

*Proof.*  With S_k = {v > t_k}: E A + E B = safe0 + safe1 + sum_k stake_k (e^{s_k} - e^{s_k} P(S_k) + Q(S_k)), and
the claim says Q(S_k) - e^{s_k} P(S_k) <= delta_f(s_k).  X and Y are independent, so E e = E A E B / (budget/2)^2 <= 1
by the inequality of the means.

By Ville's inequality a true claim sees E >= 1/significance, ever, with probability at most significance.

**One process against all claims.**  The stakes do not depend on the claim under test; only the budget does, and
it falls as f rises.  So E(f) <= E(T) for every f <= T = T(P, Q): with probability 1 - significance NO true claim is
ever refuted, whichever family is searched.  `mu_lower` and `epsilon_lower` at every delta, and the verdict, hold
together and cost no multiplicity; E is monotone along every nested family, so that they are found by bisection.

**Which bets.**  For an alternative (p, q) the stakes maximise E log A + E log B.  That is the reverse information
projection of (p, q) on the claim, {(P, Q): T(P, Q) >= f}: its growth is min KL(p||P) + KL(q||Q), which no test can
beat (Gruenwald, de Heide & Koolen 2024, JRSS-B 86(5), Thm 1).  The initial wealth is divided among alternatives; an
average of test supermartingales is one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtri

from dpaudit.claims import Array, GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference.alternatives import Alternative, alternatives, gaussian_noise, laplace_noise
from dpaudit.inference.grid import BINS, EDGES
from dpaudit.inference.portfolio import log_optimal

THRESHOLDS = 32
_SLOPES = np.concatenate([-np.geomspace(1e-3, 30, 120)[::-1], [0.0], np.geomspace(1e-3, 30, 120)])
_ROUNDING = 1e-12  # relative; more than the error of one term of the budget, so that e errs downwards


@dataclass(frozen=True, slots=True)
class Bet:
    """Stakes on threshold events; see the module's theorem.  Everything validity rests on is checked here."""

    safe0: float  # >= 0
    safe1: float  # >= 0
    thresholds: npt.NDArray[np.intp]  # (k,), the event S_k is "bin > thresholds[k]"
    slopes: Array  # (k,), nats
    stakes: Array  # (k,), >= 0

    def __post_init__(self) -> None:
        if not (self.safe0 >= 0 and self.safe1 >= 0 and np.all(self.stakes >= 0)):
            raise AssertionError("a negative stake would make the test invalid")

    def log_payoffs(self) -> tuple[Array, Array]:
        """log A and log B of every bin, each (BINS,)."""
        below = np.arange(BINS)[None, :] <= self.thresholds[:, None]
        with np.errstate(divide="ignore"):
            return (
                np.log(self.safe0 + (self.stakes * np.exp(self.slopes)) @ below),
                np.log(self.safe1 + self.stakes @ ~below),
            )


_CASH = Bet(1.0, 1.0, np.zeros(0, np.intp), np.zeros(0), np.zeros(0))  # keeps the wealth as it is


def best_bet(alternative: Alternative, claim: TradeoffFunction) -> Bet:
    """The bet that grows fastest if `alternative` is true and `claim` is what is tested.

    Column generation: with slopes fixed the stakes are a log-optimal portfolio; its payoffs name the
    closest true claim (P*, Q*) = (p/A, q/B); each event's slope then moves to where that pair breaks f most.
    """
    edges = _informative_edges(alternative)
    if len(edges) == 0:
        return _CASH
    group = np.searchsorted(edges, np.arange(BINS))  # bins that no chosen threshold separates count as one
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
        if excess.max() < 1e-7:
            break
    return best


def _steepest(claim: TradeoffFunction, above0: Array, above1: Array) -> tuple[Array, Array]:
    """For each event the slope s at which Q - e^s P - delta(s) is largest, and that value; (k,) each.

    The function is concave in e^s.  Claims may have kinks, and bets at a kink pay best exactly there, so the maximum is
    bracketed on a grid and then found by golden sections.
    """
    excess = above1[:, None] - np.exp(_SLOPES) * above0[:, None] - claim.delta(_SLOPES)
    best = np.argmax(excess, axis=1)
    low, high = _SLOPES[np.maximum(best - 1, 0)], _SLOPES[np.minimum(best + 1, len(_SLOPES) - 1)]
    golden = (math.sqrt(5) - 1) / 2

    def value(slopes: Array) -> Array:
        return np.asarray(above1 - np.exp(slopes) * above0 - claim.delta(slopes))

    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        rising = value(left) < value(right)
        low, high = np.where(rising, left, low), np.where(rising, high, right)
    middle = (low + high) / 2
    return middle, value(middle)


def _informative_edges(alternative: Alternative) -> npt.NDArray[np.intp]:
    """At most THRESHOLDS edges that cut the alternative into pieces of about equal mass.

    Where the alternative has a gap, the edge in the middle of the gap stands for all in it: an estimated
    ratio then falls on the right side although it is a little off.
    """
    mass = (alternative.p + alternative.q) / 2
    occupied = np.flatnonzero(mass > 1e-9)
    gaps = [(int(a) + int(b - 1)) // 2 for a, b in itertools.pairwise(occupied)]
    cumulative = np.cumsum(mass)
    if len(gaps) > THRESHOLDS:
        wanted = np.linspace(0, 1, THRESHOLDS + 2)[1:-1]
        gaps = [gaps[i] for i in np.unique(np.searchsorted(cumulative[gaps], wanted).clip(0, len(gaps) - 1))]
    return np.array(gaps, dtype=np.intp)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strategy:
    """Bets, side by side, and the share of the initial wealth that each one gets."""

    log_weights: Array  # (m,), weights sum to one
    log_payoffs0: Array  # (m, BINS), log A
    log_payoffs1: Array  # (m, BINS), log B
    fixed_costs: Array  # (m,), the part of the budget that no claim changes
    slopes: Array  # (m, k), padded with stakes of 0
    stakes: Array  # (m, k), >= 0

    @classmethod
    def of(cls, bets: Sequence[Bet], weights: Array) -> Strategy:
        """Divide the initial wealth among bets in proportion to `weights`, (m,), > 0."""
        if not np.all(weights > 0):
            raise AssertionError("a bet cannot be given a negative share of the wealth")
        payoffs = [bet.log_payoffs() for bet in bets]
        widest = max(len(bet.stakes) for bet in bets)
        return cls(
            log_weights=np.log(weights / weights.sum()),
            log_payoffs0=np.array([a for a, _ in payoffs]),
            log_payoffs1=np.array([b for _, b in payoffs]),
            fixed_costs=np.array([bet.safe0 + bet.safe1 + float(bet.stakes @ np.exp(bet.slopes)) for bet in bets]),
            slopes=np.array([np.pad(bet.slopes, (0, widest - len(bet.slopes))) for bet in bets]),
            stakes=np.array([np.pad(bet.stakes, (0, widest - len(bet.stakes))) for bet in bets]),
        )

    def log_e(self, claim: TradeoffFunction, counts0: npt.NDArray[np.int64], counts1: npt.NDArray[np.int64]) -> float:
        """Logarithm of the wealth E(claim) after outputs with these bin counts, (BINS,) each, equally many.

        P[E >= 1/significance at any time] <= significance if the claim is true; see the module's theorem.
        """
        return self.log_wealth(self.log_prices(claim), counts0, counts1)

    def log_wealth(self, log_prices: Array, counts0: npt.NDArray[np.int64], counts1: npt.NDArray[np.int64]) -> float:
        """`log_e` for a claim whose `log_prices` are known."""
        trials = int(counts0.sum())
        if trials != int(counts1.sum()):
            raise ValueError(f"a trial is one output of each dataset, got {trials} and {int(counts1.sum())}")
        seen0, seen1 = counts0 > 0, counts1 > 0  # an outcome that did not occur must not turn into 0 * -inf
        gains = self.log_payoffs0[:, seen0] @ counts0[seen0] + self.log_payoffs1[:, seen1] @ counts1[seen1]
        return float(logsumexp(self.log_weights + gains - trials * log_prices))

    def log_prices(self, claim: TradeoffFunction) -> Array:
        """What each bet costs a trial under a claim, (m,): twice the log of half its budget, rounded up."""
        budgets = self.fixed_costs + (self.stakes * claim.delta(self.slopes)).sum(axis=1)
        prices: Array = 2 * np.log(budgets * (1 + _ROUNDING) / 2)
        return prices


_LADDER_SHARE = 0.06  # of the initial wealth; costs the verdict one trial in fifty
_LADDER_STEP = 1.5


@lru_cache(maxsize=64)
def strategy(claim: TradeoffFunction) -> Strategy:
    """The bets placed when `claim` is audited, designed from the claim alone.

    Most of the wealth is bet against the claim.  The rest is bet against a ladder of stronger promises, so that
    the certified bounds are near the truth also where the claim promises far less than the mechanism keeps.
    """
    against = [(alternative, claim, (1 - _LADDER_SHARE) * alternative.weight) for alternative in alternatives(claim)]
    rungs = list(_ladder(claim))
    against += [(alternative, rung, _LADDER_SHARE / len(rungs)) for alternative, rung in rungs]
    bets = [best_bet(alternative, target) for alternative, target, _ in against]
    return Strategy.of(bets, np.array([weight for _, _, weight in against]))


def _ladder(claim: TradeoffFunction) -> Iterator[tuple[Alternative, TradeoffFunction]]:
    """Gaussian and pure promises up to the claim's distance, each with noise that is slightly less private."""
    mu = -2 * float(ndtri((1 - float(claim.delta(0.0))) / 2))  # of the Gaussian pair as far apart in total variation
    rung = min(max(mu, 0.1), 8.0)
    for _ in range(8):
        yield gaussian_noise(1.1 * rung), GaussianDP(rung)
        yield laplace_noise(1.15 * rung), PureDP(rung)
        rung /= _LADDER_STEP


def lower_bound(refuted: Callable[[float], bool], *, precision: float = 1e-4, most: float = 64.0) -> float:
    """Largest x, to `precision` and rounded down, such that the member x of a nested family is refuted; 0 if none.

    `refuted` must be monotone (true, then false), as E is along nested claims.
    """
    if not refuted(precision):
        return 0.0
    low, high = precision, 2 * precision
    while refuted(high):
        low, high = high, 2 * high
        if low >= most:
            return most
    while high - low > precision * max(1.0, low):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
