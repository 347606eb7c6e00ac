"""Laws of the log-likelihood ratio after normal errors, which stand for the errors of a learned score."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from dpaudit.inference.grid import EDGES
from dpaudit.numerics import Array

_MIN_PROBABILITY = 1e-9  # rarer events result from rounding at kinks of a law


def without_rounding(p: Array, q: Array) -> tuple[Array, Array]:
    """Remove the bins that have a positive probability only because of rounding errors, from laws of shape (BINS,)."""
    kept = p + q > _MIN_PROBABILITY
    p, q = np.where(kept, p, 0.0), np.where(kept, q, 0.0)
    return p / p.sum(), q / q.sum()


def blurred(p: Array, q: Array, deviation: float) -> tuple[Array, Array]:
    """Add normal errors with a standard deviation in nats to log-likelihood ratios with laws of shape (BINS,)."""
    centers = np.concatenate([[2 * EDGES[0] - EDGES[1]], (EDGES[1:] + EDGES[:-1]) / 2, [2 * EDGES[-1] - EDGES[-2]]])
    moved: Array = np.diff(ndtr((EDGES - centers[:, None]) / deviation), axis=1, prepend=0.0, append=1.0)
    moved[0], moved[-1] = np.eye(len(centers))[[0, -1]]  # outputs that only one dataset has are recognised
    return p @ moved, q @ moved
