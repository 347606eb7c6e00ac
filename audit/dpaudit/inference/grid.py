"""The fixed bins of the log-likelihood ratio in which all evidence is counted.

Every attack's score is turned into an estimate l of log q/p before it is counted.  Bin i holds
EDGES[i - 1] < l <= EDGES[i].  The edges are the same for every audit, so that evidence can be added up
and read again later: zero, and steps of 8 % from 0.001 to 60 nats on both sides.  That resolves claims from
mu = 0.01 to mu = 10; l = +-inf falls into the end bins.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.claims import Array

_POSITIVE = 0.001 * 1.08 ** np.arange(144)
EDGES: Array = np.concatenate([-_POSITIVE[::-1], [0.0], _POSITIVE])
BINS = len(EDGES) + 1


def bin_of(log_ratio: Array) -> npt.NDArray[np.intp]:
    """Bin of each log-likelihood ratio.  ValueError for NaN, which has no place in an order."""
    if np.any(np.isnan(log_ratio)):
        raise ValueError("a log-likelihood ratio must be a number or +-inf, got nan")
    return np.searchsorted(EDGES, log_ratio, side="left")


def bin_counts(log_ratio: Array) -> npt.NDArray[np.int64]:
    """How many of the ratios fall into each bin, shape (BINS,)."""
    return np.bincount(bin_of(log_ratio), minlength=BINS).astype(np.int64)
