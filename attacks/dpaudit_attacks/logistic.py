"""Logistic regressions on the outputs' numbers: linear, quadratic, clipped, and on few derived columns.

With equal numbers of outputs of both datasets, the fitted log-odds are estimates of the log-likelihood ratio.  Linear
log-odds are exact for Gaussian noise with the same covariance under both datasets, in any dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.numerics.logistic import fit_logistic, linear
from dpaudit.outputs import Scale

# The regression uses at least this number of outputs, because bets on rare outputs depend on the slope.  An error of
# 6 % in the slope doubles the number of trials that these bets need.
_MIN_ROWS = 50_000
_ROWS_PER_COLUMN = 4_000


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
    """Return log-odds from an L2-penalised logistic regression.

    The regression uses the latest outputs.  The penalty is one half of the squared norm of the coefficients, so columns
    should be of order one.
    """
    outputs0, outputs1 = latest(outputs0, outputs1, design(outputs0[:1]).shape[1], least_rows)
    slopes, intercept = fit_logistic(design(np.concatenate([outputs0, outputs1])), len(outputs0))
    return lambda outputs: linear(design(outputs), slopes) + intercept


def latest(outputs0: Array, outputs1: Array, columns: int, least_rows: int = 0) -> tuple[Array, Array]:
    """Return the latest outputs of each dataset, as many as a regression uses."""
    most = max(_MIN_ROWS, _ROWS_PER_COLUMN * columns, least_rows)
    return outputs0[-most:], outputs1[-most:]


@dataclass(frozen=True, slots=True)
class Quadratic:
    """Log-odds that are linear in every column and its square."""

    name: ClassVar[str] = "quadratic"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True

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
        low, high = sorted((_median(outputs0), _median(outputs1)))
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        if not (np.isfinite(half) and half > 0):  # half is also 0 if the medians differ too little for a float
            return lambda outputs: np.zeros(len(outputs))

        def design(outputs: Array) -> Array:
            position: Array = (np.clip(np.nan_to_num(outputs, nan=middle), low, high) - middle) / half
            return position

        return log_odds(design, outputs0, outputs1)


def _median(outputs: Array) -> float:
    known = outputs[~np.isnan(outputs)]
    return float(np.median(known)) if len(known) else np.nan


_MAX_CHOSEN = 12  # maximum number of columns in the regression


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
        chosen = np.sort(np.argsort(-strength, kind="stable")[:_MAX_CHOSEN])
        return log_odds(lambda outputs: scale.columns(outputs, chosen), outputs0, outputs1)


def varied_features(outputs0: Array, outputs1: Array) -> bool:
    """Return whether several of the latest columns vary; otherwise derived columns add no information."""
    rows = np.concatenate([outputs0[-500:], outputs1[-500:]])
    return int(np.any(rows != rows[0], axis=0).sum()) > 1
