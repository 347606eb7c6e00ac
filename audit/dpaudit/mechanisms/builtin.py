"""Noise mechanisms that come with the framework, for tests, examples and calibration.

Each releases the sum of the dataset plus noise, and is exactly as private as its docstring says (in real
arithmetic) when one element changes by at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.claims import Array


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be > 0, got {value}")


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Sum plus N(0, sigma^2): mu-GDP with mu = 1 / sigma.  Dong, Roth & Su 2022, Thm 1."""

    sigma: float

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Array:
        return float(np.sum(dataset)) + rng.normal(0.0, self.sigma, n)


@dataclass(frozen=True, slots=True)
class Laplace:
    """Sum plus Laplace noise: epsilon-DP with epsilon = 1 / scale.  Dwork, McSherry, Nissim & Smith 2006."""

    scale: float

    def __post_init__(self) -> None:
        _positive("scale", self.scale)

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Array:
        return float(np.sum(dataset)) + rng.laplace(0.0, self.scale, n)


@dataclass(frozen=True, slots=True)
class Geometric:
    """Sum of integers plus the difference of two geometric variables: epsilon-DP with epsilon = 1 / scale.

    Ghosh, Roughgarden & Sundararajan 2012: P[noise = k] proportional to exp(-|k| / scale).
    """

    scale: float

    def __post_init__(self) -> None:
        _positive("scale", self.scale)

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Array:
        stop = -math.expm1(-1 / self.scale)
        return float(np.sum(dataset)) + (rng.geometric(stop, n) - rng.geometric(stop, n)).astype(np.float64)


BUILTIN: Mapping[str, Callable[..., Any]] = {"gaussian": Gaussian, "laplace": Laplace, "geometric": Geometric}
