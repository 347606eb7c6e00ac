"""Sequential test of a claim by dividing the initial wealth among several bets.

**Wealth.**  The alternatives are typical violations of the claim, and the violations that the user planned to detect
(module `planned`).  For each alternative j, the function `betting.best_bet` designs a bet before the first trial.  Bet
j receives the share w_j of the initial wealth, where the shares sum to 1.  Let e_jt be the e-value of bet j in trial t.
The wealth is  E = sum_j w_j prod_t e_jt.

**Theorem.**  If the claim is true, P[E >= 1/significance at any time] <= significance.

*Proof.*  The past determines the score of trial t.  So the expectation of e_jt given the past is at most 1, by the
theorem of `betting`.  This bound holds for every pair of datasets that trial t may use.  So each product over trials is
a nonnegative supermartingale that starts at 1, and so is the weighted mean of the products.  The theorem follows from
Ville's inequality (Ville 1939).

**Several pairs of datasets.**  The claim states that every pair of datasets satisfies f.  Let E_ij be the product of
the e-values of bet j over the trials of pair i.  The test uses the wealth

    E = sum_j w_j [ (1/2) prod_i E_ij + (1/2) mean_i E_ij ].

The product accumulates the evidence of all pairs.  In the mean, a pair without a violation cannot cancel the evidence
of another pair.

The choice of the pair for the next trial may depend on the past in any way, because each product remains a
supermartingale.

**Simultaneous tests of all claims.**  The same bets test every claim f, and only their budgets depend on f.  The
budgets fall as f rises.  Let E(f) be the wealth with the budgets of f, and let T be the trade-off function of the
mechanism.  Then E(f) <= E(T) for every true claim f <= T.  So, with probability at least 1 - significance, no true
claim is ever refuted.  The verdict, `mu_lower`, and `epsilon_lower` at every delta are simultaneously valid without a
multiplicity correction.  E is monotone in the parameter of a nested family, so bisection finds the bounds.

The wealth depends on the outputs only through the numbers of outputs of d0 and of d1 in each bin of the score.

**Measuring the size of a violation.**  A bet on alternatives to the audited claim stops gaining against claims close to
the truth, however many trials follow: its slopes are those at which the alternatives violate the audited claim, and its
stakes are large.  A pure claim whose epsilon is slightly too small is violated only at slopes just below epsilon,
unless all outputs have the largest ratio.  So an audit that measures also bets on single events, at a fine grid of
slopes and stakes (`measuring_strategy`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpaudit.claims import GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference.grid import EDGES
from dpaudit.inference.sequential.alternatives import (
    EDITION,
    Alternative,
    alternatives,
    gaussian_noise,
    laplace_noise,
    sampled_noise,
)
from dpaudit.inference.sequential.betting import Bet, best_bet
from dpaudit.inference.sequential.planned import Planned, planned_laws
from dpaudit.numerics import Array

Counts = npt.NDArray[np.int64]

_ROUNDING = 1e-12  # relative margin for rounding errors of a budget, which makes e-values smaller
LOG_PAYOFF_FLOOR = -60.0  # log payoffs are clipped at this value for estimates of variances
_NULLS_SHARE = 0.02  # share of the initial wealth for bets against stronger claims
_NULLS_STEP, _NUMBER_OF_NULLS = 1.5, 8  # ratio of successive parameters of stronger claims; number of parameters
_SAMPLED_SHARE = 0.04  # share of the initial wealth for the alternatives of `sampled_noise`
_NULLS_THRESHOLDS = 10  # number of thresholds of each bet against a stronger claim
_TAILS = (1.5, 2.0, 2.7, 3.6)  # ratios epsilon/mu for bets on mu-GDP mechanisms against epsilon-DP
_MEASURING_SHARE = 0.1  # share of the initial wealth for bets on single events, which measure violations
# Slopes up to 7.8 nats, in steps of e^{s/2} / 100.  The error of a bound grows like this, as counterexamples get rare.
_EVENT_SLOPES = -2 * np.log1p(-np.arange(1, 197) / 200)
_EVENT_STAKES = (0.4, 0.16, 0.064, 0.026, 0.01, 0.004)  # best against a claim whose epsilon is smaller by about this


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strategy:
    """Bets of a sequential test and their shares of the initial wealth."""

    log_weights: Array  # logarithms of the shares, which sum to 1; shape (m,)
    log_payoffs0: Array  # log A of each bet and bin; shape (m, BINS)
    log_payoffs1: Array  # log B of each bet and bin; shape (m, BINS)
    fixed_costs: Array  # part of each budget that does not depend on the claim; shape (m,)
    slopes: Array  # slopes of each bet in nats, padded with zeros; shape (m, k)
    stakes: Array  # stakes of each bet, >= 0, padded with zeros; shape (m, k)

    @classmethod
    def of(cls, bets: Sequence[Bet], weights: Array) -> Strategy:
        """Divide the initial wealth among bets."""
        if not np.all(weights > 0):
            raise AssertionError("every bet must have a positive share of the wealth")
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

    def log_prices(self, claim: TradeoffFunction) -> Array:
        """Return the log-price of each bet in one trial, which is 2 log(budget/2) under the claim."""
        slopes, places = _distinct_slopes(self)
        delta = claim.delta(slopes)[places].reshape(self.slopes.shape)
        budgets = self.fixed_costs + (self.stakes * delta).sum(axis=1)
        return np.asarray(2 * np.log(budgets * (1 + _ROUNDING) / 2))

    def log_e(
        self, claim: TradeoffFunction, counts: Counts, lost: Collection[int] = (), *, coin_selected: bool = False
    ) -> float:
        """Compute the logarithm of the wealth E under a claim.

        `counts` has shape (pairs, 2, BINS), and the pairs `lost` have no wealth (`log_wealth`).  If `coin_selected`, a
        fair coin selected one output of each trial; otherwise both count, and a ValueError is raised if their numbers
        differ.

        Theorem:
            If the claim is true, P[E >= 1/significance at any time] <= significance; see the theorem of this module.
        """
        return self.wealth_on(counts, lost, coin_selected=coin_selected)(claim)

    def wealth_on(
        self, counts: Counts, lost: Collection[int] = (), *, coin_selected: bool = False
    ) -> Callable[[TradeoffFunction], float]:
        """Return a function that maps a claim to the log-wealth on given counts."""
        won, paying = self._won(counts, coin_selected=coin_selected)
        return lambda claim: self.log_wealth(won - paying * self.log_prices(claim), lost)

    def gains(self, log_prices: Array, counts: Counts | Array, *, coin_selected: bool = False) -> Array:
        """Compute the change in log-wealth, log E_ij in nats, of every pair i of datasets and bet j; (pairs, m)."""
        won, paying = self._won(counts, coin_selected=coin_selected)
        return np.asarray(won - paying * log_prices)

    def _won(self, counts: Counts | Array, *, coin_selected: bool) -> tuple[Array, Array]:
        """Return the sums of log payoffs, and half of the number of outputs of each pair; (pairs, m), (pairs, 1)."""
        trials, outputs = counts.sum(axis=2), counts.sum(axis=(1, 2))
        if not coin_selected and np.any(trials[:, 0] != trials[:, 1]):
            raise ValueError(
                f"a trial has one output of each dataset, got {trials[:, 0]} of d0 and {trials[:, 1]} of d1"
            )
        won: Array = counts[:, 0] @ self.log_payoffs0.T + counts[:, 1] @ self.log_payoffs1.T
        return won, outputs[:, None] / 2

    def of_one_pair(self, claim: TradeoffFunction) -> Callable[[Counts], float]:
        """Return a function that maps the counts of one pair, of shape (2, BINS), to the log-wealth under a claim."""
        log_prices = self.log_prices(claim)
        return lambda counts: self.log_wealth(self.gains(log_prices, counts[None]))

    def variances(self, counts: Counts, bets: npt.NDArray[np.intp]) -> Array:
        """Estimate the variance of the change in log-wealth in one trial, in squared nats, for one bet of each pair."""
        trials = np.maximum(counts.sum(axis=2), 1)
        total = np.zeros(len(counts))
        for side, log_payoffs in enumerate((self.log_payoffs0, self.log_payoffs1)):
            payoffs = np.maximum(log_payoffs[bets], LOG_PAYOFF_FLOOR)
            mean = (counts[:, side] * payoffs).sum(axis=1) / trials[:, side]
            total += (counts[:, side] * payoffs**2).sum(axis=1) / trials[:, side] - mean**2
        return np.maximum(total, 0.0)

    def log_wealth(self, gains: Array, lost: Collection[int] = ()) -> float:
        """Compute the log-wealth in nats, which may be -inf, from the changes in log-wealth of all pairs.

        A failed run pays 0; if it were ignored, the counted runs would be selected by their outcome.
        """
        if lost:
            gains = np.where(np.isin(np.arange(len(gains)), list(lost))[:, None], -np.inf, gains)
        together = _log_sum(self.log_weights + gains.sum(axis=0))
        if len(gains) == 1:
            return together
        apart = _log_sum(self.log_weights + gains) - math.log(len(gains))
        return float(np.logaddexp(together, apart)) - math.log(2)


@lru_cache(maxsize=64)
def _distinct_slopes(bets: Strategy) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return the distinct slopes of all bets, and the index of each slope in the array of distinct slopes."""
    slopes, places = np.unique(bets.slopes, return_inverse=True)
    return slopes, places.ravel()


