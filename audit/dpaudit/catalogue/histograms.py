"""Histograms with noise on each cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.catalogue.promises import Inputs, Pure
from dpaudit.numerics.arrays import Array
from dpaudit.values import Dataset

_CELLS: Inputs = {"relation": "one_value", "size": 5}
_NAMES: Inputs = {"relation": "add_remove", "size": 10, "whole": True, "bounds": (0, 4), "out_of_domain": False}


@dataclass(frozen=True)
class NoisyHistogram1(Pure):
    """Each x_i + Lap(1 / epsilon): epsilon-DP, because one cell changes by 1.  Dwork, McSherry, Nissim & Smith 2006."""

    inputs: ClassVar[Inputs] = _CELLS
    private: ClassVar[bool] = True

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        return x + rng.laplace(0.0, 1 / self.epsilon, (n, len(x)))


@dataclass(frozen=True)
class NoisyHistogram2(Pure):
    """Wrong: each x_i + Lap(epsilon), which is (1 / epsilon)-DP.

    Ding et al. 2018, section 5.2.  delta(.1) = .993 for epsilon = .1.  An output is e^(1 / epsilon) times as likely on
    one dataset as on the other if its value for the changed cell lies below both true counts.
    """

    inputs: ClassVar[Inputs] = _CELLS
    private: ClassVar[bool] = False

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        return x + rng.laplace(0.0, self.epsilon, (n, len(x)))


@dataclass(frozen=True)
class PrefixSum(Pure):
    """Wrong if all x_i may change: running sums of x_i + Lap(1 / epsilon), which are (d epsilon)-DP for d queries.

    Bichsel et al. 2021.  delta(.1) = .086 for 10 queries and epsilon = .1.  If only one x_i changes, the
    mechanism is epsilon-DP.
    """

    inputs: ClassVar[Inputs] = {"relation": "all_values", "size": 10}
    private: ClassVar[bool] = False

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        return np.cumsum(x + rng.laplace(0.0, 1 / self.epsilon, (n, len(x))), axis=1)


def _noisy_counts(dataset: Dataset, n: int, rng: np.random.Generator, scale: float) -> tuple[list[str], Array]:
    """Return the nonempty cells, and their counts with noise, (n, cells)."""
    counts = Counter(str(record) for record in dataset)
    names = sorted(counts)
    return names, np.array([counts[name] for name in names]) + rng.laplace(0.0, scale, (n, len(names)))


@dataclass(frozen=True)
class MissingCells(Pure):
    """Wrong: counts of the nonempty cells plus Lap(1 / epsilon).  The output names these cells; no finite epsilon.

    Korolova, Kenthapadi, Mishra & Ntoulas 2009.  Outputs map each cell to its count.
    """

    epsilon: float = 1.0

    inputs: ClassVar[Inputs] = _NAMES
    private: ClassVar[bool] = False

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Sequence[dict[str, float]]:
        names, noisy = _noisy_counts(dataset, n, rng, 1 / self.epsilon)
        return [dict(zip(names, row, strict=True)) for row in noisy.tolist()]


@dataclass(frozen=True)
class ThresholdRelease(Pure):
    """Wrong without a delta: counts of the nonempty cells plus Lap(1 / epsilon), where these sums exceed `threshold`.

    Korolova et al. 2009.  A cell with one record is released with probability delta = e^(-epsilon (threshold - 1)) / 2,
    and an empty cell is never released.
    """

    epsilon: float = 1.0
    threshold: float = 4.0

    inputs: ClassVar[Inputs] = _NAMES
    private: ClassVar[bool] = False

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Sequence[dict[str, float]]:
        names, noisy = _noisy_counts(dataset, n, rng, 1 / self.epsilon)
        return [{name: v for name, v in zip(names, row, strict=True) if v > self.threshold} for row in noisy.tolist()]
