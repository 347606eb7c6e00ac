"""Binomial coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln


def log_choose(n: npt.ArrayLike, k: npt.ArrayLike) -> Any:
    """log of n over k, 0 <= k <= n; elementwise."""
    n, k = np.asarray(n), np.asarray(k)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
