"""Logistic regression on the few derived columns that differ most: rounding, equality, order, norms, products.

See `dpaudit.outputs.derived` for the columns.  Columns that were chosen among many seem better than they are.  So
dpaudit calibrates the scores on outputs that did not influence the choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Scale
from dpaudit_attacks.logistic import log_odds

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
        """Return whether more than one column varies."""
        return varied_features(outputs0, outputs1)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Fit to arrays (n, d); return a function from such arrays to log-odds."""
        scale = Scale.of(np.concatenate([outputs0, outputs1]))
        rows0, rows1 = scale(outputs0), scale(outputs1)
        error = np.sqrt(rows0.var(axis=0) / len(rows0) + rows1.var(axis=0) / len(rows1)) + 1e-3
        strength = np.abs(rows1.mean(axis=0) - rows0.mean(axis=0)) / error
        chosen = np.sort(np.argsort(-strength, kind="stable")[:_MAX_CHOSEN])
        return log_odds(lambda outputs: scale.columns(outputs, chosen), outputs0, outputs1)


def varied_features(outputs0: Array, outputs1: Array) -> bool:
    """Return whether more than one column varies among the latest outputs.

    If only one column varies, derived columns contain no further information.
    """
    rows = np.concatenate([outputs0[-500:], outputs1[-500:]])
    return int(np.any(rows != rows[0], axis=0).sum()) > 1
