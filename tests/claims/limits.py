"""Limits of compositions of many small promises.  Verdicts do not use them; they use `claims.operations.compose`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.envelope import Envelope
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.laplace import LaplaceDP
from dpaudit.claims.ranges import count, nonnegative
from dpaudit.numerics.arrays import Array

_NEVER = 1e-12  # a smaller mass at infinite loss is an artefact of truncation


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralLimit:
    """Bounds of an n-fold composition: G_mu(alpha + gamma) - gamma <= f <= G_mu(alpha - gamma) + gamma.

    The bounds hold for gamma <= alpha <= 1 - gamma.  Outside this range, they are constant or trivial.
    """

    mu: float  # parameter of the limit
    gamma: float  # maximum error, horizontally and vertically; bounds with 0.5 or more are trivial

    def lower(self, alpha: npt.ArrayLike) -> Array:
        """Return the lower bound of the composed f."""
        a = np.minimum(np.asarray(alpha, dtype=np.float64) + self.gamma, 1.0)
        return np.maximum(GaussianDP(self.mu).beta(a) - self.gamma, 0.0)

    def upper(self, alpha: npt.ArrayLike) -> Array:
        """Return the upper bound of the composed f."""
        a = np.asarray(alpha, dtype=np.float64)
        return np.minimum(GaussianDP(self.mu).beta(np.maximum(a - self.gamma, 0.0)) + self.gamma, 1 - a)


def central_limit(claim: TradeoffFunction, n: int) -> CentralLimit:
    """Return the Gaussian limit of n-fold composition, and its error.  Not for verdicts: mu is not a bound.

    With kl = -int log|f'|, k2 = int log^2|f'|, k3 = int |log|f'| + kl|^3 over alpha in [0, 1]: mu = 2 n kl / s,
    gamma = 0.56 n k3 / s^3, s^2 = n k2 - n kl^2; Dong, Roth & Su 2022, Thm 5 (Berry & Esseen).  The
    integrals over tangents of f have errors of about 1e-5.  They are infinite if f(0) < 1, which is a ValueError.
    """
    n = count("n", n)
    symmetric = claim.symmetrized()
    mass, loss = _masses(Envelope.of(symmetric), claim)
    kl, k2 = float(mass @ -loss), float(mass @ loss**2)
    k3 = float(mass @ np.abs(loss + kl) ** 3)
    variance = n * (k2 - kl**2)
    if variance <= 0:
        return CentralLimit(mu=0.0, gamma=0.0)
    return CentralLimit(mu=2 * n * kl / math.sqrt(variance), gamma=0.56 * n * k3 / variance**1.5)


def pure_group_limit(total_epsilon: float) -> LaplaceDP:
    """Return the limit of PureDP(total_epsilon / k) for groups of k as k increases: Laplace noise.

    1 - (1 - f_{eps/k})^{o k} -> T(Lap(0, 1), Lap(eps, 1)), uniformly; Dong, Roth & Su 2022, section 2.4.  The
    promise for a group of k is thus stronger than PureDP(total_epsilon).
    """
    return LaplaceDP(nonnegative("total_epsilon", total_epsilon))


def _masses(lines: Envelope, claim: TradeoffFunction) -> tuple[Array, Array]:
    """Return the P-probability of each straight piece of a symmetric f, and log|f'| there."""
    half = lines.steep
    if half.gap[-1] > _NEVER:
        raise ValueError(f"the limit needs f(0) = 1, got {1 - half.gap[-1]} for {claim.label}")
    middle, _ = lines.crossing()
    steep = -np.diff(np.concatenate([[middle], np.exp(half.log_alpha), [0.0]]))
    flat = -np.diff(np.concatenate([[1 - middle], half.power, half.gap[-1:]]))
    return np.concatenate([steep, flat]), np.concatenate([half.slope, -half.slope])
