"""Selection of the query with the largest answer.  The wrong mechanisms release the noisy answer itself.

The queries have answers x, each of which may change by 1.  Dwork & Roth 2014, section 3.3, describe noisy maxima, which
are numbered here as in Ding, Wang, Wang, Zhang & Kifer 2018, "Detecting violations of differential privacy", section
5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.catalogue.promises import Inputs, Pure
from dpaudit.numerics.arrays import Array
from dpaudit.values import Dataset

_QUERIES: Inputs = {"relation": "all_values", "size": 5}


def _best(noisy: Array) -> Array:
    """Return the index of the largest entry of each row, (n,)."""
    best: Array = np.argmax(noisy, axis=1).astype(np.float64)
    return best


@dataclass(frozen=True)
class Exponential(Pure):
    """Index i with probability proportional to e^(epsilon x_i / 2): epsilon-DP.  McSherry & Talwar 2007, Thm 6."""

    inputs: ClassVar[Inputs] = _QUERIES
    private: ClassVar[bool] = True

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        weights = np.exp(self.epsilon * (x - x.max()) / 2)
        return rng.choice(len(x), n, p=weights / weights.sum()).astype(np.float64)


@dataclass(frozen=True)
class NoisyMax1(Pure):
    """Index of the largest x_i + Lap(2 / epsilon): epsilon-DP.

    The best witness compares (1, 1, .., 1) with (0, 2, .., 2) by the event {index 0}.  For 5 queries and epsilon = .1,
    its privacy loss is .0946.
    """

    inputs: ClassVar[Inputs] = _QUERIES
    private: ClassVar[bool] = True

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        return _best(x + rng.laplace(0.0, 2 / self.epsilon, (n, len(x))))


@dataclass(frozen=True)
class NoisyMax2(Pure):
    """Index of the largest x_i + Exp(2 / epsilon): epsilon-DP.

    The best witness compares (1, 1, .., 1) with (0, 2, .., 2) by the event {index 0}.
    """

    inputs: ClassVar[Inputs] = _QUERIES
    private: ClassVar[bool] = True

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        return _best(x + rng.exponential(2 / self.epsilon, (n, len(x))))


@dataclass(frozen=True)
class NoisyMax3(Pure):
    """Wrong: the value of max(x_i + Lap(2 / epsilon)), not its index; (d epsilon / 2)-DP for d queries.

    delta(.1) = 5.6e-3 for 5 queries and epsilon = .1.  The witness compares (1, .., 1) with (2, .., 2) by the event
    that the maximum is low.
    """

    inputs: ClassVar[Inputs] = _QUERIES
    private: ClassVar[bool] = False

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        best: Array = np.max(x + rng.laplace(0.0, 2 / self.epsilon, (n, len(x))), axis=1)
        return best


@dataclass(frozen=True)
class NoisyMax4(Pure):
    """Wrong: the value of max(x_i + Exp(2 / epsilon)), not its index; no finite epsilon.

    delta(.1) = 5.6e-3 for 5 queries and epsilon = .1.  The witness compares (1, .., 1) with (2, .., 2) by the event
    that the maximum is low.
    """

    inputs: ClassVar[Inputs] = _QUERIES
    private: ClassVar[bool] = False

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        best: Array = np.max(x + rng.exponential(2 / self.epsilon, (n, len(x))), axis=1)
        return best
