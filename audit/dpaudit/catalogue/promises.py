"""What the builtin mechanisms share: parameters that must be positive, claims of pure epsilon and of Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims import GaussianDP, PureDP, TradeoffFunction

Inputs = Mapping[str, object]
"""Arguments of `SearchPairs`: relation, size and bounds of what the claim is about."""


def check_positive(name: str, value: float) -> None:
    """ValueError unless 0 < value < inf."""
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be > 0, got {value}")


@dataclass(frozen=True)
class Pure:
    """A mechanism that is said to be epsilon-DP."""

    epsilon: float = 0.1  # nats, > 0: of the claim

    inputs: ClassVar[Inputs]
    private: ClassVar[bool]

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)

    @property
    def claim(self) -> TradeoffFunction:
        return PureDP(self.epsilon)


@dataclass(frozen=True)
class GaussianSum:
    """A mechanism that is said to be mu-GDP with mu = 1 / sigma, as a sum plus N(0, sigma^2) is."""

    sigma: float = 1.0  # > 0

    inputs: ClassVar[Inputs]
    private: ClassVar[bool]

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)

    @property
    def claim(self) -> TradeoffFunction:
        return GaussianDP(1 / self.sigma)