def _log_sum(terms: Array) -> float:
    """Return the logarithm of the sum of e^x over all elements x of an array."""
    largest = float(terms.max())
    if largest == -math.inf:
        return largest
    return largest + math.log(float(np.exp(terms - largest).sum()))


def log_threshold(confidence: float) -> float:
    """Return the log-wealth at which a claim is refuted, which is log(1 / (1 - confidence)) nats."""
    return -math.log1p(-confidence)


def p_value_of(most: float) -> float:
    """Return the anytime-valid p-value 1 / max E, given the largest log-wealth; rounded up to e^-700, never 0."""
    return math.exp(-min(max(most, 0.0), 700.0))


@lru_cache(maxsize=64)
def strategy(claim: TradeoffFunction, planned: Planned | None = None, *, edition: int = EDITION) -> Strategy:
    """Design the bets of a sequential test from the claim and the planned violations.

    Most of the wealth is for typical violations (`alternatives`), a small share for Gaussian noise on a random sample
    of the records (`sampled_noise`), and the rest for stronger claims, which improves bounds of mechanisms that are
    much more private.  Bets on planned violations get `Planned.share` in equal parts, if any violates the claim; see
    `planned`.
    """
    return Strategy.of(*_bets(claim, planned, edition))


def _bets(claim: TradeoffFunction, planned: Planned | None, edition: int) -> tuple[Sequence[Bet], Array]:
    """Return the bets of `strategy`, and their shares of the initial wealth."""
    bets, weights = _unplanned(claim, edition)
    steered = [] if planned is None else [bet for _, bet in planned_laws(claim, planned)]
    if planned is None or not steered:
        return bets, weights / weights.sum()
    shares = [(1 - planned.share) * weights / weights.sum(), np.full(len(steered), planned.share / len(steered))]
    return [*bets, *steered], np.concatenate(shares)


