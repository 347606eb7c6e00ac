"""Tests of scores as data: whether canaries are exchangeable between and along runs, and whether scores were copied.

If scores are independent given the coins, and canaries are of one kind, neither the run of a canary nor its place in
the list tells anything about its score.  A state that all canaries of a run share, such as a bad seed, makes runs
differ.  A state that changes within a run, such as the quality of a shard, makes places differ.

**Which canaries must be exchangeable.**  The tests assume that the pairs (score, coin) have the same law in all runs,
and that the scores of one side have the same law at all places.  Canaries of several kinds are allowed if their order
is random.  Canaries that are listed kind by kind, or of other kinds in other runs, are refused by the tests although
they may be independent.  If all runs have the same canaries in random order, the tests rarely reject.

**Theorem.**  If the pairs are exchangeable, each p-value p of this module satisfies P[p <= s] <= s for every s.

*Proof.*  Let T be the statistic of the observed scores, and T_1, T_2, ... the statistics of copies in which the pairs
are randomly permuted.  The scores and the copies are exchangeable, so each T is equally likely to be the largest of the
first l + 1.  Let the draws end at the first T_l >= T, or after n - 1 draws.  The p-value is 1 / l or 1 / n.  The event
p <= 1 / l means that T is larger than each of l - 1 copies, which has probability at most 1 / l.  (Besag & Clifford
1991, Biometrika 78, 301-304, with h = 1.)

The statistics are maxima of several statistics that are converted to normal deviates.  The conversion uses constants
only, so any inaccuracy changes the power but not the level.

**Long lists.**  If there are more than `_PERMUTED` canaries, features are averaged over groups of equal size: of random
canaries of a run, or of neighbours in the list.  The canaries that remain are left out.  Groups of exchangeable
canaries are exchangeable.

**What one run cannot show.**  *Theorem.*  Let the scores of the canaries of one run be independent and identically
distributed given some common state.  A test of independence that has level s for all independent and identically
distributed canaries detects the dependence with probability at most s.  *Proof.*  Given the state, the test rejects
with probability at most s, and therefore on average as well.

So one run cannot reveal a common state.  For example, a mechanism may treat all records badly with probability 0.4.  In
that case, one run looks the same as under a mechanism that always treats all records badly.  The remedies are
`independence=None` or more runs; `between_runs` and `along_the_list` test what several runs, or the order of canaries,
can show.

# Copies (`repeats_p_value`)

Independent scores with the same law may be equal, because the law may have atoms.  The number of times that an atom
occurs then varies from atom to atom.  A file that holds each score exactly twice has no such variation.

**Theorem.**  Let w(1), w(2), ... > -1 be weights with

    w(1) x + w(2) x^2 / 2! + w(3) x^3 / 3! + ... <= 0    for every x >= 0.                              (1)

Let n independent scores have the same law, K_1, ..., K_D be the numbers of times that its D different values occur, and
E = (1 + w(K_1)) ... (1 + w(K_D)).  Then P[E >= c] <= e sqrt(n) / c for every law and every c > 0.

*Proof.*  First let the number of scores be Poisson(n).  Then the numbers of times that different atoms occur are
independent and Poisson.  By (1), the factor 1 + w(K) of each atom, which is 1 if the atom does not occur, has
expectation at most 1.  A part without atoms gives factors 1 + w(1) <= 1, since (1) implies w(1) <= 0.  So E has
expectation at most 1, and Markov's inequality holds.  A Poisson(n) number equals n with probability at least 1 / (e
sqrt(n)), by Stirling's formula.  So the probability of an event for exactly n scores is at most e sqrt(n) times its
probability for a Poisson(n) number of scores.  QED

The two sides are independent, so the values of E and the factors e sqrt(n) of both sides are multiplied.  The mean of E
over several choices of weights has the same property.

**Weights.**  Lemma A: w(c - 1) = -u, w(c) = 2 sqrt(u v c / (c + 1)), w(c + 1) = -v, and 0 elsewhere, satisfy (1).
*Proof.*  Divide (1) by x^(c-1) / (c-1)!; a quadratic polynomial without a positive value remains.

Lemma B: w = u for multiples of c and -u for other numbers, 0 <= u < 1, c >= 2, satisfy (1).  *Proof.*  For c = 2, the
sum is u (cosh x - 1 - sinh x) <= 0.  For c >= 3 and each multiple k of c, the sum of the terms of k - 1 and k + 1 is at
least 2 sqrt(k / (k + 1)) >= 1 times the term of k.  No two multiples share a neighbour.

Lemma C: w(1) = w(b + 1) = -u, w = u / R for 2, ..., b, and 0 elsewhere, satisfy (1), where R is the maximum of
(x^2 / 2! + ... + x^b / b!) / (x + x^(b+1) / (b+1)!).

**What the test cannot detect.**  The test detects neither a small number of copies nor copies whose numbers vary
like the multiplicities of atoms, such as a sample with replacement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array

LEVEL = 1e-3
"""Probability with which `between_runs` and `along_the_list` together warn of independent canaries of one kind."""

_DRAWS = 2_000  # with one copy fewer, the smallest p-value is LEVEL / 2
_PERMUTED = 10_000  # maximum number of canaries, or of groups of canaries, that are permuted
_TESTED_SCORES = 20  # minimum number of scores of one side whose order is tested
_ROUNDING = 1e-9  # statistics that differ by less are called equal, which increases the p-value
_BLOCKS = (2, 4, 16)  # numbers of blocks into which a list is divided

Labels = npt.NDArray[np.intp]


def between_runs(scores0: Array, scores1: Array, run0: Labels, run1: Labels, *, rng: np.random.Generator) -> float:
    """Return a p-value of "the run of a canary tells nothing about its score and its coin".

    The statistic is how much the means of ranks, of their distances from the middle, and of their sign by the coin
    differ.
    """
    place = _ranks(np.concatenate([scores0, scores1]))
    sign = np.where(np.arange(len(place)) < len(scores0), -1.0, 1.0)
    features, run = np.stack([place, np.abs(place), place * sign]), np.concatenate([run0, run1])
    if (size := -(-len(run) // _PERMUTED)) > 1:
        means, labels = [], []
        for label in np.unique(run):
            own = rng.permutation(np.flatnonzero(run == label))
            groups = len(own) // size
            means.append(features[:, own[: groups * size]].reshape(3, groups, size).mean(axis=2))
            labels.append(np.full(groups, label))
        features, run = np.concatenate(means, axis=1), np.concatenate(labels)
    sizes = np.bincount(run).astype(np.float64)
    runs = int(np.count_nonzero(sizes))
    if runs < 2:
        return 1.0
    features = _standardised(features)

    def statistic(labels: Labels) -> float:
        totals = np.array([np.bincount(labels, feature, minlength=len(sizes)) for feature in features])
        spread = (totals**2 / np.maximum(sizes, 1.0)).sum(axis=1)
        return float(_deviate(spread, runs - 1).max())

    observed = statistic(run)
    return _p_value(observed, lambda: statistic(rng.permutation(run)))


def along_the_list(scores0: Array, scores1: Array, *, rng: np.random.Generator) -> float:
    """Return a p-value of "the places of scores in their lists tell nothing about the scores".

    The statistics are products of neighbouring ranks and distances from the middle, and their differences between
    blocks of the list, on both sides together, with equal and with opposite signs.
    """
    for scores in (scores0, scores1):
        rises, falls = scores[1:] >= scores[:-1], scores[1:] <= scores[:-1]
        if len(scores) < _TESTED_SCORES or rises.all() or falls.all():  # a sorted list has lost its order
            return 1.0
    place = _ranks(np.concatenate([scores0, scores1]))
    sides = []
    for own in np.split(place, [len(scores0)]):
        size = max(1, -(-len(own) // (_PERMUTED // 2)))
        features = np.stack([own, np.abs(own)])[:, : len(own) // size * size]
        sides.append(_standardised(features.reshape(2, -1, size).mean(axis=2)))

    def statistic(lists: list[Array]) -> float:
        products = [(side[:, 1:] * side[:, :-1]).sum(axis=1) / math.sqrt(side.shape[1]) for side in lists]
        deviates = [_deviate((products[0] + products[1]) ** 2 / 2, 1)]
        for blocks in _BLOCKS:
            means = []
            for side in lists:
                ends = np.linspace(0, side.shape[1], blocks + 1).astype(np.intp)
                means.append(np.add.reduceat(side, ends[:-1], axis=1) / np.sqrt(np.diff(ends)))
            for sign in (1.0, -1.0):
                spread = ((means[0] + sign * means[1]) ** 2).sum(axis=1) / 2
                deviates.append(_deviate(spread, blocks - 1))
        return float(np.max(deviates))

    return _p_value(statistic(sides), lambda: statistic([rng.permutation(side, axis=1) for side in sides]))


def _deviate(square: Array, freedom: int) -> Array:
    """Return approximate normal deviates of chi-squared variables (Wilson & Hilferty 1931)."""
    share = 2 / (9 * freedom)
    return np.asarray((np.cbrt(square / freedom) - (1 - share)) / math.sqrt(share))


def _p_value(observed: float, draw: Callable[[], float]) -> float:
    """Draw copies until one is at least as large as the observed statistic; see the module's theorem."""
    for drawn in range(1, _DRAWS):
        if draw() >= observed - _ROUNDING:
            return 1 / drawn
    return 1 / _DRAWS


