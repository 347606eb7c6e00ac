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
99 % and 0.20 nats at 99.9 %.  The bet has nearly the largest growth rate of any test; see `score_errors`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.sequential.alternatives import Alternative, pair_laws
from dpaudit.inference.sequential.betting import Bet
from dpaudit.inference.sequential.score_errors import bet_on_learned_scores

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


def planned_bets(claim: TradeoffFunction, planned: Planned) -> list[Bet]:
    """Return the bet for each planned violation and each direction of its pair of datasets."""
    return [bet for _, bet in planned_laws(claim, planned)]


@lru_cache(maxsize=16)
def planned_laws(claim: TradeoffFunction, planned: Planned) -> tuple[tuple[Alternative, Bet], ...]:
    """Return the laws of planned violations that violate the claim, each with its bet."""
    laws = [law for violation in planned.violations for law in pair_laws(violation)]
    given = [Alternative(p=p, q=q, weight=1 / len(laws)) for p, q in laws]
    found = [(law, bet_on_learned_scores(law, claim)) for law in given]
    return tuple((law, bet) for law, bet in found if bet is not None)
