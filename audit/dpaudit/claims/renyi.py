"""Renyi and zero-concentrated DP: converts bounds of Renyi divergences to trade-off functions, by hypothesis testing.

For a test with errors (alpha, beta), the answer "d1" has the law Ber(alpha) under P and Ber(1 - beta) under Q.  Testing
cannot increase the Renyi divergence (data processing inequality; van Erven & Harremoes 2014, Thm 9).  So if D_a(P||Q)
and D_a(Q||P) are at most t, every test satisfies

    D_a(Ber(1 - beta) || Ber(alpha)) <= t   and   D_a(Ber(alpha) || Ber(1 - beta)) <= t,                       (1)

The order a alone implies no better bound, because P and Q may be Bernoulli laws (Balle, Barthe, Gaboardi, Hsu & Sato
2020, "Hypothesis testing interpretations and Renyi differential privacy", Thm 10).  The pairs (alpha, beta) that
satisfy (1) form a convex set, because D_a is jointly quasi-convex (van Erven & Harremoes, Thm 13).  The set is
symmetric under exchange of alpha and beta.

**Direction of numerical errors.**  For alpha <= beta, the first inequality of (1) implies the second, so only the first
is used.  Bisection finds points outside the solution set, close to its boundary.  At each point, the tangent to the
level set of the divergence is a line below f at any precision of the bisection.  The maximum of finitely many tangents,
for finitely many orders, is a lower bound of f.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from dpaudit.claims.base import TradeoffFunction, nonnegative
from dpaudit.claims.envelope import Envelope, PolygonalClaim, SupportingLines
from dpaudit.numerics import Array, Flags, bisect_each
from dpaudit.values import Parameters

_ROUNDING = 1e-15  # bound of the rounding error of a computed logarithm, relative to max(1, |logarithm|)
_TINY = 1e-24  # divergence in nats below which Pinsker's inequality is used
_FAR = 700.0  # largest -log(1 - beta) for which the curve is computed; the least normal double is e^-708


# the computation takes 0.2 seconds, and several audits in a config file often have the same claim
@lru_cache(maxsize=64)
def all_orders(rho: float) -> Envelope:
    """Return the trade-off function of zero-concentrated DP: D_a <= rho a in both directions, for every order a > 1.

    For each alpha, a golden-section search finds the order with the best bound, which is valid even if it is inexact.
    """
    if rho < _TINY:
        return _nearly_equal(rho)
    log_alpha = _grid((np.sqrt(_FAR) + np.sqrt(rho)) ** 2)
    low = np.full_like(log_alpha, np.log(1e-5))
    high = np.full_like(log_alpha, np.log(20 + 10 * np.sqrt(_FAR / rho)))
    best = _golden(lambda x: _log_power(log_alpha, 1 + np.exp(x), rho * (1 + np.exp(x))), low, high)
    order = 1 + np.exp(best)
    return _joined([_tangents(log_alpha, order, rho * order)])


def _nearly_equal(divergence: float) -> Envelope:
    """Bound f by Pinsker's inequality: total variation <= sqrt(D_1 / 2), where D_1 <= D_a for every order a > 1."""
    supporting = SupportingLines(np.zeros(1), np.full(1, np.sqrt(divergence / 2)))
    return Envelope(supporting, supporting)


def _grid(largest: float) -> Array:
    """Return log alpha from log 1/2 to -largest, evenly spaced in sqrt(-log alpha), as log-slopes of G_mu are."""
    return -(np.linspace(np.sqrt(np.log(2)), np.sqrt(largest), 2000) ** 2)


def _joined(all_supporting: list[SupportingLines]) -> Envelope:
    supporting = SupportingLines.hull(
        np.concatenate([h.slope for h in all_supporting]), np.concatenate([h.gap for h in all_supporting])
    )
    return Envelope(supporting, supporting)


