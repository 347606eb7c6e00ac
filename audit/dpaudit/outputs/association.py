"""Measures how much columns differ between the outputs on d0 and the outputs on d1, in order to choose columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array

_LEAST_VARIANCE = 0.25  # added to the variance of counts, so that few equal counts are no certainty


def association(matrix: Array, side: npt.NDArray[np.bool_]) -> Array:
    """Return the standardised difference of each column between the outputs on d0 and the outputs on d1.

    The difference of a column is the maximum of the difference of its means and the difference of its rates of missing
    values.
    """
    strength = np.zeros(matrix.shape[1])
    with np.errstate(all="ignore"):
        missing = np.isnan(matrix)
        some = np.flatnonzero(missing.any(axis=0))  # indices of the columns with at least one missing value
        strength[some] = _gap(missing[:, some].astype(float), side)
        strength = np.maximum(strength, _gap(np.nan_to_num(matrix, posinf=1e300, neginf=-1e300), side))
    return strength


def count_association(counts: Array, side: npt.NDArray[np.bool_]) -> Array:
    """Return the difference of each column of counts between both datasets, in standard errors.

    The difference of a column is the maximum of two differences: of the mean counts, and of the rates of counts
    above 0.
    """
    n0, n1 = int((~side).sum()), int(side.sum())
    if not n0 or not n1:
        return np.zeros(counts.shape[1])
    found = np.zeros(counts.shape[1])
    for columns in (counts, (counts > 0).astype(counts.dtype)):
        first, second = columns[~side], columns[side]
        variance = (first.var(axis=0) + _LEAST_VARIANCE) / n0 + (second.var(axis=0) + _LEAST_VARIANCE) / n1
        found = np.maximum(found, np.abs(second.mean(axis=0) - first.mean(axis=0)) / np.sqrt(variance))
    return found


def _gap(columns: Array, side: npt.NDArray[np.bool_]) -> Array:
    """Return the difference between the clipped column means on d0 and d1, in standard deviations of each column."""
    low, high = np.quantile(columns.T.copy(), [0.02, 0.98], axis=1)
    clipped = np.where(low < high, np.clip(columns, low, high), np.sign(columns - low))
    difference = clipped[side].mean(axis=0) - clipped[~side].mean(axis=0)
    error = clipped.std(axis=0) + 1e-300
    gap: Array = np.nan_to_num(np.abs(difference) / error)
    return gap
