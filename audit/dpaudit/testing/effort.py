"""How many runs an audit in a test suite makes: enough to see what it looks for, and no more."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from dpaudit.claims import GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.engine.plan import LEARNING
from dpaudit.inference.power import Law, growths
from dpaudit.inference.sequential.alternatives import laplace_noise, scaled
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.learning import FIRST_FIT

DETECT = 1.2  # times less private than claimed
POWER = 0.999  # with which the planned runs show what is looked for
SHOWN = 0.9  # power below which an audit that had to show something is inconclusive, as in `dpaudit.audit`
_LEAST_GROWTH = 1e-10  # nats a trial; less than that is rounding
_NEVER = 10**12

Detect = TradeoffFunction | float
"""What to look for: a claim that is just kept, or how many times less private than claimed (> 1)."""


def planned_runs(claim: TradeoffFunction, detect: Detect, *, significance: float, pairs: int) -> int:
    """Runs per dataset, all pairs together, after which an audit that found nothing has looked for `detect`.

    With several pairs, each is given what it takes to see the violation on that pair alone.  An estimate: normal
    approximation of the best bet, times what learning the scores costs.
    """
    return pairs * (FIRST_FIT + math.ceil(LEARNING * _runs(claim, detect, significance, pairs, POWER)))


def shows(claim: TradeoffFunction, detect: Detect, runs: int, *, significance: float, pairs: int) -> bool:
    """Whether that many runs show `detect` with probability 0.9, if an attack knows the likelihood ratio."""
    return runs >= pairs * _runs(claim, detect, significance, pairs, SHOWN)


def described(detect: Detect) -> str:
    """What is looked for, in words."""
    return f"{detect:g} times less private" if isinstance(detect, float) else detect.label


def _runs(claim: TradeoffFunction, detect: Detect, significance: float, pairs: int, power: float) -> int:
    """On one pair, scores known: the least n such that the best bet j has with that probability

    log w_j + n g_j - z sqrt(n v_j) >= log(1/significance),    g_j, v_j mean and variance of its gain in a trial.
    """
    tested = claim.symmetrized()
    bets = strategy(tested)
    share = 1.0 if pairs == 1 else 1 / (2 * pairs)  # of the wealth that is bet on a pair alone
    z, needed = float(ndtri(power)), -math.log(significance * share) - bets.log_weights
    worst = 0.0
    for law in _laws(claim, detect):
        growth, variance = growths(bets, tested, law)
        grows = growth > _LEAST_GROWTH
        if not np.any(grows):
            return _NEVER
        g, v, n = growth[grows], variance[grows], needed[grows]
        worst = max(worst, float(np.min((z * np.sqrt(v) + np.sqrt(z**2 * v + 4 * g * n)) / (2 * g))))
    return min(math.ceil(worst**2), _NEVER)


@lru_cache(maxsize=256)
def _laws(claim: TradeoffFunction, detect: Detect) -> tuple[Law, ...]:
    """Laws of the bin of the log-likelihood ratio that a violation may have.

    A pure claim is broken by randomised response or, with less of a trace, by Laplace noise.
    """
    if not isinstance(detect, float):
        return (scaled(detect.symmetrized(), 1.0),)
    match claim:
        case GaussianDP():
            return (scaled(claim, detect),)
        case PureDP() | LaplaceDP() if claim.parameters["epsilon"] > 0:
            noise = laplace_noise(detect * claim.parameters["epsilon"])
            return scaled(claim, detect), (noise.p, noise.q)
    return (scaled(claim.symmetrized(), detect),)
