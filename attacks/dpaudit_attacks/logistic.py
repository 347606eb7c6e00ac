"""Logistic regression on the outputs' numbers.

With equally many outputs of both datasets the log-odds estimate the log-likelihood ratio.  Linear log-odds are
exact for Gaussian noise of the same covariance under both datasets, in any dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.numerics.logistic import fit_logistic
from dpaudit.outputs import Scale

# Bets on rare outputs rest on the slope: where it is 6 % off, they need twice the trials.
_MIN_ROWS = 50_000
_ROWS_PER_COLUMN = 4_000


@dataclass(frozen=True, slots=True)
class Logistic:
    """Linear log-odds in every column."""

    name: ClassVar[str] = "logistic"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True  # scores are log-likelihood ratios already

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """outputs0, outputs1: (n, d). The scorer maps (n, d) to log-likelihood ratios (n,)."""
        return log_odds(Scale.of(np.concatenate([outputs0, outputs1])), outputs0, outputs1)


def log_odds(
    design: Callable[[Array], Array], outputs0: Array, outputs1: Array, least_rows: int = 0
) -> Callable[[Array], Array]:
    """Ridge-penalised logistic regression on the columns that `design` makes of outputs.

    It looks at the latest outputs, as many as are worth their time, at least `least_rows` if there are so many.  The
    penalty is one half of the squared norm of the coefficients, so columns should be of order one.
    """
    columns = design(outputs0[:1]).shape[1]
    most = max(_MIN_ROWS, _ROWS_PER_COLUMN * columns, least_rows)
    outputs0, outputs1 = outputs0[-most:], outputs1[-most:]
    slopes, intercept = fit_logistic(design(np.concatenate([outputs0, outputs1])), len(outputs0))
    return lambda outputs: design(outputs) @ slopes + intercept
