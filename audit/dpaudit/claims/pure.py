"""Pure differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from dpaudit.claims.base import Array, TradeoffFunction


@dataclass(frozen=True, init=False, repr=False)
class PureDP(TradeoffFunction):
    """epsilon-DP: Q(S) <= exp(epsilon) P(S) for every event.

    Curve: max{0, 1 - e^eps alpha, e^-eps (1 - alpha)}; Wasserman & Zhou 2010; Dong, Roth & Su 2022, Eq. (5).
    """

    name: ClassVar[str] = "pure"
    _epsilon: float  # nats, >= 0

    def __init__(self, epsilon: float) -> None:
        if not 0 <= epsilon < math.inf:
            raise ValueError(f"epsilon must be finite and >= 0, got {epsilon}")
        object.__setattr__(self, "_epsilon", float(epsilon))

    symmetric = True

    def _curve(self, alpha: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            steep = np.where(alpha > 0, 1 - np.exp(self._epsilon) * alpha, 1.0)
        return np.maximum(steep, np.exp(-self._epsilon) * (1 - alpha))

    def _profile(self, epsilon: Array) -> Array:
        # (e^eps - e^t) / (1 + e^eps) between -eps and eps: the middle line of f at its kink
        middle = -np.expm1(np.minimum(epsilon - self._epsilon, 0)) / (1 + np.exp(-self._epsilon))
        return np.where(epsilon <= -self._epsilon, 0.0, middle)  # below, the bound 1 - e^t of every claim holds

    def mu(self) -> float:
        """The kink of f lies on G_mu: mu = 2 Phi^-1(e^eps / (1 + e^eps))."""
        log_error = -np.logaddexp(0.0, self._epsilon)  # log of alpha = beta = 1 / (1 + e^eps) at the kink
        return float(-2 * ndtri_exp(log_error)) if log_error > log_ndtr(-1e150) else math.inf
