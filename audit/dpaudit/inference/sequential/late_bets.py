"""Bets with all wealth: on reaching the threshold before the last trial, and on values that identify a dataset.

The usual wealth grows as fast as possible, whatever the number of trials.  So a test of at most n trials has less power
than a test that examines its outputs only once, after n trials.  Most of the difference is gained back if the test puts
all its wealth, after n/2 trials, on one bet at a time: the bet that most probably reaches the threshold by trial n.
Clerico et al. (2026, arXiv 2605.06521) study such tests.

**Theorem.**  Let E be the wealth of `strategy` until a trial T.  After T, let all wealth be put on one bet and one pair
of datasets at a time.  The past determines T, each moment at which the bet changes, and the bets and pairs; and the
largest number of trials is fixed before the first trial.  If the claim is true, P[wealth >= 1/significance at any
time] <= significance.  The same holds for all claims jointly, with the same bets.

*Proof.*  Until T, the wealth is a nonnegative supermartingale that starts at 1.  Each later trial multiplies it by the
e-value of one bet, whose expectation given the past is at most 1.  So the wealth remains a supermartingale, and Ville's
inequality applies (Ville 1939).  For another claim, only the prices of the bets differ.  The choices are the same
functions of the past, so the argument applies to each true claim.  Prices fall as the claim's curve rises, so the
wealth against every true claim is at most the wealth against the mechanism's own curve, and no true claim is refuted
with probability at least 1 - significance.  For bounds, the wealth at T may also be used, because Ville's inequality
holds for all times jointly.

**The number of trials.**  Wealth with late bets depends on n.  So two audits of the same outputs with different n are
two tests, and each may refute a true claim.  An audit that may be continued with more trials has no late bets.

**Choice of the bet.**  The changes in log-wealth of a bet are independent, so their sum is approximately normal.  Two
estimates of the probability to reach the threshold are averaged, and the bet with the largest average is chosen:

- The mean and the variance of a change are those under an alternative.  The probabilities are averaged over the
  alternatives, with the wealth of the alternative's own bet as its weight.
- The mean and the variance are those of the counted outputs.  The variance is increased by the variance of the mean.

The first estimate is better for alternatives close to the truth, and the second one for scores with errors and for
mechanisms unlike all alternatives.  The approximations affect the power only.

**Values that identify a dataset.**  If one dataset shows a value that the other one never shows, all bets on such
events have so little of the initial wealth that the test spends most of its trials on the difference.  So if an attack
finds such a value (its member `identifies`), T is the next trial, and all wealth follows the attack: after each fit of
the score, it is put on the bet that would have won most on the past outputs, if their scores had been the present ones.
Each dataset is counted with half a trial more that has the frequencies of the other dataset (`borrowed`), so that a bet
that would lose nearly everything if the value is not as new as it seems is chosen only after many trials.  If the value
turns out not to be new, the bet is the one with the largest wealth so far.  The theorem holds, because T, the scores
and the bets are functions of the past.  This choice ignores the number of trials, and ends when that above begins.  It
is made only if the claim allows some large privacy losses, as (epsilon, delta)-DP does: other claims are mostly made
for randomised responses, in whose first outputs a frequent value may seem to be new.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, softmax

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.power import Law, growths
from dpaudit.inference.sequential.alternatives import alternatives
from dpaudit.inference.sequential.planned import Planned, planned_laws
from dpaudit.inference.sequential.strategy import Counts, Strategy, strategy
from dpaudit.numerics import Array

STAGES = 48  # number of times at which the late bet is chosen
MOST_STAGES = 200  # largest number of late bets: the bet is also chosen again if the attacks on its pair were dropped

# Trials with the other dataset's frequencies that are added before a bet on identifying values is chosen.  Fewer would
# win more if a dataset never shows them, and lose more if it does.
_BORROWED = 0.5

# Smallest log-wealth, in nats, at which all wealth is put on one bet: with less, a test rarely reaches its threshold,
# and late bets only lower the bounds.
LATE_LOG_E = -0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forecast:
    """Growth of each bet under each alternative, from which late bets are chosen."""

    bets: Strategy
    claim: TradeoffFunction
    coin_selected: bool
    own: npt.NDArray[np.intp]  # index of the bet that was designed for each alternative; shape (a,)
    log_weights: Array  # logarithm of the share of each alternative's own bet in the initial wealth; shape (a,)
    means: Array  # mean change in log-wealth in one trial, nats; shape (m, a) for m bets
    variances: Array  # variance of this change, squared nats; shape (m, a)

    def chances(self, counts: Counts, gains: Array, *, needed: float, left: int) -> Array:
        """Estimate the probability that each bet on each pair gains enough, times the pair's weight; (pairs, m)."""
        weights = softmax(self.log_weights + gains[:, self.own])
        chances: Array = weights @ _reached(self.means, self.variances, needed, left).T
        for i, pair in enumerate(counts):
            sizes = pair.sum(axis=1)
            if np.all(sizes):
                law = (pair[0] / sizes[0], pair[1] / sizes[1])
                mean, variance = _growths(self.bets, self.claim, law, coin_selected=self.coin_selected)
                made = sizes.sum() / (1 if self.coin_selected else 2)
                chances[i] += weights[i].sum() * _reached(mean, variance * (1 + left / made), needed, left)
        return chances / 2


def borrowed(counts: Counts) -> Array:
    """Add to the counts of d0 and d1, (2, BINS), some trials with the frequencies of the other dataset."""
    found: Array = counts + _BORROWED * counts[::-1] / counts[::-1].sum(axis=1, keepdims=True)
    return found


def _reached(means: Array, variances: Array, needed: float, left: int) -> Array:
    """Return the probability that a normal sum of `left` changes in log-wealth is at least `needed`."""
    return np.asarray(ndtr((left * means - needed) / np.sqrt(left * np.maximum(variances, 1e-12))))


def _growths(bets: Strategy, claim: TradeoffFunction, law: Law, *, coin_selected: bool) -> tuple[Array, Array]:
    """Return the means and variances of changes in log-wealth for each counted trial; see `power.growths`."""
    means, variances = growths(bets, claim, law, coin_selected=coin_selected)
    # `growths` states them for two outputs, but a trial counts only one of them if coins select it
    outputs = 2 if coin_selected else 1
    return means / outputs, variances / outputs


@lru_cache(maxsize=16)
def forecast(claim: TradeoffFunction, planned: Planned | None, *, coin_selected: bool = False) -> Forecast:
    """Compute the growth of the bets of `strategy(claim, planned)` under alternatives and planned violations."""
    bets = strategy(claim, planned)
    laws = [(one.p, one.q) for one in alternatives(claim)]
    steered = [] if planned is None else [(law.p, law.q) for law, _ in planned_laws(claim, planned)]
    many = len(bets.log_weights)
    own = np.concatenate([np.arange(len(laws)), np.arange(many - len(steered), many)]).astype(np.intp)
    moments = [_growths(bets, claim, law, coin_selected=coin_selected) for law in (*laws, *steered)]
    means, variances = (np.array(column).T for column in zip(*moments, strict=True))
    return Forecast(
        bets=bets,
        claim=claim,
        coin_selected=coin_selected,
        own=own,
        log_weights=bets.log_weights[own],
        means=means,
        variances=variances,
    )
