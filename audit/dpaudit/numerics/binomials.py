"""Logarithms of binomial coefficients."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from dpaudit.numerics.arrays import Array


def log_choose(n: npt.ArrayLike, k: npt.ArrayLike) -> Array:
    """Return the natural logarithm of the binomial coefficient "n choose k", elementwise."""
    n, k = np.asarray(n), np.asarray(k)
    log_coefficient: Array = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return log_coefficient
