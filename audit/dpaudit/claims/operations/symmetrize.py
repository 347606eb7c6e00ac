"""Combines both directions of a pair in one curve, the maximum of f and f inverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.claims.base import TradeoffFunction, operation
from dpaudit.claims.envelope import Envelope
from dpaudit.claims.ranges import PolygonalClaim
from dpaudit.numerics.arrays import Array


@operation
def symmetrized(claim: TradeoffFunction) -> TradeoffFunction:
    """Return max(f, f inverse), the claim for both directions of a pair.  An audit tests this curve.

    T(Q, P) is the inverse of T(P, Q).  Every claim holds for (d0, d1) and for (d1, d0).  Therefore the claim f implies
    T(P, Q) >= f and T(P, Q) >= f inverse (Dong, Roth & Su 2022, Prop. 2).  The maximum of f and f inverse is convex.
    Its privacy profile is the supremum over alpha of 1 - max(f, f inverse)(alpha) - exp(epsilon) alpha.
    """
    return claim if claim.symmetric else Symmetrized(claim)


@dataclass(frozen=True, init=False, repr=False)
class Symmetrized(PolygonalClaim):
    """The claim max(f, f inverse); Dong, Roth & Su 2022, Prop. 2.

    Every line below f or f inverse lies below the maximum.
    """

    name: ClassVar[str] = "symmetrized"
    _claim: TradeoffFunction

    def __init__(self, claim: TradeoffFunction) -> None:
        object.__setattr__(self, "_claim", claim)

    symmetric = True

    def _make_envelope(self) -> Envelope:
        return Envelope.of(self._claim).maximum(Envelope.of(self._claim.inverse()))

    def _curve(self, alpha: Array) -> Array:
        return np.maximum(self._claim.beta(alpha), self._claim.inverse().beta(alpha))
