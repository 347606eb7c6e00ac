"""The anytime-valid test of a claim: a wealth divided among bets.

**The wealth.**  Bets j are designed from the claim alone, one for each alternative (`betting.best_bet`), and get shares
w_j of the initial wealth.  With e_jt the e-value of bet j in trial t,  E = sum_j w_j prod_t e_jt.

**Theorem.**  If the claim is true, P[E >= 1/significance at any time] <= significance.

*Proof.*  Given the past, E e_jt <= 1 for each bet (`betting`), for the score of trial t is fixed by the past, whichever
pair of datasets the trial is of.  So each product, and their mean, is a nonnegative supermartingale that starts at 1.
Ville 1939.

**Several pairs.**  The claim says that every pair satisfies f.  Half of the wealth is carried on from pair to pair: it
adds up evidence that all pairs give.  The other half is split over the pairs, each with a product of its own, so that a
pair without a leak cannot spoil what another one shows:

    E = sum_j w_j [ (1/2) prod_i E_ij + (1/2) mean_i E_ij ],    E_ij the product over the trials of pair i.

Which pair the next trial is of may depend on the past in any way: every product is still a supermartingale.

**One process against all claims.**  The bets do not depend on the claim under test; only their budgets do, and they
fall as f rises.  So E(f) <= E(T) for every f <= T = T(P, Q): with probability 1 - significance NO true claim is ever
refuted, whichever family is searched.  `mu_lower` and `epsilon_lower` at every delta, and the verdict, hold together
and cost no multiplicity; E is monotone along every nested family, so that they are found by bisection.

E depends on the outputs only through the counts of their scores in each bin, under d0 and under d1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpaudit.claims import GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference.sequential.alternatives import (
    Alternative,
    alternatives,
    gaussian_noise,
    laplace_noise,
    sampled_noise,
)
from dpaudit.inference.sequential.betting import Bet, best_bet
from dpaudit.numerics.arrays import Array

Counts = npt.NDArray[np.int64]

_ROUNDING = 1e-12  # relative; more than the error of one term of the budget, so that e errs downwards
_MIN_LOG_PAYOFF = -60.0  # log payoff below which an outcome has ended a bet anyway
_NULLS_SHARE = 0.02  # of the initial wealth; costs the verdict one trial in a hundred and fifty
_NULLS_STEP, _NUMBER_OF_NULLS = 1.5, 8
_SAMPLED_SHARE = 0.04  # of the initial wealth
_NULLS_THRESHOLDS = (
    10  # fewer than for the claim itself: bounds gain little from more, and each bet takes time to design
)
_TAILS = (1.5, 2.0, 2.7, 3.6)  # epsilon as multiples of mu: what rare outputs of Gaussian noise can certify


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

    def log_prices(self, claim: TradeoffFunction) -> Array:
        """What each bet costs a trial under a claim, (m,): twice the log of half its budget, rounded up."""
        slopes, places = _distinct_slopes(self)
        delta = claim.delta(slopes)[places].reshape(self.slopes.shape)
        budgets = self.fixed_costs + (self.stakes * delta).sum(axis=1)
        prices: Array = 2 * np.log(budgets * (1 + _ROUNDING) / 2)
        return prices

    def log_e(
        self, claim: TradeoffFunction, counts: Counts, lost: Collection[int] = (), *, coin_selected: bool = False
    ) -> float:
        """Logarithm of the wealth E(claim) after outputs with these bin counts, (pairs, 2, BINS): of d0, of d1.

        P[E >= 1/significance at any time] <= significance if the claim is true; see the module's theorem.
        `lost`: pairs whose wealth is nothing whatever was counted, see `log_wealth`.  `coin_selected`: see `gains`.
        ValueError unless there are equally many outputs of both datasets of a pair, or single ones.
        """
        return self.log_wealth(self.gains(self.log_prices(claim), counts, coin_selected=coin_selected), lost)

    def gains(self, log_prices: Array, counts: Counts, *, coin_selected: bool = False) -> Array:
        """log E_ij of every pair and bet, (pairs, m), for a claim with these `log_prices`; see `betting`.

        Every output counted pays its half of the price: there are two in a trial, or one if `coin_selected`.
        """
        trials, outputs = counts.sum(axis=2), counts.sum(axis=(1, 2))
        if not coin_selected and np.any(trials[:, 0] != trials[:, 1]):
            raise ValueError(f"a trial is one output of each dataset, got {trials[:, 0]} and {trials[:, 1]}")
        won: Array = counts[:, 0] @ self.log_payoffs0.T + counts[:, 1] @ self.log_payoffs1.T
        gains: Array = won - outputs[:, None] / 2 * log_prices
        return gains

    def variances(self, counts: Counts, bets: npt.NDArray[np.intp]) -> Array:
        """Variance from trial to trial of log E of one bet for each pair, (pairs,)."""
        trials = np.maximum(counts.sum(axis=2), 1)
        total = np.zeros(len(counts))
        for side, log_payoffs in enumerate((self.log_payoffs0, self.log_payoffs1)):
            payoffs = np.maximum(log_payoffs[bets], _MIN_LOG_PAYOFF)
            mean = (counts[:, side] * payoffs).sum(axis=1) / trials[:, side]
            total += (counts[:, side] * payoffs**2).sum(axis=1) / trials[:, side] - mean**2
        return np.maximum(total, 0.0)

    def log_wealth(self, gains: Array, lost: Collection[int] = ()) -> float:
        """log E from the `gains` of all pairs.

        `lost`: pairs on which a run failed after bets had been placed.  Such a run is an outcome on which a bet must
        pay something, and it pays nothing: leaving it out instead would count runs by whether they succeed.
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
    """The slopes, each once, and where each of all slopes is among them: bets share most of theirs."""
    slopes, places = np.unique(bets.slopes, return_inverse=True)
    return slopes, places.ravel()


