"""Privacy amplification: the mechanism sees only a random sample of the records.

With f the promise of the mechanism on its sample, p the rate, and f_p(alpha) = p f(alpha) + (1 - p)(1 - alpha):

- **"add_remove"**: each record is in the sample with probability p, independently (Poisson sampling), and
  neighbours differ in the presence of one record; f must hold for that relation.  With d1 the dataset with the
  record, T(P, Q) >= f_p, and T(Q, P) >= the inverse of f_p (Bu, Dong, Long & Su 2020, "Deep learning with Gaussian
  differential privacy", section 3).  This is the sampling of DP-SGD.
- **"replace_one"**: a uniformly random subset of m = p n of the n records, and neighbours differ in the value of one
  record.  Then both orders keep C_p(f), the largest convex function below f_p and its inverse (Dong, Roth & Su 2022,
  Thm 9).  Poisson sampling keeps it as well, if f holds for adding, removing and replacing one record.
- **"unspecified"**: C_p(f), which holds in all these cases.

As a curve for both directions of a pair all three are C_p(f): an audit tests the same.  They differ when composed:
"add_remove" keeps the two directions apart, as accountants do: T of n steps is f_p (x) ... (x) f_p in one, and its
inverse in the other, which promises much more than n-fold C_p(f) (for mu = 1, p = 0.01, n = 10,000:
delta(1) = 0.24 instead of 0.39).

C_p(f) is the profile delta'(eps) = p delta(log(1 + (e^eps - 1)/p)) for eps >= 0 (Balle, Barthe & Gaboardi 2018, Thm 8)
and symmetric.  f is symmetrised first, C_p being defined for symmetric f only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpaudit.claims.base import OneDirection, TradeoffFunction, operation
from dpaudit.claims.envelope import Envelope
from dpaudit.claims.pure import PureDP
from dpaudit.claims.ranges import probability
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect, bisect_each

RELATIONS = ("unspecified", "add_remove", "replace_one")


@operation
def subsampled(claim: TradeoffFunction, rate: float, *, relation: str = "unspecified") -> TradeoffFunction:
    """The promise of a mechanism with promise `claim` that sees a random sample; see the module's text.

    `rate` in [0, 1]; `relation` one of "unspecified", "add_remove", "replace_one"; ValueError otherwise.
    """
    rate = probability("rate", rate)
    if relation not in RELATIONS:
        raise ValueError(f"relation must be one of {', '.join(RELATIONS)}, got {relation!r}")
    if rate == 0:
        return PureDP(0.0)
    if rate == 1:
        return claim.symmetrized()
    return Subsampled(claim, rate, relation)


@dataclass(frozen=True, init=False, repr=False)
class Subsampled(TradeoffFunction):
    """C_p(f); in compositions, for the relation "add_remove", f_p and its inverse."""

    name: ClassVar[str] = "subsampled"
    _claim: TradeoffFunction
    _rate: float  # p, in (0, 1)
    _relation: str

    def __init__(self, claim: TradeoffFunction, rate: float, relation: str = "unspecified") -> None:
        object.__setattr__(self, "_claim", claim)
        object.__setattr__(self, "_rate", rate)
        object.__setattr__(self, "_relation", relation)

    symmetric = True

    @cached_property
    def _base(self) -> TradeoffFunction:
        return self._claim.symmetrized()

    @cached_property
    def _fixed_point(self) -> float:
        """x = f(x) of the base, where f_p has slope -1; found by bisection."""
        return bisect(lambda x: self._base.beta(x) > x, inside=0.0, outside=0.5).inside

    def _mixed(self, alpha: Array) -> Array:
        return self._rate * self._base.beta(alpha) + (1 - self._rate) * (1 - alpha)

    def _curve(self, alpha: Array) -> Array:
        """f_p up to the fixed point, then a line of slope -1, then the inverse of f_p.

        The inverse is found by bisection on log beta, from below.
        """
        fixed = self._fixed_point
        middle = 1 - self._rate * self._base.delta(0.0) - alpha  # the line that touches f_p at the fixed point
        beta = np.where(alpha <= fixed, self._mixed(alpha), middle)
        beyond = middle < fixed
        if np.any(beyond):
            wanted = alpha[beyond]
            log_beta = bisect_each(
                lambda log_beta: self._mixed(np.exp(log_beta)) > wanted,
                inside=np.full_like(wanted, -746.0),
                outside=np.full_like(wanted, math.log(fixed) if fixed else -745.0),
                steps=64,
            ).inside
            beta[beyond] = np.minimum(np.exp(log_beta), fixed)
        return beta

    def _profile(self, epsilon: Array) -> Array:
        size = np.abs(epsilon)
        amplified = self._rate * self._base.delta(self._lifted(size))
        finite = np.minimum(epsilon, 0.0)
        return np.where(epsilon >= 0, amplified, -np.expm1(finite) + np.exp(finite) * amplified)

    def _lifted(self, epsilon: Array) -> Array:
        """log(1 + (e^eps - 1)/p), for eps >= 0."""
        with np.errstate(divide="ignore"):
            return np.logaddexp(epsilon + np.log(-np.expm1(-epsilon)) - math.log(self._rate), 0.0)

    def _directions(self) -> tuple[OneDirection, OneDirection]:
        forward = OneDirection(self.delta, self._max_privacy_loss())
        if self._relation != "add_remove":
            return forward, forward
        return forward, OneDirection(self._reverse, min(-math.log1p(-self._rate), forward.max_privacy_loss))

    def _reverse(self, epsilon: Array) -> Array:
        """Profile of the inverse of f_p, for eps >= 0: (1 - (1-p) e^eps) delta(-t), e^t = (e^-eps - (1-p))/p <= 1.

        From delta_{g inverse}(eps) = 1 - e^eps (1 - delta_g(-eps)) with g = f_p, and the same for f itself.
        """
        possible = epsilon < -math.log1p(-self._rate)
        inside = np.where(possible, epsilon, 0.0)
        with np.errstate(divide="ignore"):
            t = np.log1p(np.maximum(np.expm1(-inside) / self._rate, -1.0))
        share = np.maximum(-np.expm1(inside + math.log1p(-self._rate)), 0.0)
        return np.where(possible, share * self._base.delta(-t), 0.0)

    def mu(self) -> float:
        """The mu of the base, unless corners show a smaller one.

        With unbounded losses the far tail sets mu, and there a sample does not help: C_p(G_mu) <= G_m only for m >= mu.
        """
        bound = self._base.mu()
        # vertices show the tail of unbounded losses only as far as doubles reach
        return min(Envelope.of(self).mu(), bound) if self._max_privacy_loss() < math.inf else bound

    def _max_privacy_loss(self) -> float:
        """log(1 + p (e^L - 1))."""
        loss = self._base._max_privacy_loss()
        return loss if loss == math.inf else float(self._sampled(np.array([loss]))[0])

    def _slopes(self) -> Array:
        """Those of the base, seen through the sample: a corner stays a corner; and the new line of slope -1."""
        return np.unique(np.concatenate([[0.0], self._sampled(self._base._slopes())]))

    def _sampled(self, epsilon: Array) -> Array:
        """log(1 + p (e^eps - 1)), for eps >= 0: the inverse of `_lifted`."""
        small = np.log1p(self._rate * np.expm1(np.minimum(epsilon, 1.0)))
        return np.where(epsilon < 1, small, np.logaddexp(epsilon + math.log(self._rate), math.log1p(-self._rate)))
