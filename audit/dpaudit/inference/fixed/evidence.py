"""How much an outcome of the fixed test speaks against a claim; see `exact_binomial`, Evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.fixed.binomial import log_complement, log_rate
from dpaudit.numerics.arrays import Array, Flags, Integers
from dpaudit.numerics.bisect import bisect_each_integer

_SPACING = 0.1  # standard deviations from one point of the grid along the curve to the next


@dataclass(frozen=True, eq=False)
class Arc:
    """Points (alpha, beta) of a claim's curve; alpha does not fall and beta does not rise."""

    alpha: Array
    beta: Array

    @classmethod
    def pair(cls, claim: TradeoffFunction, n0: int, n1: int, low: float, high: float) -> tuple[Arc, Arc]:
        """The points with alpha in [low, high] and some more: one arc evenly spaced in alpha, one in beta.

        Both, because where the curve is steep an even spacing in alpha leaves gaps in beta.  The grids depend on n0
        and n1 only, so that each point moves in one direction as the claim weakens; Lemma 1 rests on that.
        """
        alpha = _grid(n0, low, high)
        beta = _grid(n1, claim.beta(high), claim.beta(low))[::-1]
        return cls(alpha, claim.beta(alpha)), cls(claim.beta(beta), beta)

    @cached_property
    def _table(self) -> Array:
        """alpha, beta, log alpha, log(1 - alpha), log beta and log(1 - beta), finite, (6, points)."""
        alpha, beta = self.alpha, self.beta
        return np.array([alpha, beta, log_rate(alpha), log_complement(alpha), log_rate(beta), log_complement(beta)])

    def evidence(self, x: npt.ArrayLike, n0: int, z: npt.ArrayLike, n1: int) -> Array:
        """The least divergence between outcomes (x, z) and the points of this arc, nats; elementwise.

        Along the arc the first term rises from 0 and the second falls to 0, and both are convex because f is: the
        minimum is where their sum stops falling, between the last alpha <= p and the first beta <= q.
        """
        p, q = smoothed_rate(x, n0), smoothed_rate(z, n1)
        own0, own1 = (rate * np.log(rate) + (1 - rate) * np.log1p(-rate) for rate in (p, q))

        def divergence(at: npt.NDArray[np.intp]) -> Array:
            alpha, beta, log_alpha, log_not_alpha, log_beta, log_not_beta = self._table.take(at, axis=1)
            first = (n0 + 1) * (own0 - p * log_alpha - (1 - p) * log_not_alpha)
            second = (n1 + 1) * (own1 - q * log_beta - (1 - q) * log_not_beta)
            # at least 0 whatever the rounding, as Lemma 1 assumes
            first = np.where(alpha > p, np.maximum(first, 0.0), 0.0)
            return first + np.where(beta > q, np.maximum(second, 0.0), 0.0)

        high = np.minimum(np.searchsorted(-self.beta, -q, side="left"), len(self.beta) - 1)
        low = np.clip(np.searchsorted(self.alpha, p, side="right") - 1, 0, high)

        def falls(at: Integers) -> Flags:
            after, here = divergence(np.stack([np.minimum(at + 1, high), at]))
            found: Flags = after <= here
            return found

        return divergence(bisect_each_integer(falls, inside=low - 1, outside=high).outside)


def evidence_of(claim: TradeoffFunction, x: int, n0: int, z: int, n1: int) -> float:
    """Evidence of one outcome.  Points with alpha < p or with beta < q are never nearer than the next ones inside."""
    p, q = float(smoothed_rate(x, n0)), float(smoothed_rate(z, n1))
    arcs = Arc.pair(claim, n0, n1, p, max(p, claim.beta(q)))
    return min(float(arc.evidence([x], n0, [z], n1)[0]) for arc in arcs)


def smoothed_rate(k: npt.ArrayLike, n: int) -> Array:
    """k of n, with half an output added to both sides."""
    return (np.asarray(k, dtype=np.float64) + 0.5) / (n + 1)


def _grid(n: int, low: float, high: float) -> Array:
    """Part of a fixed grid on [0, 1], even in arcsin sqrt, that covers [low, high] with two points to spare."""
    step = _SPACING / (2 * math.sqrt(n))
    first = max(math.floor(math.asin(math.sqrt(low)) / step) - 2, 0)
    last = min(math.ceil(math.asin(math.sqrt(high)) / step) + 2, math.ceil(math.pi / 2 / step))
    return square_sine(np.minimum(step * np.arange(first, last + 1), math.pi / 2))


def square_sine(angle: Array) -> Array:
    return np.asarray(np.sin(angle) ** 2)
