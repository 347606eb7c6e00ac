"""Counts of scores in the bins of `inference.grid`, as arrays (2, BINS) and in result files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.inference.grid import BINS

Counts = npt.NDArray[np.int64]

_MAX_COUNT = 2**53  # outputs in one bin: sums of bins stay within 64 bits


def sha256(counts: Counts) -> str:
    """Of the counts in C order, as little-endian 64-bit integers."""
    return hashlib.sha256(np.ascontiguousarray(counts).astype("<i8").tobytes()).hexdigest()


def sparse(sides: Counts) -> list[list[list[int]]]:
    """As [bin, count] of the bins that are not empty, for each side: most are empty."""
    return [[[int(i), int(side[i])] for i in np.flatnonzero(side)] for side in sides]


def _whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def dense(sides: Sequence[Sequence[tuple[int, int]]]) -> Counts:
    """The inverse of `sparse`.  ValueError for impossible counts."""
    counts = np.zeros((2, BINS), dtype=np.int64)
    for side, entries in zip(counts, sides, strict=True):
        for entry in entries:
            place, count = entry if isinstance(entry, list | tuple) and len(entry) == 2 else (None, None)
            if not (_whole(place, BINS - 1) and _whole(count, _MAX_COUNT)):
                raise ValueError(
                    f"evidence must be [bin, count] with bins 0 to {BINS - 1} and counts >= 0, got {entry!r}"
                )
            side[place] = count
    return counts


def check_trials(counts: Counts) -> None:
    """ValueError unless both sides hold as many outputs."""
    if counts[0].sum() != counts[1].sum():
        raise ValueError(f"evidence must have as many outputs of d0 as of d1, got {counts.sum(axis=1).tolist()}")


def check_bins(values: Mapping[str, Any]) -> None:
    """ValueError unless counts in a file are in as many bins as ours."""
    if values["bins"] != BINS:
        raise ValueError(f"evidence must be counted in {BINS} bins, got {values['bins']}")
