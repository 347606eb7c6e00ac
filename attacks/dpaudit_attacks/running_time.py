"""The running time and the output of a run, if the audit observes running times.

For example, a sampler of geometric noise that counts coin tosses needs more time for larger noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Scale
from dpaudit_attacks.logistic import log_odds

_OUTPUTS = 16  # maximum number of columns of the outputs that are used in addition to the time


@dataclass(frozen=True, slots=True)
class RunningTime:
    """Log-odds that are piecewise linear in the logarithm of the time and linear in the outputs."""

    knots: int = 5
    name: ClassVar[str] = "time"
    sees: ClassVar[str] = "timed"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether any running time is known."""
        return bool(np.isfinite(outputs0[:, 0]).any() or np.isfinite(outputs1[:, 0]).any())

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Return a scorer that is fitted to outputs of both datasets."""
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
        return np.column_stack([np.log(outputs[:, 0]), outputs[:, 1 : 1 + _OUTPUTS]])
