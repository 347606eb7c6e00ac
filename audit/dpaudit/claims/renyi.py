"""Renyi differential privacy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.claims.base import PolygonalClaim, TradeoffFunction
from dpaudit.claims.divergences import fixed_orders
from dpaudit.claims.envelope import Envelope
from dpaudit.claims.ranges import nonnegative
from dpaudit.values import Parameters


@dataclass(frozen=True, init=False, repr=False)
class RenyiDP(PolygonalClaim):
    """(order, epsilon)-RDP: the Renyi divergence of that order is at most epsilon.  Mironov 2017, Def. 4.

    Curve: least beta with D_order(Ber(1 - beta) || Ber(alpha)) <= epsilon and the reverse; see `claims.divergences`.
    Smaller orders, for which the bound holds as well since divergences grow with their order, add nothing:
    they grow for Bernoulli pairs, too.  Several orders, as accountants list them, promise the larger of the curves.
    """

    name: ClassVar[str] = "renyi"
    _order: tuple[float, ...]  # each > 1 and finite, increasing
    _epsilon: tuple[float, ...]  # nats, >= 0, one for each order

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
        """Mironov 2017, Prop. 1."""
        return RenyiDP(order=self._order, epsilon=[n * e for e in self._epsilon])

    def _composed_with(self, other: TradeoffFunction) -> TradeoffFunction | None:
        """Order by order, where both name the same ones; Mironov 2017, Prop. 1."""
        if not isinstance(other, RenyiDP) or other._order != self._order:
            return None
        return RenyiDP(order=self._order, epsilon=[a + b for a, b in zip(self._epsilon, other._epsilon, strict=True)])

    def mu(self) -> float:
        """A finite order bounds the tail by a power of alpha, which no Gaussian curve does: inf, or 0 if epsilon is."""
        return 0.0 if min(self._epsilon) == 0 else math.inf

    @property
    def parameters(self) -> Parameters:
        """The constructor's arguments; numbers if there is one order, else tuples."""
        if len(self._order) == 1:
            return {"order": self._order[0], "epsilon": self._epsilon[0]}
        return super().parameters


def _tuple(values: object) -> tuple[object, ...]:
    return tuple(np.asarray(values, dtype=object).ravel().tolist()) if not isinstance(values, str) else (values,)
