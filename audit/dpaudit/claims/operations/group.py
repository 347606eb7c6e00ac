"""Group privacy: datasets that differ in k records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims.base import PolygonalClaim, TradeoffFunction, operation
from dpaudit.claims.envelope import Envelope
from dpaudit.claims.ranges import count


@operation
def group(claim: TradeoffFunction, k: int) -> TradeoffFunction:
    """What `claim` promises for datasets that are k neighbours apart: 1 - (1 - f)^{o k}.

    Dong, Roth & Su 2022, Thm 2.14 of the arXiv version (1905.02383).  In closed form for Gaussian, Laplace and
    zCDP claims; for PureDP it is stronger than PureDP(k epsilon).  ValueError unless k is a whole number >= 1.
    """
    k = count("k", k)
    if k == 1:
        return claim
    if isinstance(claim, Group):
        return group(claim._claim, claim._k * k)
    return claim._grouped(k) or Group(claim, k)


@dataclass(frozen=True, init=False, repr=False)
class Group(PolygonalClaim):
    """1 - (1 - f)^{o k}, computed from tangents of f: exact if f is a polygon, else too low by a little.

    If 1 - f(alpha) <= c + e^s alpha for each step, then two steps give c' + e^s' c + e^(s + s') alpha; any lines may
    be combined, so only valid lines arise.
    """

    name: ClassVar[str] = "group"
    _claim: TradeoffFunction
    _k: int

    def __init__(self, claim: TradeoffFunction, k: int) -> None:
        object.__setattr__(self, "_claim", claim)
        object.__setattr__(self, "_k", count("k", k))

    @property
    def symmetric(self) -> bool:
        return self._claim.symmetric

    def inverse(self) -> TradeoffFunction:
        """The chain of neighbours, walked backwards."""
        return self if self.symmetric else Group(self._claim.inverse(), self._k)

    def _make_envelope(self) -> Envelope:
        return Envelope.of(self._claim).iterated(self._k)

    def mu(self) -> float:
        """At most k times the mu of one step, since 1 - (1 - G_mu)^{o k} = G_{k mu}."""
        bound = self._k * self._claim.mu()
        return min(self._envelope.mu(), bound) if bound < math.inf else bound
