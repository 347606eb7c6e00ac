"""Fixed histogram bins for estimates of the log-likelihood ratio.

Every score of an attack is converted to an estimate l of the log-likelihood ratio log(q / p) before it is counted, and
l is a multiple of 10^-9.  Bin i contains all l with EDGES[i - 1] < l <= EDGES[i].  The cuts between the bins lie half a
step above the last multiple of 10^-9 in a bin, so that an error of rounding moves no l into another bin.

The edges are symmetric about 0, which is an edge, and the positive edges grow by 8 % from each edge to the next, from
0.001 to 60 nats.  The bins are fine enough for claims from 0.01-GDP to 10-GDP.  The first bin also contains l = -inf,
and the last bin also contains l = +inf.  The edges are the same for every audit, so the stored counts of several audits
can be added.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array

_POSITIVE = 0.001 * 1.08 ** np.arange(144)
EDGES: Array = np.concatenate([-_POSITIVE[::-1], [0.0], _POSITIVE])
BINS = len(EDGES) + 1
# The centre of each bin.  The two outermost bins are unbounded, so their finite edges serve as centres.
CENTRES: Array = np.concatenate([EDGES[:1], (EDGES[:-1] + EDGES[1:]) / 2, EDGES[-1:]])

_STEP = 1e-9  # of scores
CUTS: Array = (np.floor(np.round(EDGES / _STEP, 3)) + 0.5) * _STEP
# Two doubles with the same first 16 bits differ by at most 6.25 %, or both lie beside 0, so at most one edge is between
# them: a double is in the bin of the smallest double with the same first 16 bits, or in the next bin.
_SMALLEST = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
_SMALLEST[2**15 :] |= np.uint64(2**48 - 1)  # a negative double falls as its mantissa grows
_FIRST = np.searchsorted(CUTS, np.nan_to_num(_SMALLEST.view(np.float64), nan=-np.inf, neginf=-np.inf, posinf=np.inf))
_NEXT = np.append(CUTS, np.inf)


def bin_of(log_ratio: Array) -> npt.NDArray[np.intp]:
    """Return the bin of each log-likelihood ratio."""
    if np.isnan(log_ratio).any():
        raise ValueError("a log-likelihood ratio must be a number or +-inf, got nan")
    values = np.ascontiguousarray(log_ratio, dtype=np.float64)
    first: npt.NDArray[np.intp] = _FIRST[(values.view(np.int64) >> 48) & 0xFFFF]
    return first + (values > _NEXT[first])  # same result as np.searchsorted(CUTS, values), but faster


def bin_counts(log_ratios: Array) -> npt.NDArray[np.int64]:
    """Count the log-likelihood ratios (..., n) of each row in each bin; shape (..., BINS)."""
    rows = np.atleast_2d(log_ratios)
    bins = bin_of(rows) + BINS * np.arange(len(rows))[:, None]
    counts = np.bincount(bins.reshape(-1), minlength=len(rows) * BINS).astype(np.int64, copy=False)
    return counts.reshape(*log_ratios.shape[:-1], BINS)
