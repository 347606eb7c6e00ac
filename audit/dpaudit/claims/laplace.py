"""The exact promise of Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri_exp

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.ranges import nonnegative
from dpaudit.numerics.arrays import Array


@dataclass(frozen=True, init=False, repr=False)
class LaplaceDP(TradeoffFunction):
    """No easier than telling Laplace(0, 1) from Laplace(epsilon, 1) by one draw; stronger than PureDP(epsilon).

    Laplace noise of scale b on a query of sensitivity S keeps this for epsilon = S / b.
    Curve: 1 - e^eps alpha up to alpha = e^-eps / 2, then e^-eps / (4 alpha) up to 1/2, then e^-eps (1 - alpha);
    profile 1 - e^((t - eps) / 2) for |t| <= eps.  Dong, Roth & Su 2022, section 2 (T(Lap(0, 1), Lap(mu, 1))).
    """

    name: ClassVar[str] = "laplace"
    _epsilon: float  # nats, >= 0

    def __init__(self, epsilon: float) -> None:
        object.__setattr__(self, "_epsilon", nonnegative("epsilon", epsilon))

    symmetric = True

    def _curve(self, alpha: Array) -> Array:
        with np.errstate(over="ignore", divide="ignore"):
            log_alpha = np.log(alpha)
            steep = 1 - np.exp(np.minimum(self._epsilon + log_alpha, 0.0))
            middle = np.exp(-self._epsilon - np.log(4) - np.maximum(log_alpha, -self._epsilon - np.log(2)))
        flat = np.exp(-self._epsilon) * (1 - alpha)
        edge = -self._epsilon - np.log(2)
        return np.where(log_alpha < edge, steep, np.where(alpha <= 0.5, middle, flat))

    def _profile(self, epsilon: Array) -> Array:
        inside = -np.expm1(np.minimum(epsilon - self._epsilon, 0.0) / 2)
        return np.where(epsilon <= -self._epsilon, 0.0, inside)  # below, the bound 1 - e^t of every claim holds

    def mu(self) -> float:
        """The point alpha = beta = e^(-eps/2) / 2 lies on G_mu.

        On the hyperbola log alpha + log beta is constant, and log Phi is concave, so that
        -Phi^-1(alpha) - Phi^-1(beta) is largest in its middle; the straight ends lie above G_mu by convexity.
        """
        return max(0.0, float(-2 * ndtri_exp(-self._epsilon / 2 - np.log(2))))

    def _max_privacy_loss(self) -> float:
        return self._epsilon

    def _grouped(self, k: int) -> TradeoffFunction:
        """Laplace noise has a log-concave density, so the group's curve is that of k steps in one direction."""
        return LaplaceDP(self._epsilon * k)
