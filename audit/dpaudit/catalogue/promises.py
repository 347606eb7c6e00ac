"""What the builtin mechanisms share: parameters that must be positive, and claims of pure epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims import PureDP, TradeoffFunction

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
