"""Where the last bit of a number stands.

Noise made of floats reaches numbers near zero with finer bits than it reaches others, so that from one dataset come
numbers that from the other one cannot come; see `float_bits`, which looks at more and so learns each thing later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit_attacks.ordered_events import averaged_ratios


@dataclass(frozen=True, slots=True)
class LastBit:
    """Ratios of the exponent of the last bit, pooled over exponents that are next to each other.

    For finished programs, or asked for by name, like `float_bits`.
    """

    name: ClassVar[str] = "last_bit"
    automatic: ClassVar[str] = "released"
    sees: ClassVar[str] = "bits"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return bool(outputs0.shape[1] == 3 and len(np.unique(np.concatenate([outputs0, outputs1])[:, 1])) > 1)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """outputs0, outputs1: (n, 3) exponents of the first and the last bit, and the last eight bits, of one number.

        The scorer maps such rows to log-likelihood ratios (n,).
        """
        exponents, labels = np.unique(np.concatenate([outputs0, outputs1])[:, 1], return_inverse=True)
        counts0, counts1 = (
            np.bincount(side, minlength=len(exponents)) for side in (labels[: len(outputs0)], labels[len(outputs0) :])
        )
        ratios = averaged_ratios(counts0, counts1)

        def score(outputs: Array) -> Array:
            """The ratio of the nearest exponent that was seen."""
            middles = (exponents[1:] + exponents[:-1]) / 2
            found: Array = ratios[np.searchsorted(middles, outputs[:, 1])]
            return found

        return score