def _log_sum(terms: Array) -> float:
    """log of the sum of e^term, in any shape."""
    largest = float(terms.max())
    if largest == -math.inf:
        return largest
    return largest + math.log(float(np.exp(terms - largest).sum()))


def log_threshold(confidence: float) -> float:
    """The log-wealth at which a claim is refuted."""
    return -math.log1p(-confidence)


@lru_cache(maxsize=64)
def strategy(claim: TradeoffFunction) -> Strategy:
    """The bets placed when `claim` is audited, designed from the claim alone.

    Most of the wealth is bet against the claim, a little of that on noise added to a sample of the records.  The rest
    is bet against a nested grid of stronger claims, so that certified bounds are near the truth also where the claim
    promises far less than the mechanism keeps.
    """
    violations, sampled, nested_nulls = alternatives(claim), sampled_noise(claim), _nested_nulls(claim)
    bets = [best_bet(alternative, claim) for alternative in (*violations, *sampled)]
    weights = [(1 - _NULLS_SHARE - _SAMPLED_SHARE) * alternative.weight for alternative in violations]
    weights += [_SAMPLED_SHARE * alternative.weight for alternative in sampled]
    return Strategy.of(
        [*bets, *nested_nulls], np.array(weights + [_NULLS_SHARE / len(nested_nulls)] * len(nested_nulls))
    )


def _nested_nulls(claim: TradeoffFunction) -> list[Bet]:
    """Bets against Gaussian and pure promises up to the claim's distance."""
    mu = -2 * float(ndtri((1 - float(claim.delta(0.0))) / 2))  # of the Gaussian pair as far apart in total variation
    top = math.floor(math.log(min(max(mu, 0.1), 8.0), _NULLS_STEP) + 1e-6)  # the same however mu is rounded
    return [bet for number in range(top, top - _NUMBER_OF_NULLS, -1) for bet in _bets_against_null(number)]


@cache
def _bets_against_null(number: int) -> tuple[Bet, ...]:
    """Bets against promises of one strength, with noise that is slightly less private.

    Rungs do not depend on the claim, so that many claims share them: most of the time of a strategy is theirs.
    """
    strength = _NULLS_STEP**number
    bets: list[tuple[Alternative, TradeoffFunction]] = [
        (gaussian_noise(1.1 * strength), GaussianDP(strength)),
        (laplace_noise(1.15 * strength), PureDP(strength)),
    ]
    bets += [(gaussian_noise(strength), PureDP(multiple * strength)) for multiple in _TAILS]
    return tuple(best_bet(alternative, promise, thresholds=_NULLS_THRESHOLDS) for alternative, promise in bets)
