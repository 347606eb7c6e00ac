"""Whether canaries that are taken as independent look as if they were.

**What can be seen.**  If the same canaries, or canaries that are alike, are in several runs (or batches, shards or
other groups), a state that all canaries of a group share makes groups differ more than chance does.  `between_groups`
tests it.

**What cannot.**  *Theorem.*  Let the canaries of one run be exchangeable and their scores independent given some common
state.  A test of independence that has level s for all independent and identically distributed canaries finds the
dependence with probability at most s.  *Proof.*  Given the state the canaries are independent and identically
distributed, so the test rejects with probability at most s for each state, and so on average.

So one run cannot show a common state: a mechanism that treats all records badly with probability 0.4 looks, when it
does, like one that always does.  `independence=None` is the answer to that, or more runs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import binom, rankdata

from dpaudit.numerics.arrays import Array

_DRAWS = 999


def between_groups(
    scores: npt.ArrayLike,
    included: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = _DRAWS,
) -> float:
    """An exact p-value of "canaries are independent", from the same canaries in several runs.

    **Theorem.**  If all scores are independent given the coins, the coins are independent and fair, and each canary has
    the same laws in every run, then P[between_groups <= s] <= s for every s.  Laws may differ between canaries.

    *Proof.*  The pairs (score, coin) of one canary are exchangeable over runs, independently for each canary.  So the
    observed matrix and `draws` copies of it, each canary permuted over the runs by chance, are exchangeable, and so are
    functions of one of them and the set of all.  (Barnard 1963; Phipson & Smyth 2010.)

    The function is how much three means differ between runs: of the score, of its distance from the middle, and of how
    right it is.  Scores enter by their rank among all.

    Args:
        scores: (canaries, runs), numbers; +-inf is allowed.
        included: The coins, of the same shape.
        rng: For the permutations.
        draws: How many; the p-value is at least 1 / (draws + 1).

    Returns:
        The p-value; 1 if there is only one run.

    Raises:
        ValueError: If the shapes differ or a score is NaN.
    """
    values, coins = np.asarray(scores, dtype=np.float64), np.asarray(included, dtype=np.bool_)
    if values.ndim != 2 or values.shape != coins.shape:
        raise ValueError(f"scores and coins must be (canaries, runs) both, got {values.shape} and {coins.shape}")
    if np.any(np.isnan(values)):
        raise ValueError("scores must be numbers, got nan")
    canaries, runs = values.shape
    if canaries == 0 or runs < 2:
        return 1.0
    place = rankdata(values).reshape(values.shape) / (values.size + 1) - 0.5  # the mean of equal ones
    features = np.stack([place, np.abs(place), place * np.where(coins, 1.0, -1.0)])  # (3, canaries, runs)
    found = np.empty((draws + 1, len(features)))
    found[0] = _spread(features)
    for i in range(1, draws + 1):
        order = np.argsort(rng.random((canaries, runs)), axis=1)
        found[i] = _spread(np.take_along_axis(features, order[None], axis=2))
    scale = found.std(axis=0)
    largest = ((found - found.mean(axis=0)) / np.where(scale > 0, scale, 1.0)).max(axis=1)
    return float(np.count_nonzero(largest >= largest[0] - 1e-9) / (draws + 1))


def coins_p_value(n0: int, n1: int) -> float:
    """A p-value of "the coins were fair and independent", from n0 canaries left out and n1 put in; two-sided.

    Exactly half of the canaries put in by design is not found by it.
    """
    return float(min(1.0, 2 * binom.cdf(min(n0, n1), n0 + n1, 0.5)))


def _spread(features: Array) -> Array:
    """By how much the means of runs vary, for each feature."""
    return np.asarray(features.mean(axis=1).var(axis=1))
