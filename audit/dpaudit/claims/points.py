"""Where to draw a claim: few points, dense where its curves bend."""

from __future__ import annotations

import numpy as np

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.envelope import Lines
from dpaudit.numerics.arrays import Array


def curve_points(claim: TradeoffFunction, *, points: int = 400) -> tuple[Array, Array]:
    """(alpha, beta) from alpha = 0 to 1, at most about 2 `points`: corners are met, arcs are followed to 1e-5 or so.

    Both ends are resolved on a logarithmic scale, too.
    """
    lines = Lines.of(claim)
    alpha, _ = Lines(lines.steep.thinned(points), lines.flat.thinned(points)).vertices()
    alpha = np.unique(alpha)
    return alpha, claim.beta(alpha)


def profile_points(claim: TradeoffFunction, *, smallest: float = 1e-9, points: int = 400) -> tuple[Array, Array]:
    """(epsilon, delta) from epsilon = 0 to where delta is `smallest`, or no longer falls: about `points` of them."""
    corners = Lines.of(claim).steep.thinned(points // 4).slope
    top, floor = claim.delta(0.0), claim.delta(np.inf)
    bulk, end = (float(claim.epsilon(max(level, floor))) for level in (top / 100, min(smallest, top)))
    bulk, end = min(bulk, float(corners[-1])), min(end, float(corners[-1]))
    even = [np.linspace(0.0, bulk, points // 2), np.linspace(bulk, max(end, bulk), points // 4)]
    epsilon = np.unique(np.concatenate([*even, corners[corners < end]]))
    return epsilon, claim.delta(epsilon)
