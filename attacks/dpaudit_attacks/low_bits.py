"""The last bits of whole numbers, which noise should have washed away.

Counters, addresses and identifiers mixed into an output show there, in integers of any size; so does noise that was
rounded or scaled after it was added.  For numbers that are not whole see `float_bits`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit_attacks.ratios import Labels, ratios_of_labels

_MAX_NUMBERS = 8  # numbers of an output that are looked at


@dataclass(frozen=True, slots=True)
class LowBits:
    """Ratios of the last bits and of the number of zeros at the end."""

    name: ClassVar[str] = "low_bits"
    sees: ClassVar[str] = "bits"
    calibrated: ClassVar[bool] = True
    from_trials: ClassVar[int] = 100

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return bool(len(_whole(outputs0, outputs1)))

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """outputs0, outputs1: (n, 3 d) exponents of the first and the last bit, and the last eight bits.

        The scorer maps such rows to log-likelihood ratios (n,).
        """
        whole = _whole(outputs0, outputs1)

        def labels(outputs: Array) -> list[Labels]:
            rows = outputs.astype(np.intp)
            return [
                label
                for j in whole
                for label in (rows[:, 3 * j + 1], rows[:, 3 * j + 2] & 1, rows[:, 3 * j + 2] & 7, rows[:, 3 * j + 2])
            ]

        return ratios_of_labels(labels, outputs0, outputs1)


def _whole(outputs0: Array, outputs1: Array) -> list[int]:
    """Which numbers are always whole and not always the same in their last bits."""
    rows = np.concatenate([outputs0, outputs1])
    return [
        j
        for j in range(min(_MAX_NUMBERS, rows.shape[1] // 3))
        if np.all(rows[:, 3 * j + 1] >= 0) and np.any(rows[:, 3 * j + 1 : 3 * j + 3] != rows[0, 3 * j + 1 : 3 * j + 3])
    ]
