"""Inverts a privacy profile: computes epsilon for a given delta."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect_each


def least_below(profile: Callable[[Array], Array], delta: Array) -> Array:
    """Return the least x > 0 with profile(x) <= delta for each delta, rounded up; inf if there is no such x."""
    high = np.ones_like(delta)
    while np.any(short := (profile(high) > delta) & (high < 1e300)):
        high[short] *= 2
    found = bisect_each(
        lambda x: profile(x) <= delta, inside=high, outside=np.zeros_like(delta), close=lambda x, y: x - y <= 1e-14 * x
    ).inside
    return np.where(found < 1e300, found, math.inf)
