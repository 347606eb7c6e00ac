"""One number, clipped to the interval between the two medians.

The score is linear between the median of d0's outputs and the median of d1's outputs, and constant outside.  This is
exactly the form of the log-likelihood ratio of Laplace noise.  For other noise whose location depends on the dataset,
the score still provides thresholds between the medians.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit_attacks.logistic import log_odds


@dataclass(frozen=True, slots=True)
class MedianClipped:
    """The best possible attack on Laplace noise of any scale on one number (Neyman-Pearson)."""

    name: ClassVar[str] = "median_clipped"
    former_names: ClassVar[tuple[str, ...]] = ("threshold",)
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether an output is one number."""
        return bool(outputs0.shape[1] == 1)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Fit to arrays (n, 1); return a function from such arrays to log-likelihood ratios in nats."""
        low, high = sorted((_median(outputs0), _median(outputs1)))
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        if not (np.isfinite(half) and half > 0):  # half is also 0 if the medians differ too little for a float
            return lambda outputs: np.zeros(len(outputs))

        def design(outputs: Array) -> Array:
            position: Array = (np.clip(np.nan_to_num(outputs, nan=middle), low, high) - middle) / half
            return position

        return log_odds(design, outputs0, outputs1)


def _median(outputs: Array) -> float:
    known = outputs[~np.isnan(outputs)]
    return float(np.median(known)) if len(known) else np.nan
