"""Evidence of an outcome of the fixed test against a claim, as `exact_binomial` defines it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.fixed.binomial import log_complement, log_rate
from dpaudit.numerics import Array, Flags, Integers, bisect_each_integer, bisect_integers

_SPACING = 0.1  # standard deviations between neighbouring points of the grid along the curve


@dataclass(frozen=True, eq=False)
class Arc:
    """Points (alpha, beta) of a claim's curve, with nondecreasing alpha and nonincreasing beta."""

    alpha: Array
    beta: Array

    @classmethod
    def pair(cls, claim: TradeoffFunction, n0: int, n1: int, low: float, high: float) -> tuple[Arc, Arc]:
        """Return an arc evenly spaced in arcsin(sqrt(alpha)) and an arc evenly spaced in arcsin(sqrt(beta)).

        Two arcs are needed because even spacing in alpha leaves gaps in beta where the curve is steep.  The grids
        depend on n0 and n1 only, so each point moves in one direction as the claim weakens.  Lemma 1 of
        `exact_binomial` requires this monotonicity.

        Args:
            claim: A symmetric claim.
            n0: Number of outputs of d0.
            n1: Number of outputs of d1.
            low: Smallest alpha that the arcs must cover.
            high: Largest alpha that the arcs must cover.
        """
        alpha = _grid(n0, low, high)
        beta = _grid(n1, claim.beta(high), claim.beta(low))[::-1]
        return cls(alpha, claim.beta(alpha)), cls(claim.beta(beta), beta)

    @cached_property
    def _table(self) -> Array:
        """The rate, log rate and log(1 - rate), all finite, where the rate is alpha or beta, (3, points, 2)."""
        rates = self.alpha, self.beta
        return np.array([_pairs(rates), _pairs(map(log_rate, rates)), _pairs(map(log_complement, rates))])

    def evidence(self, x: npt.ArrayLike, n0: int, z: npt.ArrayLike, n1: int) -> Array:
        """Return the minimum divergence between outcomes (x, z) and the points of this arc; elementwise.

        Along the arc the first term of the divergence rises from 0, and the second term falls to 0.  Both terms are
        convex because f is convex.  So the minimum is where the sum of both terms stops falling, between the last
        alpha <= p and the first beta <= q.
        """
        p, q = smoothed_rate(x, n0), smoothed_rate(z, n1)
        # Both terms are computed in one call, along the last axis, because the arrays are short and calls are costly.
        own = _pairs(rate * np.log(rate) + (1 - rate) * np.log1p(-rate) for rate in (p, q))
        observed, sizes = _pairs((p, q)), np.array([n0 + 1, n1 + 1])
        complement = 1 - observed

        def divergence(at: npt.NDArray[np.intp]) -> Array:
            rates, logs, logs_of_complement = self._table.take(at, axis=1)
            terms = sizes * (own - observed * logs - complement * logs_of_complement)
            # Lemma 1 requires terms >= 0, also after rounding.
            terms = np.where(rates > observed, np.maximum(terms, 0.0), 0.0)
            return np.asarray(terms[..., 0] + terms[..., 1])

        high = np.minimum(np.searchsorted(-self.beta, -q, side="left"), len(self.beta) - 1)
        low = np.clip(np.searchsorted(self.alpha, p, side="right") - 1, 0, high)

        if p.size == 1:  # computing all divergences at once is faster than one at a time
            start, stop = int(low.flat[0]), int(high.flat[0])
            every = divergence(np.arange(start, stop + 1))
            fell = (every[1:] <= every[:-1]).tolist()
            last = bisect_integers(lambda at: fell[at], inside=-1, outside=stop - start).outside
            return every[last : last + 1].reshape(p.shape)

        def falls(at: Integers) -> Flags:
            after, here = divergence(np.array([np.minimum(at + 1, high), at]))
            found: Flags = after <= here
            return found

        return divergence(bisect_each_integer(falls, inside=low - 1, outside=high).outside)


def evidence_of(claim: TradeoffFunction, x: int, n0: int, z: int, n1: int) -> float:
    """Return the evidence of one outcome against a claim.

    The divergence is smallest at a point with alpha >= p and beta >= q, or next to such a point.  Other points are left
    out.
    """
    p, q = float(smoothed_rate(x, n0)), float(smoothed_rate(z, n1))
    arcs = Arc.pair(claim, n0, n1, p, max(p, claim.beta(q)))
    return min(float(arc.evidence([x], n0, [z], n1)[0]) for arc in arcs)


def smoothed_rate(k: npt.ArrayLike, n: int) -> Array:
    """Return (k + 1/2) / (n + 1)."""
    return (np.asarray(k, dtype=np.float64) + 0.5) / (n + 1)


def _pairs(two: Iterable[Array]) -> Array:
    """Stack two arrays (...) along a new last axis: (..., 2)."""
    first, second = two
    result = np.empty((*first.shape, 2))
    result[..., 0], result[..., 1] = first, second
    return result


def _grid(n: int, low: float, high: float) -> Array:
    """Return the part of a fixed grid in arcsin sqrt that covers [low, high], and two more points on each side."""
    step = _SPACING / (2 * math.sqrt(n))
    first = max(math.floor(math.asin(math.sqrt(low)) / step) - 2, 0)
    last = min(math.ceil(math.asin(math.sqrt(high)) / step) + 2, math.ceil(math.pi / 2 / step))
    return square_sine(np.minimum(step * np.arange(first, last + 1), math.pi / 2))


def square_sine(angle: Array) -> Array:
    """Return the squared sine, the inverse of arcsin sqrt."""
    return np.asarray(np.sin(angle) ** 2)
