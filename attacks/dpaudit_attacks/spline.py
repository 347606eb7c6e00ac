"""Logistic regression whose log-odds are a piecewise linear curve in each number; it suits noise of any smooth shape.

Friedman, Hastie & Tibshirani 2009, The Elements of Statistical Learning, section 5.6, with linear pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Scale
from dpaudit_attacks.logistic import log_odds

_MAX_COLUMNS = 20  # with more columns, the curves have too many pieces to be learned from early trials
_TAILS = np.array([0.003, 0.02])  # quantiles of additional bends in each tail; some leaks occur in rare outputs only
_TAILS_FROM = 10_000  # minimum total number of outputs of both datasets for learning the bends in the tails
_MAX_SECOND_STAGE_ROWS = 500_000  # maximum number of outputs of each dataset in the second stage
_MAX_SECOND_STAGE_COLUMNS = 3  # maximum number of columns in the second stage


@dataclass(frozen=True, slots=True)
class Spline:
    """Additive log-odds that are piecewise linear in each column, with bends at quantiles."""

    knots: int = 7
    name: ClassVar[str] = "spline"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    most_rows: ClassVar[int] = 100_000

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return bool(outputs0.shape[1] <= _MAX_COLUMNS)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        return self._fitted(outputs0, outputs1)

    def fit_second_stage(
        self, outputs0: Array, outputs1: Array, rng: np.random.Generator
    ) -> Callable[[Array], Array] | None:
        """Fit like `fit`, but to more outputs.  Return None if an output has more than three numbers."""
        if outputs0.shape[1] > _MAX_SECOND_STAGE_COLUMNS:
            return None
        return self._fitted(
            outputs0[-_MAX_SECOND_STAGE_ROWS:], outputs1[-_MAX_SECOND_STAGE_ROWS:], _MAX_SECOND_STAGE_ROWS
        )

    def _fitted(self, outputs0: Array, outputs1: Array, least_rows: int = 0) -> Callable[[Array], Array]:
        outputs = np.concatenate([outputs0, outputs1])
        scale = Scale.of(outputs)
        seen = scale(outputs)
        quantiles = np.linspace(0, 1, self.knots + 2)[1:-1]
        if len(outputs) >= _TAILS_FROM:
            quantiles = np.concatenate([_TAILS, quantiles, 1 - _TAILS])
        bends = [np.unique(column) for column in np.quantile(seen, quantiles, axis=0).T]

        def design(rows: Array) -> Array:
            columns = np.empty((rows.shape[1] + sum(map(len, bends)), len(rows)))  # the layout of `fit_logistic`
            columns[: rows.shape[1]] = rows.T
            start = rows.shape[1]
            for j, bend in enumerate(bends):
                hinges = columns[start : start + len(bend)]
                np.subtract(columns[j], bend[:, None], out=hinges)
                np.maximum(hinges, 0.0, out=hinges)
                start += len(bend)
            return columns.T

        fitted = log_odds(design, seen[: len(outputs0)], seen[len(outputs0) :], least_rows)
        return tabulated(fitted, scale, seen, bends)


def tabulated(
    fitted: Callable[[Array], Array], scale: Scale, seen: Array, bends: list[Array]
) -> Callable[[Array], Array]:
    """Return a faster function that interpolates in a table and equals `fitted` on the range of the seen outputs.

    A score is the sum of one piecewise linear curve for each column.  Beyond the outermost seen outputs, the returned
    curves are constant, since nothing was learned there.
    """
    corner, top = seen.min(axis=0), seen.max(axis=0)
    (base,) = fitted(corner[None])
    curves = []
    for j, bend in enumerate(bends):
        points = np.unique(np.concatenate([corner[[j]], bend, top[[j]]]))
        along = np.tile(corner, (len(points), 1))
        along[:, j] = points
        curves.append((points, fitted(along) - base))

    def score(outputs: Array) -> Array:
        scores = np.full(len(outputs), base)
        for column, (points, heights) in zip(scale(outputs).T, curves, strict=True):
            scores += np.interp(column, points, heights)
        return scores

    return score
