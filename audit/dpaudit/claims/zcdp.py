"""Zero-concentrated differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.divergences import all_orders
from dpaudit.claims.envelope import Envelope
from dpaudit.claims.polygonal import PolygonalClaim
from dpaudit.claims.ranges import nonnegative


@dataclass(frozen=True, init=False, repr=False)
class ZeroConcentratedDP(PolygonalClaim):
    """rho-zCDP: the Renyi divergence of every order a > 1 is at most rho a.  Bun & Steinke 2016, Def. 1.1.

    The trade-off curve is the least beta for which D_a(Ber(1 - beta) || Ber(alpha)) and D_a(Ber(alpha) || Ber(1 -
    beta)) are at most rho a, for every a > 1; see `claims.divergences`.  mu-GDP implies (mu^2 / 2)-zCDP, but not
    conversely.

    Args:
        rho: Parameter of zero-concentrated DP in nats.  Must be finite and >= 0.

    Raises:
        ValueError: If `rho` is out of range.
    """

    name: ClassVar[str] = "zcdp"
    _rho: float  # parameter rho of zero-concentrated DP in nats, >= 0

    def __init__(self, rho: float) -> None:
        object.__setattr__(self, "_rho", nonnegative("rho", rho))

    symmetric = True

    def _make_envelope(self) -> Envelope:
        return all_orders(self._rho)

    def _repeated(self, n: int) -> TradeoffFunction:
        """Multiply rho by the number n of mechanisms; Bun & Steinke 2016, Lemma 1.7."""
        return ZeroConcentratedDP(self._rho * n)

    def _composed_with(self, other: TradeoffFunction) -> TradeoffFunction | None:
        """Add the parameters rho of two zCDP claims; Bun & Steinke 2016, Lemma 1.7."""
        return ZeroConcentratedDP(self._rho + other._rho) if isinstance(other, ZeroConcentratedDP) else None

    def _group_bound(self, k: int) -> TradeoffFunction:
        """Multiply rho by k^2 for datasets that differ by k steps; Bun & Steinke 2016, Prop. 1.9."""
        return ZeroConcentratedDP(self._rho * k**2)
