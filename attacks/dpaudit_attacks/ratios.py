"""Likelihood ratios of labels, and fitted laws of outputs, for use by several attacks.  This file has no attack."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, ndtri

from dpaudit.numerics import Array, fit_logistic, linear, out_of_fold

Labels = npt.NDArray[np.intp]  # labels of outputs: (n,), or (n, m) for m labels of each output

# Pseudo-counts.  Small pseudo-counts suit large leaks, and large pseudo-counts suit small leaks.
_PRIORS = np.array([0.5, 1.0, 2.0, 4.0, 16.0, 64.0, 256.0])


def shrunken_ratios(counts0: Array, counts1: Array) -> Array:
    """Return the log-likelihood ratio of each label, shrunken towards 0.

    The pseudo-count (0.5: Krichevsky & Trofimov 1981) is the one with the best leave-one-out predictions.
    """
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