def _standardised(features: Array) -> Array:
    """Return features with mean 0 and variance 1; features without variance become 0."""
    centred = features - features.mean(axis=1, keepdims=True)
    scale = centred.std(axis=1, keepdims=True)
    return np.where(scale > _ROUNDING, centred / np.maximum(scale, _ROUNDING), 0.0)


def _ranks(values: Array) -> Array:
    """Return ranks between -1/2 and 1/2; equal values get their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(counts) - (counts - 1) / 2)[places] / (len(values) + 1) - 0.5
    return ranks


Multiplicities = npt.ArrayLike  # how often each of the different scores of one side occurs, (D,), integers >= 1

_LARGEST = 64  # larger multiplicities share one weight, which is at most 0
_PAIRS = (
    (0.5, 0.5),
    (0.9, 0.9),
    (0.05, 0.9),
    (0.2, 0.9),
)  # u, v of Lemma A; a small u suits a file that is partly copied
_COPIES = range(2, 7)  # c of Lemmas A and B
_BET = 0.9  # u of Lemmas B and C
_RANGES = ((3, 1.415), (5, 3.976), (8, 12.796))  # b and R of Lemma C, rounded up


def repeats_p_value(first: Multiplicities, second: Multiplicities) -> float:
    """Return a p-value of "the scores of either side are independent and have the same law"."""
    sizes = [max(int(np.sum(side)), 1) for side in (first, second)]
    return math.exp(min(0.0, sum(1 + 0.5 * math.log(n) for n in sizes) - _log_e(first, second)))


def _log_e(first: Multiplicities, second: Multiplicities) -> float:
    """Return the logarithm of the theorem's E, multiplied over both sides and averaged over all choices of weights."""
    counts = [
        np.bincount(np.minimum(side, _LARGEST), minlength=_LARGEST + 1) for side in map(np.asarray, (first, second))
    ]
    log_e = np.log1p(_weights()) @ (counts[0] + counts[1])
    return float(np.logaddexp.reduce(log_e)) - math.log(len(log_e))


@cache
def _weights() -> Array:
    """Return the weights of the multiplicities 0, ..., 64, one row for each choice; 64 stands for 64 or more."""
    k, rows = np.arange(_LARGEST + 1), []
    for c in _COPIES:
        for u, v in _PAIRS:
            middle = 2 * math.sqrt(u * v * c / (c + 1))
            rows.append(np.select([k == c - 1, k == c, k == c + 1], [-u, middle, -v]))
        rows.append(np.where(k % c == 0, _BET, -_BET))
    for last, ratio in _RANGES:
        rows.append(np.where((k >= 2) & (k <= last), _BET / ratio, np.where((k == 1) | (k == last + 1), -_BET, 0.0)))
    weights = np.array(rows)
    weights[:, 0] = 0.0
    # The weights of Lemma B are never all 0 from some multiplicity on, in contrast to those of Lemmas A and C.
    weights[:, _LARGEST] = np.where(weights[:, _LARGEST - 6 : _LARGEST].min(axis=1) < 0, -_BET, 0.0)
    return weights
