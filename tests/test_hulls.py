"""The lower convex hull agrees with a comparison against every chord in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.numerics.hulls import lower_hull, lowest

POINTS = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=1, max_size=25)


def plain(points: list[tuple[int, int]], *, straight: bool) -> list[tuple[int, int]]:
    """Return the lowest point at each x, unless a chord between two other points passes below it.

    Without `straight`, a chord that passes through the point removes it, too.
    """
    lowest_at = sorted(dict(sorted(points, reverse=True)).items())

    def goes(x: int, y: int) -> bool:
        for (x0, y0), (x1, y1) in combinations(lowest_at, 2):
            if x0 < x < x1:
                chord = y0 + Fraction(y1 - y0, x1 - x0) * (x - x0)
                if chord < y or (chord == y and not straight):
                    return True
        return False

    return [(x, y) for x, y in lowest_at if not goes(x, y)]


@given(POINTS, st.booleans())
def test_what_is_kept_lies_below_every_chord(points: list[tuple[int, int]], straight: bool) -> None:
    """The comparison is exact: quotients of integers up to 40 are equal or differ by much more than rounding errors."""
    x, y = (np.array(values, dtype=np.float64) for values in zip(*points, strict=True))
    hull = lower_hull(*lowest(x, y), straight=straight)
    assert list(zip(*hull, strict=True)) == plain(points, straight=straight)


def test_another_scale_of_x_keeps_the_same_points() -> None:
    """Here x is the logarithm of an abscissa, and e^x does not overflow."""
    rng = np.random.default_rng(5)
    x, y = np.sort(rng.uniform(0, 5, 200)), np.sort(rng.uniform(0, 1, 200))[::-1]
    hull = lower_hull(np.exp(x), y)
    other = lower_hull(x, y, steepness=lambda x, y: np.diff(y) / np.diff(np.exp(x)))
    assert 5 < len(hull[0]) < 100
    assert np.array_equal(hull[0], np.exp(other[0]))
    assert np.array_equal(hull[1], other[1])


@pytest.mark.parametrize("points", [1, 2])
def test_one_or_two_points_are_their_own_hull(points: int) -> None:
    x, y = np.arange(points, dtype=np.float64), np.ones(points)
    assert np.array_equal(lower_hull(x, y), (x, y))
