"""Laws of learned scores: an alternative whose log-likelihood ratios are known only up to an error.

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

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.sequential.alternatives import Alternative
from dpaudit.inference.sequential.betting import Bet, best_bet
from dpaudit.inference.sequential.blurring import blurred, without_rounding

_PARAMETERS = 7  # free parameters of a typical score
_NATS = 3.0  # log-wealth at which a typical test ends
_MIN_GROWTH = 3e-11  # nats per trial; smaller growth rates are rounding errors


def bet_on_learned_scores(alternative: Alternative, claim: TradeoffFunction) -> Bet | None:
    """Return a growth-optimal bet under an alternative whose scores have errors."""
    p, q = without_rounding(alternative.p, alternative.q)
    exact = Alternative(p=p, q=q, weight=alternative.weight)
    bet = best_bet(exact, claim)
    if (growth := growth_rate(bet, claim, exact)) <= _MIN_GROWTH:
        return None
    p, q = blurred(p, q, math.sqrt(_PARAMETERS * growth / _NATS))
    return best_bet(Alternative(p=p, q=q, weight=alternative.weight), claim)


def growth_rate(bet: Bet, claim: TradeoffFunction, law: Alternative) -> float:
    """Return the growth rate of a bet under a law, in nats per trial."""
    payoffs0, payoffs1 = bet.log_payoffs()
    budget = bet.safe0 + bet.safe1 + float(bet.stakes @ (np.exp(bet.slopes) + claim.delta(bet.slopes)))
    return float(law.p @ payoffs0 + law.q @ payoffs1) - 2 * math.log(budget / 2)
