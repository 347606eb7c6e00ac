"""What several attacks share: likelihood ratios of labels and ordered cells, and fitted laws.  No attack is here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, gammaln, logsumexp, ndtri

from dpaudit.numerics import Array, fit_logistic, linear, out_of_fold

Labels = npt.NDArray[np.intp]  # labels of outputs: (n,), or (n, m) for m labels of each output

# Pseudo-counts.  Small pseudo-counts suit large leaks, and large pseudo-counts suit small leaks.
_PRIORS = np.array([0.5, 1.0, 2.0, 4.0, 16.0, 64.0, 256.0])


def shrunken_ratios(counts0: Array, counts1: Array) -> Array:
    """Return the log ratio of each label with the best-predicting pseudo-count (0.5: Krichevsky & Trofimov 1981)."""
    priors = _PRIORS[:, None]
    miss1 = np.log1p((counts0 + priors) / np.maximum(counts1 - 1 + priors, 1e-9))
    miss0 = np.log1p((counts1 + priors) / np.maximum(counts0 - 1 + priors, 1e-9))
    losses = [float(counts1 @ first + counts0 @ second) for first, second in zip(miss1, miss0, strict=True)]
    best = min(range(len(losses)), key=losses.__getitem__)
    if losses[best] >= float(counts0.sum() + counts1.sum()) * np.log(2):
        return np.zeros(len(counts0))
    return np.asarray(np.log((counts1 + _PRIORS[best]) / (counts0 + _PRIORS[best])))


def label_ratios(labels0: Labels, labels1: Labels, sizes: list[int]) -> Callable[[Labels], Array]:
    """Return a scorer of outputs that have m labels each; if m > 1, the ratios of the labels are `stacked`."""

    def ratios(first: Labels, second: Labels) -> list[Array]:
        found = []
        for j, size in enumerate(sizes):
            counts = [np.bincount(side[:, j][side[:, j] >= 0], minlength=size) for side in (first, second)]
            found.append(np.append(shrunken_ratios(counts[0].astype(float), counts[1].astype(float)), 0.0))
        return found

    if len(sizes) == 1:
        (only,) = ratios(labels0, labels1)
        return lambda labels: only[labels[:, 0]]
    return stacked(ratios, labels0, labels1)


def stacked(
    ratios: Callable[[Labels, Labels], list[Array]], labels0: Labels, labels1: Labels
) -> Callable[[Labels], Array]:
    """Combine the ratios of m labels by a logistic regression on ratios that were learned from other outputs."""

    def fitted(first: Labels, second: Labels) -> Callable[[Labels], Array]:
        known = ratios(first, second)
        return lambda labels: np.column_stack([ratio[labels[:, j]] for j, ratio in enumerate(known)])

    final = fitted(labels0, labels1)
    slopes, intercept = fit_logistic(np.concatenate(out_of_fold(fitted, labels0, labels1)), len(labels0))
    return lambda labels: linear(final(labels), slopes) + intercept


def located(known: npt.NDArray[Any], values: npt.NDArray[Any]) -> Labels:
    """Return the place of each value among sorted known values, -1 for unknown values."""
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[place] == values, place, -1)


def ratios_of_labels(
    labels: Callable[[Array], list[Labels]], outputs0: Array, outputs1: Array
) -> Callable[[Array], Array]:
    """Return a scorer of outputs by labels that may be arbitrary integers."""
    seen = labels(np.concatenate([outputs0, outputs1]))
    known = [np.unique(label) for label in seen]
    used = [j for j, values in enumerate(known) if len(values) > 1]
    if not used:
        return lambda outputs: np.zeros(len(outputs))

    def places(found: list[Labels]) -> Labels:
        return np.column_stack([located(known[j], found[j]) for j in used])

    all_places, n0 = places(seen), len(outputs0)
    ratios = label_ratios(all_places[:n0], all_places[n0:], [len(known[j]) for j in used])
    return lambda outputs: ratios(places(labels(outputs)))


_CUTS = 3.0  # prior mean of the number of cuts between intervals
# Pseudo-counts of each dataset in an interval.  Small pseudo-counts suit large leaks, and large ones suit small leaks.
_ORDERED_PRIORS = (1.0, 30.0, 1000.0)


def averaged_ratios(counts0: npt.NDArray[np.intp], counts1: npt.NDArray[np.intp]) -> Array:
    """Return posterior means of the log-likelihood ratios of ordered cells; neighbours share one unless cut apart."""
    k = len(counts0)
    total0, total1 = (np.append(0, np.cumsum(counts)) for counts in (counts0, counts1))
    start, stop = np.meshgrid(np.arange(k + 1), np.arange(k + 1), indexing="ij")
    valid = start < stop
    in0, in1 = (np.where(valid, total[stop] - total[start], 0) for total in (total0, total1))
    every = np.arange(total0[-1] + total1[-1] + 1)
    cut = min(0.5, _CUTS / max(1, k - 1))
    evidence, means = [], []
    for prior in _ORDERED_PRIORS:
        one, both = gammaln(every + prior), gammaln(every + 2 * prior)
        piece = one[in0] + one[in1] - both[in0 + in1] - (2 * one[0] - both[0]) + (stop - start - 1) * np.log1p(-cut)
        piece = np.where(valid, piece, -np.inf)
        # log total weights of all partitions of the cells before j, and from i on
        before, after = np.zeros(k + 1), np.zeros(k + 1)
        for j in range(1, k + 1):
            before[j] = np.logaddexp.reduce(before[:j] + piece[:j, j]) + (np.log(cut) if j < k else 0.0)
        for i in range(k - 1, -1, -1):
            after[i] = np.logaddexp.reduce(after[i + 1 :] + piece[i, i + 1 :]) + (np.log(cut) if i > 0 else 0.0)
        chance = np.exp(before[:, None] + piece + after[None, :] - before[k])  # posterior probabilities of intervals
        ratio = np.log((in1 + prior) / (in0 + prior))
        # For each cell, sum over the intervals that contain it: they begin at or before the cell and end after it.
        covered = np.cumsum(np.where(valid, chance * ratio, 0.0), axis=0)
        covered = np.cumsum(covered[:, ::-1], axis=1)[:, ::-1]
        means.append(covered[np.arange(k), np.arange(1, k + 1)])
        evidence.append(before[k])
    weights = np.exp(np.array(evidence) - logsumexp(evidence))
    return np.asarray(weights @ np.array(means))


TIMED = slice(0, 17)  # the running time and the columns of the outputs that are used in addition


def varied_features(outputs0: Array, outputs1: Array) -> bool:
    """Return whether several of the latest columns vary; otherwise derived columns add no information."""
    rows = np.concatenate([outputs0[-500:], outputs1[-500:]])
    return int(np.any(rows != rows[0], axis=0).sum()) > 1


@dataclass(frozen=True, slots=True)
class FittedLaw:
    """A law that was fitted to the outputs of both datasets."""

    log_likelihood: float  # of all outputs, in nats, minus a penalty for what was estimated (Schwarz 1978)
    ratio: Callable[[Array], Array]  # maps outputs (n, d) to log-likelihood ratios (n,) in nats
    agrees: Callable[[], bool]  # tests the law by the outputs to which it was fitted


RowLaw = Callable[[Array, Array], FittedLaw | None]
"""A function that fits a law to outputs (n0, d) of d0 and (n1, d) of d1; None if they cannot come from such a law."""

LEVEL = 1e-4  # probability that a test rejects a law that is right


def independent(rest0: Array, rest1: Array) -> bool:
    """Test whether the columns of outputs minus their locations, (n0, d) and (n1, d), are independent.

    The tests are a chi-square test of all squared correlations, and Fisher's (1915) of the largest, by Bonferroni.
    """
    rest = np.concatenate([rest0[:, :256], rest1[:, :256]])
    n, d = rest.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = rest / np.sqrt(np.mean(rest**2, axis=0))
    correlations = np.nan_to_num(rest.T @ rest / n)[np.triu_indices(d, 1)]
    largest = math.atanh(min(float(np.max(np.abs(correlations), initial=0.0)), 1 - 1e-12))
    return bool(
        n * float(correlations @ correlations) <= chdtri(max(1, len(correlations)), LEVEL)
        and largest * math.sqrt(max(n - 5, 1)) <= -ndtri(LEVEL / 2 / max(1, len(correlations)))
    )
