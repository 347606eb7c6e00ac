"""A small library of private statistics, like that of a user's project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PrivateMean:
    """Mean of a public number of values in [0, 1] with Gaussian noise; mu-GDP if one value changes."""

    mu: float

    def __call__(self, dataset: Sequence[float], rng: np.random.Generator) -> float:
        clipped = np.clip(dataset, 0, 1)
        return float(clipped.mean() + rng.normal(0, 1 / (self.mu * len(dataset))))


@dataclass(frozen=True)
class PrivateCount:
    """Number of records with Laplace noise: epsilon-DP if a record is added or removed."""

    epsilon: float

    def __call__(self, dataset: Sequence[object], rng: np.random.Generator) -> float:
        return len(dataset) + rng.laplace(0, 1 / self.epsilon)
