"""Shrunken likelihood ratios of labels, which several attacks share.  Not an attack."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array
from dpaudit.numerics.folds import out_of_fold
from dpaudit.numerics.logistic import fit_logistic

Labels = npt.NDArray[np.intp]

_PRIORS = (0.5, 1.0, 2.0, 4.0, 16.0, 64.0, 256.0)


def shrunken_ratios(counts0: Array, counts1: Array) -> Array:
    """Log-likelihood ratio of each label from how often it occurred under d0 and under d1, (k,) each.

    `prior` imaginary observations are added to both counts.  Half of one is Krichevsky & Trofimov 1981; as many are
    taken as predict best when each observation in turn is left out, so that among many rare labels none wins by luck.
    """
    best, least = np.zeros(len(counts0)), np.inf
    for prior in _PRIORS:
        miss1 = np.log1p((counts0 + prior) / np.maximum(counts1 - 1 + prior, 1e-9))
        miss0 = np.log1p((counts1 + prior) / np.maximum(counts0 - 1 + prior, 1e-9))
        loss = float(counts1 @ miss1 + counts0 @ miss0)
        if loss < least:
            best, least = np.log((counts1 + prior) / (counts0 + prior)), loss
    blind = float(counts0.sum() + counts1.sum()) * np.log(2)
    return best if least < blind else np.zeros(len(counts0))


def label_ratios(labels0: Labels, labels1: Labels, sizes: list[int]) -> Callable[[Labels], Array]:
    """Log-likelihood ratios of outputs with several labels each: (n, m) labels below `sizes` -> (n,).

    Several labels are `stacked`.  A label of -1 is unknown and tells nothing.
    """

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
    """Log-likelihood ratios of outputs with m labels each, (n, m) -> (n,), from the ratios of each label.

    Each label's ratio is a column of a logistic regression, fitted to ratios that were learned from other outputs.
    `ratios`: labels (n, m) of d0 and of d1 -> m tables, from a label to its ratio.
    """

    def fitted(first: Labels, second: Labels) -> Callable[[Labels], Array]:
        known = ratios(first, second)
        return lambda labels: np.column_stack([ratio[labels[:, j]] for j, ratio in enumerate(known)])

    final = fitted(labels0, labels1)
    slopes, intercept = fit_logistic(np.concatenate(out_of_fold(fitted, labels0, labels1)), len(labels0))
    return lambda labels: final(labels) @ slopes + intercept


def ratios_of_labels(
    labels: Callable[[Array], list[Labels]], outputs0: Array, outputs1: Array
) -> Callable[[Array], Array]:
    """Log-likelihood ratios of outputs, of which `labels` makes several labels (n,) of any integers."""
    seen = labels(np.concatenate([outputs0, outputs1]))
    known = [np.unique(label) for label in seen]
    used = [j for j, values in enumerate(known) if len(values) > 1]
    if not used:
        return lambda outputs: np.zeros(len(outputs))

    def places(found: list[Labels]) -> Labels:
        columns = []
        for j in used:
            place = np.minimum(np.searchsorted(known[j], found[j]), len(known[j]) - 1)
            columns.append(np.where(known[j][place] == found[j], place, -1))
        return np.column_stack(columns)

    all_places, n0 = places(seen), len(outputs0)
    ratios = label_ratios(all_places[:n0], all_places[n0:], [len(known[j]) for j in used])
    return lambda outputs: ratios(places(labels(outputs)))