@lru_cache(maxsize=64)
def _unplanned(claim: TradeoffFunction, edition: int) -> tuple[tuple[Bet, ...], Array]:
    """Return the bets that depend on the claim alone, and their weights."""
    violations, sampled = alternatives(claim, edition=edition), sampled_noise(claim)
    # The stronger claims have at most the total variation that the claim allows, which is that of mu-GDP.
    mu = -2 * float(ndtri((1 - float(claim.delta(0.0))) / 2))
    top = math.floor(math.log(min(max(mu, 0.1), 8.0), _NULLS_STEP) + 1e-6)  # the margin allows for rounding of mu
    stronger = [bet for number in range(top, top - _NUMBER_OF_NULLS, -1) for bet in _bets_against_null(number)]
    bets = [best_bet(alternative, claim) for alternative in (*violations, *sampled)]
    weights = [(1 - _NULLS_SHARE - _SAMPLED_SHARE) * alternative.weight for alternative in violations]
    weights += [_SAMPLED_SHARE * alternative.weight for alternative in sampled]
    weights += [_NULLS_SHARE / len(stronger)] * len(stronger)
    return (*bets, *stronger), np.array(weights)


@cache
def _bets_against_null(number: int) -> tuple[Bet, ...]:
    """Return bets against Gaussian and pure claims whose parameter is `_NULLS_STEP**number`, or a multiple of it."""
    strength = _NULLS_STEP**number
    bets: list[tuple[Alternative, TradeoffFunction]] = [
        (gaussian_noise(1.1 * strength), GaussianDP(strength)),
        (laplace_noise(1.15 * strength), PureDP(strength)),
    ]
    bets += [(gaussian_noise(strength), PureDP(multiple * strength)) for multiple in _TAILS]
    return tuple(best_bet(alternative, promise, thresholds=_NULLS_THRESHOLDS) for alternative, promise in bets)


