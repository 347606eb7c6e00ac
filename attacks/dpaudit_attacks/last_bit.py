"""The exponent of the last bit of a number.

Near zero, floating-point noise reaches numbers with finer bits than elsewhere.  So one dataset gives numbers that the
other dataset cannot give.  `float_bits` uses more labels and therefore needs more trials to learn each label.
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
    """Likelihood ratios of the exponent of the last bit, pooled over neighbouring exponents.

    As with `float_bits`, an audit with `attacks="auto"` uses this attack for external programs only.  For other
    mechanisms, the user must name the attack.
    """

    name: ClassVar[str] = "last_bit"
    automatic: ClassVar[str] = "released"
    sees: ClassVar[str] = "bits"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether an output is one number and the exponent of its last bit varies."""
        return bool(outputs0.shape[1] == 3 and len(np.unique(np.concatenate([outputs0, outputs1])[:, 1])) > 1)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Return a scorer that is fitted to outputs of both datasets."""
        exponents, labels = np.unique(np.concatenate([outputs0, outputs1])[:, 1], return_inverse=True)
        counts0, counts1 = (
            np.bincount(side, minlength=len(exponents)) for side in (labels[: len(outputs0)], labels[len(outputs0) :])
        )
        ratios = averaged_ratios(counts0, counts1)

        def score(outputs: Array) -> Array:
            """Return the ratio of the nearest exponent among the fitted outputs."""
            middles = (exponents[1:] + exponents[:-1]) / 2
            found: Array = ratios[np.searchsorted(middles, outputs[:, 1])]
            return found

        return score
