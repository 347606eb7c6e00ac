"""Converts counts of scores in the bins of `inference.grid` between arrays (2, BINS) and the lists in result files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dpaudit.inference.grid import BINS
from dpaudit.values import Json

Counts = npt.NDArray[np.int64]

MAX_PAIRS = 10_000  # of an audit; each pair takes 9 kB of memory, but may take 8 bytes in a file
_MAX_COUNT = 2**53  # maximum number of outputs in one bin, so that sums over all bins fit into 64-bit integers


def sparse(sides: Counts) -> list[list[list[int]]]:
    """Convert counts of shape (2, BINS) to a list of [bin, count] for each dataset, without the empty bins."""
    return [[[int(i), int(side[i])] for i in np.flatnonzero(side)] for side in sides]


def is_whole(value: Json, most: int = _MAX_COUNT) -> bool:
    """Return whether a value is a whole number from 0 to a maximum."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def dense(sides: Sequence[Sequence[tuple[int, int]]]) -> Counts:
    """Convert lists that `sparse` returned to an array of counts with shape (2, BINS)."""
    counts = np.zeros((2, BINS), dtype=np.int64)
    for side, entries in zip(counts, sides, strict=True):
        for entry in entries:
            place, count = entry if isinstance(entry, list | tuple) and len(entry) == 2 else (None, None)
            if not (is_whole(place, BINS - 1) and is_whole(count)):
                raise ValueError(
                    f"evidence must consist of [bin, count] with bins 0 to {BINS - 1} and counts >= 0, got {entry!r}"
                )
            side[place] = count
    return counts


def check_trials(counts: Counts) -> None:
    """Raise ValueError unless there are equally many outputs of both datasets."""
    if counts[0].sum() != counts[1].sum():
        raise ValueError(f"evidence must count equally many outputs of d0 and d1, got {counts.sum(axis=1).tolist()}")


def check_bins(values: Mapping[str, Json]) -> None:
    """Raise ValueError unless the counts in a result file have BINS bins."""
    if values["bins"] != BINS:
        raise ValueError(f"evidence must be counted in {BINS} bins, got {values['bins']}")


def pair_counts_of(pairs: Json, *, coin_selected: bool) -> Counts:
    """Read the counts of all pairs; shape (pairs, 2, BINS)."""
    if (many := len(pairs)) > MAX_PAIRS:
        raise ValueError(f"evidence must count {MAX_PAIRS:,} pairs at most, got {many:,}")
    found = [dense(sides) for sides in pairs]
    if not coin_selected:
        for one in found:
            check_trials(one)
    return np.array(found, dtype=np.int64).reshape(-1, 2, BINS)


def peak_of(pairs: Json, counts: Counts, *, coin_selected: bool) -> Counts:
    """Read the counts at the interim analysis with the largest wealth."""
    peak = pair_counts_of(pairs, coin_selected=coin_selected)
    if peak.shape != counts.shape or np.any(peak > counts):
        raise ValueError("evidence must have no more counts at its peak than at its end")
    return peak


def lost_of(values: Mapping[str, Json], key: str, pairs: int) -> tuple[int, ...]:
    """Read the indices of lost pairs."""
    lost = tuple(values.get(key, ()))
    if not all(is_whole(i, pairs - 1) for i in lost):
        raise ValueError(f"evidence must name lost pairs among its {pairs} pairs, got {str(lost)[:100]}")
    return lost
