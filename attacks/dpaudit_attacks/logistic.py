"""Logistic regression on the outputs' numbers.

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
        """Fit to arrays (n, d); return a function from such arrays to log-likelihood ratios in nats."""
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
