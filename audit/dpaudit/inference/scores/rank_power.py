"""The probability that an audit of scores refutes a claim, if scores are independent likelihood ratios.

A claim f_x of the path of `rank_bounds` is refuted if all references below x are refuted and T_j is large enough, where
x_j is the first reference from x on.  The second condition nearly always implies the first, so the power is that of T_j
alone.  For other claims, x is that of the strongest claim of the path that promises less.  A plan is an estimate and
no guarantee, but simulated probabilities are rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtr

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.operations.pair_curves import pair_curves
from dpaudit.inference.scores.rank_bounds import Path, RankTest, statistic_of
from dpaudit.inference.scores.rank_laws import Law
from dpaudit.inference.scores.ranks import Statistic
from dpaudit.numerics import bisect_integers, kept

_DRAWS = 400
_ERRORS = 3.0  # standard deviations; reduces a probability near 0.9 by about 5 %
_SEED = 8_128

MOST_POWER = 0.97
"""Maximum power of a plan, with some distance to 0.983, the largest probability that a simulation can show."""


@dataclass(frozen=True, eq=False)
class Needed:
    """What refutes a claim: a value of log T, or a number of right guesses; inf or a number above all if nothing."""

    statistic: Statistic | None
    log_t: float
    largest: float  # log T if all guesses are right
    counted: int


@kept(256)
def needed(law: Law, path: Path, significance: float, claim: TradeoffFunction) -> Needed:
    """Return what refutes a symmetric claim at the significance that defines the path's bound."""
    test = RankTest(law, tuple(law.blocks.sizes.tolist()), path, significance)
    share, few = test.share, law.guesses + 1
    if share < 1:
        level = (1 - share) * significance
        if law.of_count(claim, law.guesses) <= level:
            few = bisect_integers(lambda v: law.of_count(claim, v) <= level, inside=law.guesses, outside=0).inside
    if share == 0:
        return Needed(None, np.inf, 0.0, few)
    used = statistic_of(law.blocks, path, test.reference(claim))
    largest = float(used.log(law.blocks.sizes))
    return Needed(used, law.critical(claim, used, share * significance), largest, few)


@kept(1_000)
def attained(law: Law, found: Needed, truth: TradeoffFunction) -> float:
    """Return the probability that a claim is refuted; see the module.

    If the two directions of a pair of datasets have different curves, the smaller probability is returned.  The result
    is the lower Clopper-Pearson bound of the simulated probability at the level of three standard errors.
    """
    least = 1.0
    for curve in pair_curves(truth):
        right = law.draw(curve, _DRAWS, np.random.default_rng(_SEED))
        refuted = law.counted(right) >= found.counted
        if found.statistic is not None:
            refuted |= found.statistic.log(right) >= found.log_t
        n = int(refuted.sum())
        least = min(least, float(betaincinv(n, _DRAWS - n + 1, ndtr(-_ERRORS))) if n else 0.0)
    return least
