"""Checks that the parameters of claims are in range.  Error messages state the value and the allowed range."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import SupportsFloat, SupportsIndex

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.envelope import Envelope
from dpaudit.numerics import Array


class PolygonalClaim(TradeoffFunction):
    """A claim whose trade-off function is the polygon `_make_envelope()`; the privacy profile is its exact dual."""

    @abstractmethod
    def _make_envelope(self) -> Envelope: ...

    @cached_property
    def _envelope(self) -> Envelope:
        return self._make_envelope()

    def _curve(self, alpha: Array) -> Array:
        return self._envelope.beta(alpha)

    def _profile(self, epsilon: Array) -> Array:
        return self._envelope.delta(epsilon)

    def mu(self) -> float:
        """Return the least mu with G_mu <= f; inf if f(0) < 1, or f(alpha) = 0 for an alpha < 1."""
        return self._envelope.mu()

    def max_privacy_loss(self) -> float:
        return float(self._envelope.steep.slope[-1])

    def slopes(self) -> Array:
        return self._envelope.steep.slope


def nonnegative(name: str, value: object) -> float:
    number = _number(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
    return number


def probability(name: str, value: object) -> float:
    """Convert a probability to a float."""
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return number


def count(name: str, value: object) -> int:
    """Convert a whole number >= 1 to an integer.  Floats with integer values, such as 1e4, are allowed."""
    number = _number(value)
    if not (1 <= number < math.inf and number == math.floor(number)):
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
    return int(number)


def _number(value: object) -> float:
    """Convert a number to a float; return NaN, which every range check rejects, for anything else."""
    # float and int come first, because checking the protocols takes as long as the rest of constructing a claim
    if not isinstance(value, float | int | SupportsFloat | SupportsIndex) or isinstance(value, str | bytes):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
