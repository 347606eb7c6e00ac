"""Outputs that take few values: how often each occurs.

The score of a value is the logarithm of its shrunken frequencies' ratio; half an observation is added to each
count (Krichevsky & Trofimov 1981), so that a value seen once proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.claims import Array

_MOST_VALUES = 64


@dataclass(frozen=True, slots=True)
class Events:
    """Best possible for discrete outputs, once every value has been seen often."""

    name: ClassVar[str] = "events"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        outputs = np.concatenate([outputs0, outputs1])
        return len(np.unique(outputs, axis=0)) <= min(_MOST_VALUES, len(outputs) // 4)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """outputs0, outputs1: (n, d). The scorer maps (n, d) to log-likelihood ratios (n,); new values score 0."""
        values = {row: index for index, row in enumerate(dict.fromkeys(_rows(np.concatenate([outputs0, outputs1]))))}

        def log_frequency(outputs: Array) -> Array:
            counts = np.bincount([values[row] for row in _rows(outputs)], minlength=len(values))
            frequencies: Array = np.log((counts + 0.5) / (len(outputs) + 0.5 * len(values)))
            return frequencies

        ratio = np.append(log_frequency(outputs1) - log_frequency(outputs0), 0.0)
        return lambda outputs: ratio[[values.get(row, len(values)) for row in _rows(outputs)]]


def _rows(outputs: Array) -> list[bytes]:
    """Rows as keys: equal bits, equal key, so that NaN equals itself; -0 counts as 0."""
    return [row.tobytes() for row in np.ascontiguousarray(outputs + 0.0)]
