"""The lower convex hull of points in the plane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpaudit.numerics.arrays import Array


def lowest(x: Array, y: Array) -> tuple[Array, Array]:
    """Sort points by their abscissas, and keep only the lowest point at each abscissa."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    first = np.concatenate([[True], np.diff(x) > 0])
    return x[first], y[first]


def slopes(x: Array, y: Array) -> Array:
    """Return the slope of the line segment between each pair of successive points; shape (n - 1,)."""
    rise: Array = np.diff(y) / np.diff(x)
    return rise


def lower_hull(
    x: Array, y: Array, *, steepness: Callable[[Array, Array], Array] = slopes, straight: bool = False
) -> tuple[Array, Array]:
    """Return the corners of the lower convex hull of n points.

    Args:
        x: Abscissas of at least one point, strictly increasing; shape (n,).
        y: Ordinates of the points; shape (n,).
        steepness: Function that maps the arrays x and y of k points to k - 1 numbers.  Each number must be a strictly
            increasing function of the slope between two successive points.  With a suitable function, x may contain
            logarithms of abscissas, so that very large abscissas do not overflow.
        straight: If True, points on a straight line between other points of the hull remain; otherwise, they are
            removed.

    Returns:
        The abscissas and the ordinates of the remaining points, in increasing order of the abscissas.

    Theorem:
        The first point, the last point and all corners of the lower convex hull remain.  If `straight` is False, all
        other points are removed.  If `straight` is True, all points above the hull are removed.

    Proof:
        Call the segment between two successive points a chord.  First let `straight` be False.  A point is removed if
        the slope of the chord on its left is at least the slope of the chord on its right.  Such a point lies on or
        above the line between two other points, so it is not a corner.  A corner lies below each line between a point
        on its left and a point on its right.  So a corner is never removed.  Each iteration except the last removes a
        point, so there are at most n iterations.  After the last iteration, the slopes of the chords strictly increase,
        so the remaining points are in convex position.

        If `straight` is True, a point is removed only if the slope of the chord on its left exceeds the slope of the
        chord on its right.  Such a point lies strictly above the line between two other points.  After the last
        iteration, the slopes of the chords do not decrease.
    """
    while True:
        steep = steepness(x, y)
        off = np.diff(steep) < 0 if straight else np.diff(steep) <= 0
        if not np.any(off):
            return x, y
        kept = np.concatenate([[True], ~off, [True]])
        x, y = x[kept], y[kept]
