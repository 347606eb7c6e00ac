"""The true likelihood ratio, for users who know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.numerics import Array

Seen = Any  # n outputs as the mechanism returned them: an array, or a list of any objects


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """The user's log-likelihood ratio; nothing is learned.  The guarantee holds even if the ratio is wrong."""

    function: Callable[[Seen], Array]
    name: ClassVar[str] = "likelihood_ratio"
    sees: ClassVar[str] = "natural"
    calibrated: ClassVar[bool] = True

    def fit(self, outputs0: Seen, outputs1: Seen, rng: np.random.Generator) -> Callable[[Seen], Array]:
        return self.function
