"""Claims that are computed as the envelope of straight lines."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.envelope import Lines
from dpaudit.numerics.arrays import Array


class PolygonalClaim(TradeoffFunction):
    """A claim whose f is a polygon: `_make_lines` says which.  f and its profile are then exact duals."""

    @abstractmethod
    def _make_lines(self) -> Lines: ...

    @cached_property
    def _lines(self) -> Lines:
        return self._make_lines()

    def _curve(self, alpha: Array) -> Array:
        return self._lines.beta(alpha)

    def _profile(self, epsilon: Array) -> Array:
        return self._lines.delta(epsilon)

    def mu(self) -> float:
        """Least mu with G_mu <= f, found at the corners of f; inf if f(0) < 1."""
        return self._lines.mu()

    def _largest_loss(self) -> float:
        return float(self._lines.steep.slope[-1])

    def _slopes(self) -> Array:
        return self._lines.steep.slope