def _golden(value: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the minimisers of an elementwise unimodal function, found by golden-section search."""
    ratio = (np.sqrt(5.0) - 1) / 2
    x1, x2 = high - ratio * (high - low), low + ratio * (high - low)
    y1, y2 = value(x1), value(x2)
    for _ in range(25):
        left = y1 < y2
        low, high = np.where(left, low, x1), np.where(left, x2, high)
        x1, x2 = np.where(left, high - ratio * (high - low), x2), np.where(left, x1, low + ratio * (high - low))
        y_new = value(np.where(left, x1, x2))
        y1, y2 = np.where(left, y_new, y2), np.where(left, y1, y_new)
    return (low + high) / 2


def _log_power(log_x: Array, order: Array, divergence: Array) -> Array:
    """Return log w for the largest w with D_order(Ber(w) || Ber(alpha)) <= divergence, rounded up, for each alpha."""
    log_not_x = np.log(-np.expm1(log_x))
    most = (order - 1) * divergence

    def allowed(log_w: Array) -> Flags:
        with np.errstate(divide="ignore"):
            log_not_w = np.log(-np.expm1(log_w))
        first, second = order * (log_w - log_x), order * (log_not_w - log_not_x)
        margin = _ROUNDING * (1 + np.abs(first) - log_x - log_not_x + np.where(second > -1e3, np.abs(second), 0.0))
        found: Flags = np.logaddexp(first + log_x, second + log_not_x) <= most + margin
        return found

    return bisect_each(allowed, inside=log_x, outside=np.zeros_like(log_x), steps=60).outside


def _tangents(log_x: Array, order: Array, divergence: Array) -> SupportingLines:
    """Return, for each alpha, the tangent at (alpha, w) to the level set of D_order(Ber(w) || Ber(alpha))."""
    log_w = _log_power(log_x, order, divergence)
    log_not_x = np.log(-np.expm1(log_x))
    # points with alpha <= beta; by symmetry, mirrored tangents bound f where beta < alpha
    below = (log_w < log_not_x) & (log_w > log_x)
    order, log_w, log_x, log_not_x = order[below], log_w[below], log_x[below], log_not_x[below]
    r, t = log_w - log_x, np.log(-np.expm1(log_w)) - log_not_x
    log_share = np.log1p(-1 / order) + np.log(-np.expm1(order * (t - r))) - np.log(-np.expm1((order - 1) * (t - r)))
    # Here log_share = log(slope alpha / w) < 0, and `gap` is the height of the tangent at alpha = 0.
    gap = np.exp(log_w) * -np.expm1(np.minimum(log_share, 0.0)) * (1 + 1e-12)
    slope = np.maximum(r + log_share, 0.0)
    if not np.any(below):
        return SupportingLines(np.zeros(1), np.ones(1))
    return SupportingLines.hull(slope, gap)


@dataclass(frozen=True, init=False, repr=False)
class ZeroConcentratedDP(PolygonalClaim):
    """rho-zCDP: the Renyi divergence of every order a > 1 is at most rho a.  Bun & Steinke 2016, Def. 1.1.

    The trade-off curve is the least beta for which D_a(Ber(1 - beta) || Ber(alpha)) and D_a(Ber(alpha) || Ber(1 -
    beta)) are at most rho a, for every a > 1.  mu-GDP implies (mu^2 / 2)-zCDP, but not conversely.

    Args:
        rho: Nats, finite and >= 0, otherwise a ValueError is raised.
    """

    name: ClassVar[str] = "zcdp"
    _rho: float  # parameter rho of zero-concentrated DP in nats, >= 0

    def __init__(self, rho: float) -> None:
        object.__setattr__(self, "_rho", nonnegative("rho", rho))

    symmetric = True

    @cached_property
    def _envelope(self) -> Envelope:
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
    - beta)) are at most epsilon.  Bounds for smaller orders, which epsilon implies, do not change it, since these
    divergences also increase with the order.  With several orders, it is the maximum of their curves.

    Args:
        order: Order of the Renyi divergence, > 1 and finite, or an increasing sequence of such orders.
        epsilon: Bound in nats, finite and >= 0; one number for each order.

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

    @cached_property
    def _envelope(self) -> Envelope:
        if min(self._epsilon) < _TINY:
            return _nearly_equal(min(self._epsilon))
        all_supporting = []
        for a, t in zip(self._order, self._epsilon, strict=True):
            # An order near 1 determines f even at extremely small alpha, so four grids of different widths are used.
            log_alpha = np.unique(np.concatenate([_grid(far) for far in np.geomspace(30.0, _FAR * a / (a - 1) + t, 4)]))
            all_supporting.append(_tangents(log_alpha, np.full_like(log_alpha, a), np.full_like(log_alpha, t)))
        return _joined(all_supporting)

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

        Near alpha = 0, 1 - f(alpha) is of order alpha^((a - 1) / a) for the largest order a, which exceeds every 1 -
        G_mu.
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
