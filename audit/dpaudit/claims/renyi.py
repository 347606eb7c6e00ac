"""Renyi differential privacy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.divergences import all_orders, fixed_orders
from dpaudit.claims.envelope import Envelope
from dpaudit.claims.ranges import PolygonalClaim, nonnegative
from dpaudit.values import Parameters


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


@dataclass(frozen=True, init=False, repr=False)
class RenyiDP(PolygonalClaim):
    """(order, epsilon)-RDP: the Renyi divergence of the given order is at most epsilon.  Mironov 2017, Def. 4.

    The trade-off curve is the least beta for which D_order(Ber(1 - beta) || Ber(alpha)) and D_order(Ber(alpha) || Ber(1
    - beta)) are at most epsilon; see `claims.divergences`.  Renyi divergences increase with their order, so the bound
    epsilon also holds for every smaller order.  Bounds for smaller orders do not change the curve, because the
    divergences of two Bernoulli laws increase with the order, too.  If several orders are given, the joint curve is the
    maximum of the curves of the orders.

    Args:
        order: Order of the Renyi divergence, > 1 and finite, or an increasing sequence of such orders.
        epsilon: Bound of the Renyi divergence in nats, finite and >= 0; one number for each order.

    Raises:
        ValueError: If a parameter is out of range, or the numbers of orders and epsilons differ.
    """

    name: ClassVar[str] = "renyi"
    _order: tuple[float, ...]  # orders of the Renyi divergences, > 1, finite, increasing
    _epsilon: tuple[float, ...]  # bounds of the Renyi divergences in nats, >= 0, one for each order

    def __init__(self, *, order: float | Sequence[float], epsilon: float | Sequence[float]) -> None:
        given, epsilons = _tuple(order), _tuple(epsilon)
        if len(given) != len(epsilons) or not given:
            raise ValueError(f"order and epsilon must have the same length >= 1, got {len(given)} and {len(epsilons)}")
        orders = tuple(nonnegative("order", a) for a in given)
        for a in orders:
            if not a > 1:
                raise ValueError(f"order must be finite and > 1, got {a:g}")
        if any(b <= a for a, b in itertools.pairwise(orders)):
            raise ValueError(f"order must be increasing, got {orders}")
        object.__setattr__(self, "_order", orders)
        object.__setattr__(self, "_epsilon", tuple(nonnegative("epsilon", e) for e in epsilons))

    symmetric = True

    def _make_envelope(self) -> Envelope:
        return fixed_orders(np.array(self._order), np.array(self._epsilon))

    def _repeated(self, n: int) -> TradeoffFunction:
        """Multiply the epsilon of each order by n; Mironov 2017, Prop. 1."""
        return RenyiDP(order=self._order, epsilon=[n * e for e in self._epsilon])

    def _composed_with(self, other: TradeoffFunction) -> TradeoffFunction | None:
        """Add the epsilons of each order if both claims list the same orders; Mironov 2017, Prop. 1."""
        if not isinstance(other, RenyiDP) or other._order != self._order:
            return None
        return RenyiDP(order=self._order, epsilon=[a + b for a, b in zip(self._epsilon, other._epsilon, strict=True)])

    def mu(self) -> float:
        """Return 0 if the epsilon of an order is 0, otherwise inf.

        Let a be the largest order.  Near alpha = 0, 1 - f(alpha) is of order alpha^((a - 1) / a), which is larger than
        1 - G_mu(alpha) for every mu.  So no Gaussian curve lies below f.
        """
        return 0.0 if min(self._epsilon) == 0 else math.inf

    @property
    def parameters(self) -> Parameters:
        """The arguments of the constructor: numbers if the claim has one order, otherwise tuples."""
        if len(self._order) == 1:
            return {"order": self._order[0], "epsilon": self._epsilon[0]}
        return super().parameters


def _tuple(values: object) -> tuple[object, ...]:
    return tuple(np.asarray(values, dtype=object).ravel().tolist()) if not isinstance(values, str) else (values,)
