"""Approximate differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.claims.base import Array, TradeoffFunction
from dpaudit.claims.pure import PureDP


@dataclass(frozen=True, init=False, repr=False)
class ApproxDP(TradeoffFunction):
    """(epsilon, delta)-DP: Q(S) <= exp(epsilon) P(S) + delta for every event.

    Curve: max{0, 1 - delta - e^eps alpha, e^-eps (1 - delta - alpha)}; Dong, Roth & Su 2022, Eq. (5).
    """

    name: ClassVar[str] = "approximate"
    _epsilon: float  # nats, >= 0
    _delta: float  # probability, [0, 1)

    def __init__(self, *, epsilon: float, delta: float) -> None:
        if not 0 <= epsilon < math.inf:
            raise ValueError(f"epsilon must be finite and >= 0, got {epsilon}")
        if not 0 <= delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {delta}")
        object.__setattr__(self, "_epsilon", float(epsilon))
        object.__setattr__(self, "_delta", float(delta))

    symmetric = True

    def _curve(self, alpha: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            steep = np.where(alpha > 0, 1 - self._delta - np.exp(self._epsilon) * alpha, 1 - self._delta)
        return np.maximum(np.maximum(steep, np.exp(-self._epsilon) * (1 - self._delta - alpha)), 0.0)

    def _profile(self, epsilon: Array) -> Array:
        # The pure curve scaled into the square [0, 1 - delta]^2: delta(t) = delta + (1 - delta) delta_pure(t),
        # but never above 1 - e^t + ... at alpha = 0 and alpha = 1 - delta, where f ends.
        return self._delta + (1 - self._delta) * np.asarray(PureDP(self._epsilon).delta(epsilon))

    def mu(self) -> float:
        """With delta > 0 an attack may be right for sure, which no Gaussian curve allows."""
        return PureDP(self._epsilon).mu() if self._delta == 0 else math.inf
