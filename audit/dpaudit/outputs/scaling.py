"""Scales columns that may contain infinities and NaN by robust estimates of location and spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array

_REACH = 8.0  # maximum absolute scaled value; clipping prevents a single output from dominating a fit


@dataclass(frozen=True, slots=True)
class Scale:
    """A robust standardisation of columns that is fitted to training outputs.

    NaN is replaced by the median of the column.  Additional indicator columns mark the replaced values.
    """

    centre: Array  # median of each column; shape (d,)
    spread: Array  # half the distance between the 16 % and 84 % quantiles of each column, > 0; shape (d,)
    missing: npt.NDArray[np.intp]  # indices of the columns that contain NaN in the training outputs

    @classmethod
    def of(cls, outputs: Array) -> Scale:
        """Estimate the centre and spread of each column from the finite numbers in the column.

        Args:
            outputs: The training outputs; shape (n, d), where n >= 1.

        Raises:
            ValueError: If the training outputs contain no finite number.
        """
        known = np.isfinite(outputs)
        if not known.any():
            raise ValueError("no number is finite")
        complete = known.all(axis=0)
        centre, spread = np.zeros(outputs.shape[1]), np.ones(outputs.shape[1])
        if complete.all():
            return cls(*_middle(outputs), np.zeros(0, dtype=np.intp))
        if complete.any():
            centre[complete], spread[complete] = _middle(outputs[:, complete])
        for j in np.flatnonzero(known.any(axis=0) & ~complete):
            (centre[j],), (spread[j],) = _middle(outputs[known[:, j], j][:, None])
        return cls(centre, spread, np.flatnonzero(np.any(np.isnan(outputs), axis=0)))

    def __call__(self, outputs: Array) -> Array:
        """Return the scaled columns and the indicator columns of n outputs; shape (n, d + len(missing)), all finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.asarray(outputs - self.centre)
            np.divide(scaled, self.spread, out=scaled)
        np.maximum(scaled, -_REACH, out=scaled)
        np.minimum(scaled, _REACH, out=scaled)
        if np.isnan(scaled.sum()):  # all numbers are finite, so the sum is NaN only if one of them is
            scaled[np.isnan(scaled)] = 0.0
        if not len(self.missing):
            return scaled
        return np.hstack([scaled, np.isnan(outputs[:, self.missing]).astype(np.float64)])

    def columns(self, outputs: Array, chosen: npt.NDArray[np.intp]) -> Array:
        """Return `self(outputs)[:, chosen]`, without scaling the other columns.

        Args:
            outputs: The n outputs; shape (n, d).
            chosen: Indices of columns in increasing order; shape (k,).
        """
        numbers, marks = chosen[chosen < len(self.centre)], chosen[chosen >= len(self.centre)] - len(self.centre)
        some = Scale(self.centre[numbers], self.spread[numbers], np.zeros(0, dtype=np.intp))
        scaled = some(outputs[:, numbers])
        if not len(marks):
            return scaled
        return np.hstack([scaled, np.isnan(outputs[:, self.missing[marks]]).astype(np.float64)])


def _middle(columns: Array) -> tuple[Array, Array]:
    """Return the centre and the spread of each column of a finite array of shape (n, d), where n >= 1."""
    rows = np.array(columns.T, order="C")  # a copy
    rows.sort(axis=1)  # faster than the partial sort of `np.quantile`
    low, middle, high = (_quantile(rows, share) for share in (0.16, 0.5, 0.84))
    with np.errstate(over="ignore"):
        half = high / 2 - low / 2
        wide = rows[:, -1] / 2 - rows[:, 0] / 2
    return middle, np.where(half > 0, half, np.where(wide > 0, wide, 1.0))


def _quantile(ordered: Array, share: float) -> Array:
    """Return a quantile of each row of an array (d, n) of sorted finite numbers, as `np.quantile` computes it; (d,)."""
    place = share * (ordered.shape[1] - 1)
    below = int(place)
    weight = place - below
    first, second = ordered[:, below], ordered[:, min(below + 1, ordered.shape[1] - 1)]
    with np.errstate(over="ignore"):
        apart = second - first
        found: Array = first + apart * weight if weight < 0.5 else second - apart * (1 - weight)
    return found
