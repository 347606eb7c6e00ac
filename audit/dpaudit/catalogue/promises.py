"""Defines base classes of builtin mechanisms, and checks their parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.claims import GaussianDP, PureDP, TradeoffFunction
from dpaudit.numerics import Array
from dpaudit.training.claims import is_whole
from dpaudit.values import Dataset

Inputs = Mapping[str, object]
"""Arguments of `SearchPairs` that describe the datasets of the claim, such as relation, size and bounds."""

RECORDS: Inputs = {"relation": "add_remove", "size": 10}
ANSWER: Inputs = {"relation": "one_value", "size": 1}


def check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be > 0, got {value}")


def check_count(name: str, value: object) -> None:
    if not is_whole(value):
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")


def check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")


def number(dataset: Dataset) -> float:
    """Return the first number of a dataset."""
    return float(np.ravel(dataset)[0])


def vector(dataset: Dataset) -> Array:
    """Return the numbers of a dataset as a vector."""
    return np.asarray(dataset, dtype=np.float64).reshape(-1)


def with_laplace(dataset: Dataset, n: int, rng: np.random.Generator, scale: float) -> Array:
    """Return n copies of a vector, (n, d), with independent Laplace noise on each number."""
    x = vector(dataset)
    return x + rng.laplace(0.0, scale, (n, len(x)))


class Builtin:
    """A builtin mechanism.  Its class states the datasets of its claim, and whether the claim is true."""

    inputs: ClassVar[Inputs]
    private: ClassVar[bool]

    def __init_subclass__(cls, *, inputs: Inputs | None = None, private: bool | None = None) -> None:
        if inputs is not None:
            cls.inputs = inputs
        if private is not None:
            cls.private = private


@dataclass(frozen=True)
class Pure(Builtin):
    """A mechanism that is claimed to be epsilon-DP."""

    epsilon: float = 0.1  # parameter of the claim, nats, > 0

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)

    @property
    def claim(self) -> TradeoffFunction:
        return PureDP(self.epsilon)


@dataclass(frozen=True)
class Unit(Pure):
    """A mechanism that is claimed to be epsilon-DP, by default 1-DP."""

    epsilon: float = 1.0


@dataclass(frozen=True)
class GaussianSum(Builtin):
    """A mechanism that is claimed to be mu-GDP with mu = 1 / sigma, like a sum plus N(0, sigma^2)."""

    sigma: float = 1.0  # > 0

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)

    @property
    def claim(self) -> TradeoffFunction:
        return GaussianDP(1 / self.sigma)
