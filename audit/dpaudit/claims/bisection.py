"""Where a privacy profile has fallen to a given delta."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpaudit.numerics.arrays import Array


def least_below(profile: Callable[[Array], Array], delta: Array) -> Array:
    """Least x > 0 with profile(x) <= delta, elementwise, for a nonincreasing profile; from above, inf if none."""
    high = np.ones_like(delta)
    while np.any(short := (profile(high) > delta) & (high < 1e300)):
        high[short] *= 2
    low = np.zeros_like(delta)
    for _ in range(1100):
        middle = low + (high - low) / 2
        if np.all((high - low <= 1e-14 * high) | (middle <= low) | (middle >= high)):
            break
        enough = profile(middle) <= delta
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(high < 1e300, high, math.inf)
