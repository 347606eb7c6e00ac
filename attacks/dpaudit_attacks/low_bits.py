"""The last bits of whole numbers, which noise should hide.

The last bits reveal counters, addresses and identifiers that are mixed into an output, in integers of any size.  They
also reveal an output that was rounded or scaled after noise was added.  `float_bits` is for non-integer numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit_attacks.ratios import Labels, ratios_of_labels

_MAX_NUMBERS = 8  # maximum number of numbers of an output that are used


@dataclass(frozen=True, slots=True)
class LowBits:
    """Likelihood ratios of the last bits, and of the number of trailing zeros."""

    name: ClassVar[str] = "low_bits"
    sees: ClassVar[str] = "bits"
    calibrated: ClassVar[bool] = True
    from_trials: ClassVar[int] = 100

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether a number of the outputs is always whole and has varying last bits."""
        return bool(len(_whole(outputs0, outputs1)))

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Return a scorer that is fitted to outputs of both datasets."""
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
    """Return the indices of the numbers that are always whole and whose last bits vary."""
    rows = np.concatenate([outputs0, outputs1])
    return [
        j
        for j in range(min(_MAX_NUMBERS, rows.shape[1] // 3))
        if np.all(rows[:, 3 * j + 1] >= 0) and np.any(rows[:, 3 * j + 1 : 3 * j + 3] != rows[0, 3 * j + 1 : 3 * j + 3])
    ]
