"""The running time and the output of a run, if the audit observes running times.

Some samplers, such as samplers of geometric noise, toss coins and return the number of tosses.  Larger noise then takes
more time to sample.  The output is the answer plus this noise.  So the time and the output together reveal the answer,
while neither reveals the answer alone.  Jin, McMurtry, Rubinstein & Ohrimenko 2022, "Are we there yet?  Timing and
floating-point attacks on differential privacy systems", section V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Scale
from dpaudit_attacks.logistic import log_odds
from dpaudit_attacks.trees import boosted

_OUTPUTS = 16  # maximum number of columns of the outputs that are used in addition to the time


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
        return np.column_stack([np.log(outputs[:, 0]), outputs[:, 1 : 1 + _OUTPUTS]])


@dataclass(frozen=True, slots=True)
class TimeAndOutput:
    """Boosted trees on the running time and the outputs.

    The attack needs an audit that observes running times.  `running_time` suits times that alone reveal the dataset.
    """

    name: ClassVar[str] = "time_and_output"
    sees: ClassVar[str] = "timed"
    calibrated: ClassVar[bool] = True
    from_trials: ClassVar[int] = 50
    most_rows: ClassVar[int] = 20_000

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether any running time is known and the outputs vary."""
        rows = np.concatenate([outputs0, outputs1])
        return bool(np.isfinite(rows[:, 0]).any() and np.any(rows[:, 1:] != rows[0, 1:]))

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        some = slice(0, 1 + _OUTPUTS)
        scorer = boosted(outputs0[:, some], outputs1[:, some], rng)
        return lambda outputs: scorer(outputs[:, some])
