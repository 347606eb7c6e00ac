"""Tests of the assumption that canaries are independent.

**What several groups show.**  Let the same canaries, or similar canaries, be in several runs (or batches, shards or
other groups).  A state that all canaries of a group share makes groups differ more than chance does.  `between_groups`
tests for such differences.

**What one group cannot show.**  *Theorem.*  Let the scores of the canaries of one run be independent and identically
distributed given some common state.  A test of independence that has level s for all independent and identically
distributed canaries detects the dependence with probability at most s.  *Proof.*  Given the state, the test rejects
with probability at most s, and therefore on average as well.

So one run cannot reveal a common state.  For example, a mechanism may treat all records badly with probability 0.4.  In
that case, one run looks the same as under a mechanism that always treats all records badly.  The remedies are
`independence=None` or more runs.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from dpaudit.numerics.arrays import Array
from dpaudit.numerics.binomials import log_choose

_DRAWS = 999  # default number of permutations; the smallest p-value is then 1/1000


def between_groups(
    scores: npt.ArrayLike,
    included: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = _DRAWS,
) -> float:
    """Return an exact p-value of "canaries are independent", from the same canaries in several runs.

    **Theorem.**  If all scores are independent given the coins, the coins are independent and fair, and each canary has
    the same laws in every run, then P[between_groups <= s] <= s for every s.  Laws may differ between canaries.

    *Proof.*  The pairs (score, coin) of one canary are exchangeable over runs, independently for each canary.  Sample
    `draws` copies of the observed matrix, in which the pairs of each canary are randomly permuted over the runs.  The
    matrix and its copies are exchangeable.  Take any function of a matrix and of the set of all matrices.  The values
    of this function for the matrix and for its copies are exchangeable, too.  (Barnard 1963; Phipson & Smyth 2010.)

    The test statistic measures how much three means differ between runs.  The three means are those of the score, of
    the score's distance from the middle, and of the score with the sign of the coin.  Scores are replaced by their
    ranks.

    Args:
        scores: (canaries, runs), numbers; +-inf is allowed.
        included: The coins, of the same shape.
        rng: Generator of the permutations.
        draws: Number of permutations; the p-value is at least 1 / (draws + 1).

    Returns:
        The p-value; 1 if there is only one run.

    Raises:
        ValueError: If the shapes differ or a score is NaN.
    """
    values, coins = np.asarray(scores, dtype=np.float64), np.asarray(included, dtype=np.bool_)
    if values.ndim != 2 or values.shape != coins.shape:
        raise ValueError(f"scores and coins must have shape (canaries, runs), got {values.shape} and {coins.shape}")
    if np.any(np.isnan(values)):
        raise ValueError("scores must be numbers, got nan")
    canaries, runs = values.shape
    if canaries == 0 or runs < 2:
        return 1.0
    place = _mean_ranks(values) / (values.size + 1) - 0.5
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
    """Return a two-sided p-value of "the coins were fair and independent".

    The test cannot detect a design that includes exactly half of the canaries.

    Args:
        n0: Number of canaries left out.
        n1: Number of canaries included.

    Returns:
        The p-value of a sign test, in (0, 1].
    """
    return float(min(1.0, 2 * bdtr(min(n0, n1), n0 + n1, 0.5)))


def number_factor(m: int, included: int) -> float:
    """Return the factor of p-values that allows for a number of included canaries that was fixed beforehand.

    Fair coins rarely include exactly half of the canaries, but many designs always include half.  Coins with a fixed
    sum depend on each other, so a few right guesses reveal information about the other coins.

    **Theorem.**  Let p be a p-value that is valid if independent fair coins decide which canaries are included.  If a
    uniformly random set of `included` canaries is included instead, P[p / P[B = included] <= s] <= s for every s, with
    B ~ Binomial(m, 1/2).

    *Proof.*  The random set has the law of the coins, given that `included` canaries are included.  The conditional
    probability of an event is at most its probability under coins, divided by the probability of the condition.

    The factor is at least 1, so the p-value remains valid for coins.

    Args:
        m: Number of canaries that guesses are about.
        included: Number of them that were included.

    Returns:
        1 / P[B = included], rounded up.
    """
    return math.exp(m * math.log(2) - float(log_choose(m, included))) * (1 + 1e-9 + 1e-14 * m)


def half_included(n0: int, n1: int) -> bool:
    """Return whether half of all canaries, rounded up or down, were included, so that the number may be fixed."""
    return abs(n0 - n1) <= 1


def half_by_chance(m: int) -> float:
    """Return the probability with which fair coins include half of m canaries, rounded up or down."""
    return sum(1 / number_factor(m, k) for k in {m // 2, (m + 1) // 2})


def _mean_ranks(values: Array) -> Array:
    """Return the ranks of all values, from 1, in the shape of `values`; equal values get their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(counts) - (counts - 1) / 2)[places].reshape(values.shape)
    return ranks


def _spread(features: Array) -> Array:
    """Return the variance of the means of runs, for each feature."""
    return np.asarray(features.mean(axis=1).var(axis=1))
