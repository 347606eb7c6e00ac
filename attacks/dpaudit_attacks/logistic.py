"""Logistic regressions: linear, quadratic, clipped, piecewise linear, on few derived columns, and on running times.

The fitted log-odds estimate the log-likelihood ratio.  Linear ones are exact for Gaussian noise with one covariance,
and piecewise linear ones suit noise of any smooth shape (Friedman, Hastie & Tibshirani 2009, section 5.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics import Array, fit_logistic, linear
from dpaudit.outputs import Scale
from dpaudit_attacks.ratios import TIMED, varied_features


@dataclass(frozen=True, slots=True)
class Logistic:
    """Log-odds that are linear in every column."""

    name: ClassVar[str] = "logistic"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    quick: ClassVar[bool] = True

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        scale = Scale.of(np.concatenate(latest(outputs0, outputs1, outputs0.shape[1])))
        return log_odds(scale, outputs0, outputs1)


def log_odds(
    design: Callable[[Array], Array], outputs0: Array, outputs1: Array, least_rows: int = 0
) -> Callable[[Array], Array]:
    """Return log-odds from an L2-penalised logistic regression."""
    outputs0, outputs1 = latest(outputs0, outputs1, design(outputs0[:1]).shape[1], least_rows)
    slopes, intercept = fit_logistic(design(np.concatenate([outputs0, outputs1])), len(outputs0))
    return lambda outputs: linear(design(outputs), slopes) + intercept


def latest(outputs0: Array, outputs1: Array, columns: int, least_rows: int = 0) -> tuple[Array, Array]:
    """Return the latest outputs of each dataset, as many as a regression uses."""
    # Bets on rare outputs depend on the slope: an error of 6 % doubles the trials that they need.
    most, columns = max(50_000, 4_000 * columns), max(1, columns)
    # At most about 2^34 multiplications in a step: of columns by columns products, or of rows by rows products.
    quick = max(2**34 // columns**2, math.isqrt(2**33 // columns))
    most = max(min(most, quick), least_rows)
    return outputs0[-most:], outputs1[-most:]


@dataclass(frozen=True, slots=True)
class Quadratic:
    """Log-odds that are linear in every column and its square."""

    name: ClassVar[str] = "quadratic"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        # with more coefficients than outputs, squares fit chance
        return bool(len(outputs0) + len(outputs1) > 2 * outputs0.shape[1])

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        scale = Scale.of(np.concatenate(latest(outputs0, outputs1, 2 * outputs0.shape[1])))

        def design(outputs: Array) -> Array:
            rows = scale(outputs)
            return np.hstack([rows, rows**2])

        return log_odds(design, outputs0, outputs1)


@dataclass(frozen=True, slots=True)
class MedianClipped:
    """The best possible attack on Laplace noise of any scale on one number (Neyman-Pearson)."""

    name: ClassVar[str] = "median_clipped"
    former_names: ClassVar[tuple[str, ...]] = ("threshold",)
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return bool(outputs0.shape[1] == 1)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        known = (side[~np.isnan(side)] for side in (outputs0, outputs1))
        low, high = sorted(float(np.median(side)) if len(side) else np.nan for side in known)
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        if not (np.isfinite(half) and half > 0):  # half is also 0 if the medians differ too little for a float
            return lambda outputs: np.zeros(len(outputs))

        def design(outputs: Array) -> Array:
            return np.asarray((np.clip(np.nan_to_num(outputs, nan=middle), low, high) - middle) / half)

        return log_odds(design, outputs0, outputs1)


@dataclass(frozen=True, slots=True)
class DerivedFeatures:
    """Logistic regression on the strongest columns, which are numbers of the outputs or derived from these numbers."""

    name: ClassVar[str] = "derived_features"
    former_names: ClassVar[tuple[str, ...]] = ("forms",)
    sees: ClassVar[str] = "derived"
    from_trials: ClassVar[int] = 100
    most_rows: ClassVar[int] = 20_000

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return varied_features(outputs0, outputs1)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        scale = Scale.of(np.concatenate([outputs0, outputs1]))
        rows0, rows1 = scale(outputs0), scale(outputs1)
        error = np.sqrt(rows0.var(axis=0) / len(rows0) + rows1.var(axis=0) / len(rows1)) + 1e-3
        strength = np.abs(rows1.mean(axis=0) - rows0.mean(axis=0)) / error
        chosen = np.sort(np.argsort(-strength, kind="stable")[:12])
        return log_odds(lambda outputs: scale.columns(outputs, chosen), outputs0, outputs1)


_TAILS = np.array([0.003, 0.02])  # quantiles of additional bends in each tail; some leaks occur in rare outputs only
_TAILS_FROM = 10_000  # minimum total number of outputs of both datasets for learning the bends in the tails
_SECOND_STAGE_ROWS = 500_000  # maximum number of outputs of each dataset in the second stage


@dataclass(frozen=True, slots=True)
class Spline:
    """Additive log-odds that are piecewise linear in each column, with bends at quantiles."""

    knots: int = 7
    name: ClassVar[str] = "spline"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    most_rows: ClassVar[int] = 100_000

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        # with more columns, the curves have too many pieces to be learned from early trials
        return bool(outputs0.shape[1] <= 20)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        return self._fitted(outputs0, outputs1)

    def fit_second_stage(
        self, outputs0: Array, outputs1: Array, rng: np.random.Generator
    ) -> Callable[[Array], Array] | None:
        """Fit like `fit`, but to more outputs.  Return None if an output has more than three numbers."""
        if outputs0.shape[1] > 3:
            return None
        return self._fitted(outputs0[-_SECOND_STAGE_ROWS:], outputs1[-_SECOND_STAGE_ROWS:], _SECOND_STAGE_ROWS)

    def _fitted(self, outputs0: Array, outputs1: Array, least_rows: int = 0) -> Callable[[Array], Array]:
        outputs = np.concatenate([outputs0, outputs1])
        scale = Scale.of(outputs)
        seen = scale(outputs)
        quantiles = np.linspace(0, 1, self.knots + 2)[1:-1]
        if len(outputs) >= _TAILS_FROM:
            quantiles = np.concatenate([_TAILS, quantiles, 1 - _TAILS])
        spaced = seen[:: max(1, len(seen) // _TAILS_FROM)]  # enough rows to place the bends
        bends = [np.unique(column) for column in np.quantile(spaced, quantiles, axis=0).T]

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
        # The score is the sum of one piecewise linear curve for each column, so tables of the curves give it faster.
        # Beyond the outermost seen outputs, the curves are constant, since nothing was learned there.
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


@dataclass(frozen=True, slots=True)
class RunningTime:
    """Log-odds that are piecewise linear in the logarithm of the time and linear in the outputs."""

    knots: int = 5
    name: ClassVar[str] = "time"
    sees: ClassVar[str] = "timed"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return bool(np.isfinite(outputs0[:, 0]).any() or np.isfinite(outputs1[:, 0]).any())

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        scale = Scale.of(_logarithms(np.concatenate([outputs0, outputs1])))
        seen = scale(_logarithms(np.concatenate([outputs0, outputs1])))
        bends = np.unique(np.quantile(seen[:, 0], np.linspace(0, 1, self.knots + 2)[1:-1]))
        low, high = seen.min(axis=0), seen.max(axis=0)

        def design(outputs: Array) -> Array:
            rows = np.clip(scale(_logarithms(outputs)), low, high)
            return np.hstack([rows, np.maximum(rows[:, [0]] - bends, 0.0)])

        return log_odds(design, outputs0, outputs1)


def _logarithms(outputs: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.column_stack([np.log(outputs[:, 0]), outputs[:, 1 : TIMED.stop]])
