"""Gaussian differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from dpaudit.claims.base import Array, TradeoffFunction


@dataclass(frozen=True, init=False, repr=False)
class GaussianDP(TradeoffFunction):
    """mu-GDP: no easier than telling N(0, 1) from N(mu, 1) by one draw.

    Curve: G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu); Dong, Roth & Su 2022, Eq. (6), profile Cor. 1.
    Gaussian noise of standard deviation sigma on a query of sensitivity S is mu-GDP for mu = S / sigma.
    """

    name: ClassVar[str] = "gaussian"
    _mu: float  # >= 0, standard deviations between the two laws

    def __init__(self, mu: float) -> None:
        if not 0 <= mu < math.inf:
            raise ValueError(f"mu must be finite and >= 0, got {mu}")
        object.__setattr__(self, "_mu", float(mu))

    symmetric = True

    def _curve(self, alpha: Array) -> Array:
        return ndtr(-ndtri(alpha) - self._mu)

    def _profile(self, epsilon: Array) -> Array:
        if self._mu == 0:
            return np.zeros_like(epsilon)
        # Phi(upper) - e^eps Phi(lower), with the difference taken between logarithms: relative precision in the tail
        finite = np.clip(epsilon, -1e300, 1e300)
        upper, lower = log_ndtr(-finite / self._mu + self._mu / 2), log_ndtr(-finite / self._mu - self._mu / 2)
        with np.errstate(invalid="ignore", over="ignore"):
            inside = -np.expm1(np.minimum(finite + lower - upper, 0.0)) * np.exp(upper)
        return np.where(np.isfinite(inside), inside, 0.0)

    def mu(self) -> float:
        return self._mu
