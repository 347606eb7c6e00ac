"""The fixed bins of the log-likelihood ratio in which all evidence is counted.

Every attack's score is turned into an estimate l of log q/p before it is counted.  Bin i holds
EDGES[i - 1] < l <= EDGES[i].  The edges are the same for every audit, so that evidence can be added up
and read again later: zero, and steps of 8 % from 0.001 to 60 nats on both sides.  That resolves claims from
mu = 0.01 to mu = 10; l = +-inf falls into the end bins.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array

_POSITIVE = 0.001 * 1.08 ** np.arange(144)
EDGES: Array = np.concatenate([-_POSITIVE[::-1], [0.0], _POSITIVE])
BINS = len(EDGES) + 1
CENTRES: Array = np.concatenate([EDGES[:1], (EDGES[:-1] + EDGES[1:]) / 2, EDGES[-1:]])  # of bins; the ends have none


def _first_bins() -> npt.NDArray[np.intp]:
    """For the first 16 bits of a double, the bin of the least number that has them.

    They leave four bits of the mantissa, so that such numbers are within 6.25 % of each other, or between 0 and the
    edge next to it: there is at most one edge among them, and a number is in that bin or in the next one.
    """
    patterns = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    patterns[2**15 :] |= np.uint64(2**48 - 1)  # negative numbers with larger mantissas are less
    least = patterns.view(np.float64)
    return np.searchsorted(EDGES, np.where(np.isnan(least), -np.inf, least))  # -inf shares its bits with NaN


_FIRST = _first_bins()
_NEXT = np.append(EDGES, np.inf)


def bin_of(log_ratio: Array) -> npt.NDArray[np.intp]:
    """Bin of each log-likelihood ratio.  ValueError for NaN, which has no place in an order."""
    if np.isnan(log_ratio).any():
        raise ValueError("a log-likelihood ratio must be a number or +-inf, got nan")
    values = np.ascontiguousarray(log_ratio, dtype=np.float64)
    first: npt.NDArray[np.intp] = _FIRST[(values.view(np.int64) >> 48) & 0xFFFF]
    return first + (values > _NEXT[first])  # as np.searchsorted(EDGES, values), three times as fast


def bin_counts(log_ratio: Array) -> npt.NDArray[np.int64]:
    """How many of the ratios fall into each bin, shape (BINS,)."""
    return np.bincount(bin_of(log_ratio), minlength=BINS).astype(np.int64, copy=False)


def rows_of_bin_counts(log_ratios: Array) -> npt.NDArray[np.int64]:
    """The same of each row of a matrix, shape (rows, BINS)."""
    rows = len(log_ratios)
    bins = bin_of(log_ratios) + BINS * np.arange(rows)[:, None]
    counts = np.bincount(bins.reshape(-1), minlength=rows * BINS).astype(np.int64, copy=False)
    return counts.reshape(rows, BINS)
