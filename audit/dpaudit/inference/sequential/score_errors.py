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
from scipy.special import ndtr

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.grid import EDGES
from dpaudit.inference.sequential.alternatives import Alternative
from dpaudit.inference.sequential.betting import Bet, best_bet
from dpaudit.numerics.arrays import Array

_PARAMETERS = 7  # free parameters of a typical score
_NATS = 3.0  # log-wealth at which a typical test ends
_MIN_PROBABILITY = 1e-9  # rarer events result from rounding at kinks of a law
_MIN_GROWTH = 3e-11  # nats per trial; smaller growth rates are rounding errors


def bet_on_learned_scores(alternative: Alternative, claim: TradeoffFunction) -> Bet | None:
    """Return a growth-optimal bet under an alternative whose scores have errors.

    Args:
        alternative: The laws of exact log-likelihood ratios.
        claim: The claim under test.

    Returns:
        The bet; None if the alternative satisfies the claim.
    """
    exact = _without_rounding(alternative)
    bet = best_bet(exact, claim)
    if (growth := growth_rate(bet, claim, exact)) <= _MIN_GROWTH:
        return None
    return best_bet(_with_errors(exact, math.sqrt(_PARAMETERS * growth / _NATS)), claim)


def growth_rate(bet: Bet, claim: TradeoffFunction, law: Alternative) -> float:
    """Return the growth rate of a bet under a law, in nats per trial."""
    payoffs0, payoffs1 = bet.log_payoffs()
    budget = bet.safe0 + bet.safe1 + float(bet.stakes @ (np.exp(bet.slopes) + claim.delta(bet.slopes)))
    return float(law.p @ payoffs0 + law.q @ payoffs1) - 2 * math.log(budget / 2)


def _without_rounding(law: Alternative) -> Alternative:
    kept = law.p + law.q > _MIN_PROBABILITY
    p, q = np.where(kept, law.p, 0.0), np.where(kept, law.q, 0.0)
    return Alternative(p=p / p.sum(), q=q / q.sum(), weight=law.weight)


def _with_errors(law: Alternative, deviation: float) -> Alternative:
    """Add normal errors with a standard deviation in nats to the log-likelihood ratios of a law."""
    centers = np.concatenate([[2 * EDGES[0] - EDGES[1]], (EDGES[1:] + EDGES[:-1]) / 2, [2 * EDGES[-1] - EDGES[-2]]])
    moved: Array = np.diff(ndtr((EDGES - centers[:, None]) / deviation), axis=1, prepend=0.0, append=1.0)
    moved[0], moved[-1] = np.eye(len(centers))[[0, -1]]  # outputs that only one dataset has are recognised
    return Alternative(p=law.p @ moved, q=law.q @ moved, weight=law.weight)
