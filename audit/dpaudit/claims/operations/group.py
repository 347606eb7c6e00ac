"""Group privacy: derives the claim for datasets that differ in k records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims.base import TradeoffFunction, operation
from dpaudit.claims.envelope import Envelope
from dpaudit.claims.ranges import PolygonalClaim, count


@operation
def group(claim: TradeoffFunction, k: int) -> TradeoffFunction:
    """Extend a claim from neighbours to datasets that differ by k steps; the result is 1 - (1 - f)^{o k}.

    See Dong, Roth & Su 2022, Thm 2.14 of the arXiv version (1905.02383).  Gaussian and Laplace claims have a closed
    form.  For PureDP(epsilon), the result is stronger than PureDP(k epsilon).  For rho-zCDP, k steps are also
    (k^2 rho)-zCDP, and the result is the maximum of both curves.

    Returns:
        The claim for datasets that differ by k steps.
    """
    k = count("k", k)
    if k == 1:
        return claim
    if isinstance(claim, Group):
        return group(claim._claim, claim._k * k)
    return claim._grouped(k) or Group(claim, k)


@dataclass(frozen=True, init=False, repr=False)
class Group(PolygonalClaim):
    """The trade-off function 1 - (1 - f)^{o k}, or the maximum of it and of another bound, computed from tangents of f.

    If two convex curves are lower bounds of a trade-off function, so is their maximum, which is convex.

    The computation is exact if f is a polygon; otherwise the result is slightly too low.  At most 6,000
    lines are kept, and omitted lines also make the result slightly too low.

    Let c + e^s alpha and c' + e^s' alpha be upper bounds of 1 - f.  Then c' + e^s' c + e^(s + s') alpha is an upper
    bound for two steps.  This holds for any two lines, so every combination of lines is an upper bound.
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
        """Return the claim for the chain of neighbours in reverse order."""
        return self if self.symmetric else Group(self._claim.inverse(), self._k)

    def _make_envelope(self) -> Envelope:
        iterated, other = Envelope.of(self._claim).iterated(self._k), self._claim._group_bound(self._k)
        return iterated if other is None else iterated.maximum(Envelope.of(other))

    def _repeated(self, n: int) -> TradeoffFunction | None:
        """Return the k-step claim of n composed mechanisms if one step has further bounds, which composition loses."""
        closed = self._claim._repeated(n) if self._claim._group_bound(self._k) else None
        return closed and group(closed, self._k)

    def _composed_with(self, other: TradeoffFunction) -> TradeoffFunction | None:
        if not isinstance(other, Group) or other._k != self._k or not self._claim._group_bound(self._k):
            return None
        closed = self._claim._composed_with(other._claim)
        return closed and group(closed, self._k)

    def mu(self) -> float:
        """Return an upper bound of mu: at most k times the mu of one step, because 1 - (1 - G_mu)^{o k} = G_{k mu}."""
        bound = self._k * self._claim.mu()
        return min(self._envelope.mu(), bound) if bound < math.inf else bound
