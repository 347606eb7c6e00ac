"""What many small promises become.  For display and for understanding; verdicts rest on `claims.operations.compose`."""

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

_NEVER = 1e-12  # mass at infinite loss that may come from where a curve was cut off


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralLimit:
    """n-fold composition is nearly Gaussian: G_mu(alpha + gamma) - gamma <= f <= G_mu(alpha - gamma) + gamma.

    For gamma <= alpha <= 1 - gamma; outside, the bounds are those at the ends of the range, or none.
    """

    mu: float  # of the limit
    gamma: float  # largest error, horizontally and vertically; 0.5 and more says nothing

    def lower(self, alpha: npt.ArrayLike) -> Array:
        """Lower bound of the composed f."""
        a = np.minimum(np.asarray(alpha, dtype=np.float64) + self.gamma, 1.0)
        return np.maximum(GaussianDP(self.mu).beta(a) - self.gamma, 0.0)

    def upper(self, alpha: npt.ArrayLike) -> Array:
        """Upper bound of the composed f."""
        a = np.asarray(alpha, dtype=np.float64)
        return np.minimum(GaussianDP(self.mu).beta(np.maximum(a - self.gamma, 0.0)) + self.gamma, 1 - a)


def central_limit(claim: TradeoffFunction, n: int) -> CentralLimit:
    """The Gaussian that n-fold composition of a claim comes near, and how near.  NOT for verdicts: mu is no bound.

    With kl = -int log|f'|, k2 = int log^2|f'|, k3 = int |log|f'| + kl|^3 over alpha in [0, 1]: mu = 2 n kl / s,
    gamma = 0.56 n k3 / s^3, s^2 = n k2 - n kl^2; Dong, Roth & Su 2022, Thm 5 (Berry & Esseen).  Integrated over
    tangents of f, to about 1e-5.  ValueError if f(0) < 1, when the integrals are infinite.
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
    """Where PureDP(total_epsilon / k) goes for groups of k as k grows: Laplace noise.

    1 - (1 - f_{eps/k})^{o k} -> T(Lap(0, 1), Lap(eps, 1)), uniformly; Dong, Roth & Su 2022, section 2.4.  A group
    of k is thus promised more than PureDP(total_epsilon).
    """
    return LaplaceDP(nonnegative("total_epsilon", total_epsilon))


def _masses(lines: Envelope, claim: TradeoffFunction) -> tuple[Array, Array]:
    """P-probability of each straight piece of a symmetric f, and log|f'| there."""
    half = lines.steep
    if half.gap[-1] > _NEVER:
        raise ValueError(f"the limit needs f(0) = 1, got {1 - half.gap[-1]} for {claim.label}")
    middle, _ = lines.crossing()
    steep = -np.diff(np.concatenate([[middle], np.exp(half.log_alpha), [0.0]]))
    flat = -np.diff(np.concatenate([[1 - middle], half.power, half.gap[-1:]]))
    return np.concatenate([steep, flat]), np.concatenate([half.slope, -half.slope])
