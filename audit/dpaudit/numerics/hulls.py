"""The lower convex hull of points in the plane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpaudit.numerics.arrays import Array


def lowest(x: Array, y: Array) -> tuple[Array, Array]:
    """Points in the order of x, strictly increasing: of points with the same x the lowest one."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    first = np.concatenate([[True], np.diff(x) > 0])
    return x[first], y[first]


def slopes(x: Array, y: Array) -> Array:
    """The slope of the chord from each point to the next."""
    rise: Array = np.diff(y) / np.diff(x)
    return rise


def lower_hull(
    x: Array, y: Array, *, steepness: Callable[[Array, Array], Array] = slopes, straight: bool = False
) -> tuple[Array, Array]:
    """The corners of the lower convex hull of points (n,) whose x strictly increases.

    Theorem:
        The first and the last point, and all corners of the hull in between, are kept; every other point goes.

    Proof:
        A point goes if the chord from its left neighbour is at least as steep as the chord to its right one: if it lies
        on or above the line between these two, which are points of the set.  Then it is no corner.  A corner lies below
        every such line and never goes.  Each round but the last removes a point, so there are at most n rounds.  After
        the last one the chords rise strictly, so what is left is convex.

    Args:
        x: Strictly increasing, see `lowest`.
        y: Of the same length, at least 1.
        steepness: Any strictly increasing function of the slopes of successive chords, (k,), (k,) -> (k - 1,).  It says
            what x and y are: to take x for the logarithm of an abscissa is precise where the abscissa itself overflows.
        straight: Keep points on the line between their neighbours; only those above it go.

    Returns:
        x and y of what is kept, in order.
    """
    while True:
        steep = steepness(x, y)
        off = np.diff(steep) < 0 if straight else np.diff(steep) <= 0
        if not np.any(off):
            return x, y
        kept = np.concatenate([[True], ~off, [True]])
        x, y = x[kept], y[kept]
