"""Small mechanisms that several kinds share.  Datasets are lists of numbers, whose sum is what leaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit import Pair, batched

Rng = np.random.Generator
PAIR = Pair([0], [1])
SEVERAL = [Pair([0], [0.25], label="a quarter"), Pair([0], [1], label="one"), Pair([1, 1], [1], label="one less")]


def noisy_sum(dataset: Sequence[float], rng: Rng) -> float:
    """The sum, plus N(0, 1)."""
    return float(sum(dataset) + rng.normal())


@batched
def noisy_sums(dataset: Sequence[float], n: int, rng: Rng) -> Any:
    """The same, many at once."""
    return sum(dataset) + rng.normal(size=n)


def noisy_vector(dataset: Sequence[float], rng: Rng) -> Any:
    """Three numbers, of which the second leaks."""
    return np.array([0.0, sum(dataset), 0.0]) + rng.normal(size=3)


class NoisyRecords:
    """The sum and the number of the records, each plus Laplace noise; None and NaN count as nothing."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def sample(self, dataset: Sequence[Any], n: int, rng: Rng) -> Any:
        """n outputs of two numbers."""
        numbers = [float(record) for record in dataset if isinstance(record, int | float) and record == record]
        return np.array([sum(numbers), len(dataset)]) + rng.laplace(0.0, self.scale, (n, 2))
