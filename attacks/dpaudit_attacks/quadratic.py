"""Logistic regression on the numbers and their squares, which also detects a change of spread.

The regression is exact for independent Gaussian columns whose means and variances both depend on the dataset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Scale
from dpaudit_attacks.logistic import latest, log_odds


@dataclass(frozen=True, slots=True)
class Quadratic:
    """Log-odds that are linear in every column and its square."""

    name: ClassVar[str] = "quadratic"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Fit to arrays (n, d); return a function from such arrays to log-likelihood ratios in nats."""
        scale = Scale.of(np.concatenate(latest(outputs0, outputs1, 2 * outputs0.shape[1])))

        def design(outputs: Array) -> Array:
            rows = scale(outputs)
            return np.hstack([rows, rows**2])

        return log_odds(design, outputs0, outputs1)