@lru_cache(maxsize=8)  # strategies of some 20 MB
def measuring_strategy(claim: TradeoffFunction, planned: Planned | None = None) -> Strategy:
    """Design the bets of an audit that measures: those of `strategy`, and the same bets on single events for any claim.

    The event of slope s > 0 is that the score is above s.  With its stake u and l = u / (1 + e^s), its bet is

        A = 1 - l e^s 1[v > s]        B = 1 + l 1[v > s]        budget(f) = 2 + l delta_f(s),

    or the same with d0 and d1 exchanged, or the sum of the two.  The payoffs of d0 and d1 have equal expectations at
    the budget, so the inequality of means in the theorem of `betting` loses nothing.

    Theorem:
        If the claim is true, P[E >= 1/significance at any time] <= significance, for all claims jointly.  For all
        counts and prices, the log-wealth is at least that of `strategy` minus log(10/9).

    Proof:
        These are bets as in `betting`, and the shares are positive, sum to 1 and are fixed before the first trial, so
        the theorem of this module applies.  The bets of `strategy` keep 9/10 of their shares, no bet has a negative
        wealth, and the wealth is linear in the shares.
    """
    bets, shares = _bets(claim, planned, EDITION)
    events = _bets_on_events()
    each = np.full(len(events), _MEASURING_SHARE / len(events))
    return Strategy.of([*bets, *events], np.concatenate([(1 - _MEASURING_SHARE) * shares, each]))


@cache
def _bets_on_events() -> tuple[Bet, ...]:
    """Return the bets of `measuring_strategy` on single events, for each slope, stake and order of the datasets."""
    bets = []
    for slope, stake in itertools.product(_EVENT_SLOPES, _EVENT_STAKES):
        above = (
            int(np.searchsorted(EDGES, slope, side="right")) - 1
        )  # largest edge up to the slope, so v > slope counts
        below = len(EDGES) - 1 - above  # the edge with the opposite sign, for the order d1, d0
        low, high = stake / (1 + math.exp(slope)), stake / (1 + math.exp(-slope))
        for up, down in ((1, 1), (1, 0), (0, 1)):
            events = [(above, slope, low)] * up + [(below, -slope, high)] * down
            thresholds, slopes, stakes = zip(*events, strict=True)
            bets.append(Bet(1 - up * high, 1 - down * high, np.array(thresholds), np.array(slopes), np.array(stakes)))
    return tuple(bets)


_SHARE = 0.75  # share of the wealth on typical violations that is divided in proportion to the growth rates


@lru_cache(maxsize=64)
def stream_strategy(claim: TradeoffFunction) -> Strategy:
    """Design the bets of a stream from the claim alone.

    A trial of a stream costs one run, and many streams end after a few hundred steps.  So the bets are those of
    `strategy`, but most of the wealth is used for large violations.  A quarter of the wealth of the bets on typical
    violations is divided as in `strategy`.  The rest is divided in proportion to the product of the share in `strategy`
    and the growth rate of the bet under its own alternative.

    Theorem:
        If the claim is true, P[E >= 1/significance at any time] <= significance.  For all counts and prices, the
        log-wealth is at least that of `strategy` minus log 4.

    Proof:
        The shares are positive, sum to 1 and depend on the claim only, so the theorem of the module `strategy` applies.
        Each share is at least a quarter of the share in `strategy`, and the wealth is linear in the shares.
    """
    bets = strategy(claim, edition=1)
    laws = [*alternatives(claim, edition=1), *sampled_noise(claim)]  # of the first bets, in the same order
    m, prices = len(laws), bets.log_prices(claim)
    won = [law.p @ bets.log_payoffs0[j] + law.q @ bets.log_payoffs1[j] for j, law in enumerate(laws)]
    # At 1/16 nats per step, 48 steps suffice; scores learned from fewer rarely attain a larger growth rate.
    growth = np.clip((np.array(won) - prices[:m]) / 2, 0.0, 1 / 16)
    shares = np.exp(bets.log_weights)
    by_growth = shares[:m] * growth
    if by_growth.sum() > 0:
        shares[:m] = (1 - _SHARE) * shares[:m] + _SHARE * by_growth * (shares[:m].sum() / by_growth.sum())
    return replace(bets, log_weights=np.log(shares / shares.sum()))
