"""Logistic regression on the outputs' numbers.

With equally many outputs of both datasets the log-odds estimate the log-likelihood ratio.  Linear log-odds are
exact for Gaussian noise of the same covariance under both datasets, in any dimension.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.claims import Array
from dpaudit.outputs import Scale


@dataclass(frozen=True, slots=True)
class Logistic:
    """Linear log-odds in every column."""

    name: ClassVar[str] = "logistic"
    calibrated: ClassVar[bool] = True  # scores are log-likelihood ratios already

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """outputs0, outputs1: (n, d). The scorer maps (n, d) to log-likelihood ratios (n,)."""
        return log_odds(Scale.of(np.concatenate([outputs0, outputs1])), outputs0, outputs1)


def log_odds(design: Callable[[Array], Array], outputs0: Array, outputs1: Array) -> Callable[[Array], Array]:
    """Ridge-penalised logistic regression on the columns that `design` makes of outputs.

    The penalty is one half of the squared norm of the coefficients, so columns should be of order one.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    rows, labels = design(np.concatenate([outputs0, outputs1])), np.repeat([0, 1], [len(outputs0), len(outputs1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it then goes on with another solver by itself
        model = LogisticRegression(C=1.0, solver="newton-cholesky").fit(rows, labels)
    slopes, intercept = model.coef_[0], float(model.intercept_[0])
    return lambda outputs: design(outputs) @ slopes + intercept
