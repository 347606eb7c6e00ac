"""Bets on violations that the user planned to detect, and their share of the initial wealth.

**Theorem.**  Let s be the significance of the test, and let the bets on planned violations have the share
1 - s^{1/4} of the initial wealth.  The other bets divide s^{1/4} in the same proportions as without a plan.  Then:

1.  If the claim is true, P[E >= 1/s at any time] <= s.
2.  Let E' be the wealth without a plan, on the same counts.  If E' >= s^{-5/4}, then E >= 1/s.

*Proof.*  (1) The shares are positive and sum to 1.  Claim, planned violations and significance are fixed before the
first trial, and the shares and the bets depend on nothing else.  So the theorem of the module `strategy` applies.
(2) The wealth is linear in the shares, also for several pairs of datasets, and no bet has a negative wealth.  So
E >= s^{1/4} E' >= s^{1/4} s^{-5/4} = 1/s.

**Loss under other violations.**  By (2), the test reaches its threshold at the latest when the test without a plan
reaches 5/4 of its threshold in nats.  For wealth that grows at a constant rate, these are at most a quarter more
trials.  The bound holds at every confidence.

**Gain under a planned violation.**  The bet on a planned violation reaches the threshold when it has gained
log(1/s) + log(1/share) nats.  For one planned violation, log(1/share) is 0.64 nats at 95 % confidence, 0.38 nats at
99 % and 0.20 nats at 99.9 %.  The bet has nearly the largest growth rate of any test; see the error of scores below.

The score of an output is an estimate of its log-likelihood ratio.  A bet that is optimal for exact ratios may depend on
details that no estimate shows, such as the difference between ratios at a kink of a law and just beside it.  The bet is
therefore designed for ratios with an independent normal error.  The errors affect only the design of bets, and never
the validity of the test.

**Size of the error.**  Let g be the growth rate of the best bet with exact ratios, in nats per trial.  A test takes
about 3/g trials at 95 % confidence.  A score with k free parameters that was learned from n trials has a mean squared
error of about k/n squared nats.  With k = 7, as for a linear spline with seven knots, the standard deviation of the
error is sqrt(7 g / 3) nats near the end of the test.  So violations that need many trials are tested with exact scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpaudit.claims import Reported, TradeoffFunction
from dpaudit.inference.sequential.alternatives import (
    Alternative,
    blurred,
    pair_laws,
    scaled,
    without_rounding,
)
from dpaudit.inference.sequential.betting import Bet, best_bet

_PARAMETERS = 7  # free parameters of a typical score
_NATS = 3.0  # log-wealth at which a typical test ends
MIN_GROWTH = 3e-11  # nats per trial; smaller growth rates are rounding errors


def bet_on_learned_scores(alternative: Alternative, claim: TradeoffFunction) -> Bet | None:
    """Return a growth-optimal bet under an alternative whose scores have errors."""
    p, q = without_rounding(alternative.p, alternative.q)
    exact = Alternative(p=p, q=q, weight=alternative.weight)
    bet = best_bet(exact, claim)
    if (growth := growth_rate(bet, claim, exact)) <= MIN_GROWTH:
        return None
    p, q = blurred(p, q, math.sqrt(_PARAMETERS * growth / _NATS))
    return best_bet(Alternative(p=p, q=q, weight=alternative.weight), claim)


def growth_rate(bet: Bet, claim: TradeoffFunction, law: Alternative) -> float:
    """Return the growth rate of a bet under a law, in nats per trial."""
    payoffs0, payoffs1 = bet.log_payoffs()
    budget = bet.safe0 + bet.safe1 + float(bet.stakes @ (np.exp(bet.slopes) + claim.delta(bet.slopes)))
    return float(law.p @ payoffs0 + law.q @ payoffs1) - 2 * math.log(budget / 2)


_LONGER = 0.25  # largest increase of the threshold in nats under violations that were not planned, as a fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Violations that a sequential test should detect early.  They must be fixed before the first trial."""

    violations: tuple[TradeoffFunction, ...]  # the curves that the mechanism may have; at least one
    confidence: float  # of the test, between 0 and 1

    def __post_init__(self) -> None:
        if not self.violations:
            raise ValueError("a plan must state at least one violation, got none")
        if not 0 < self.confidence < 1:
            raise ValueError(f"the confidence of a plan must lie between 0 and 1, got {self.confidence!r}")
        for violation in self.violations:
            pair_laws(violation)

    @property
    def share(self) -> float:
        """Share of the initial wealth for the bets on planned violations; see the theorem of this module."""
        return -math.expm1(_LONGER * math.log1p(-self.confidence))


@lru_cache(maxsize=16)
def planned_laws(claim: TradeoffFunction, planned: Planned) -> tuple[tuple[Alternative, Bet], ...]:
    """Return the laws of planned violations that violate the claim, each with its bet."""
    if isinstance(claim, Reported):  # is tested in one order, in which its violations are given
        laws = [scaled(violation, 1.0) for violation in planned.violations]
    else:
        laws = [law for violation in planned.violations for law in pair_laws(violation)]
    given = [Alternative(p=p, q=q, weight=1 / len(laws)) for p, q in laws]
    found = [(law, bet_on_learned_scores(law, claim)) for law in given]
    return tuple((law, bet) for law, bet in found if bet is not None)
