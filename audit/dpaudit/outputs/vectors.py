"""Computes the parts of sequences of numbers: single entries, means of pieces, and order-independent summaries."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpaudit.numerics.arrays import AnyArray
from dpaudit.outputs.named import Parts

ENTRIES = 64  # maximum number of individually read entries, and number of pieces of a longer sequence
_HUGE = 1e300  # upper limit of absolute values in summaries, so that sums do not overflow


def vector(parts: Parts, name: str, entries: AnyArray) -> None:
    """Add the parts of an ordered sequence of numbers."""
    if len(entries) <= ENTRIES:
        for index, entry in enumerate(entries.tolist()):
            parts.numbers[f"{name}[{index}]"] = entry
    else:  # the mean of a piece detects a large change of a single entry
        cuts = np.linspace(0, len(entries), ENTRIES + 1).astype(int)
        with np.errstate(all="ignore"):
            means = np.add.reduceat(entries.astype(np.float64), cuts[:-1]) / np.diff(cuts)
        for index, mean in enumerate(means.tolist()):
            parts.numbers[f"mean of {name}[{cuts[index]}:{cuts[index + 1]}]"] = mean
    summary(parts, name, entries)


def summary(parts: Parts, name: str, entries: AnyArray | list[float]) -> None:
    """Add the parts of a sequence of numbers that do not depend on the order of the numbers."""
    if len(entries) <= ENTRIES:
        _short_summary(parts, name, entries if isinstance(entries, list) else entries.tolist())
        return
    values = np.ascontiguousarray(entries, dtype=np.float64)
    known = np.isfinite(values)
    finite = values if known.all() else values[known]
    parts.counts[f"number of entries of {name} that are not finite"] = len(values) - len(finite)
    parts.counts[f"number of zeros in {name}"] = float(np.count_nonzero(values == 0))
    if len(finite):
        with np.errstate(over="ignore"):
            parts.numbers[f"sum of {name}"] = float(finite.sum())
            parts.numbers[f"norm of {name}"] = float(np.sqrt(np.einsum("i,i", finite, finite)))
        parts.numbers[f"least of {name}"], parts.numbers[f"largest of {name}"] = (
            float(finite.min()),
            float(finite.max()),
        )


def _short_summary(parts: Parts, name: str, entries: list[float]) -> None:
    """Add the same parts as `summary` for a short list, without creating a numpy array."""
    finite = [float(entry) for entry in entries if math.isfinite(entry)]
    parts.counts[f"number of entries of {name} that are not finite"] = len(entries) - len(finite)
    parts.counts[f"number of zeros in {name}"] = finite.count(0.0)
    if finite:
        parts.numbers[f"sum of {name}"] = sum(finite)
        parts.numbers[f"norm of {name}"] = math.hypot(*finite)
        parts.numbers[f"least of {name}"], parts.numbers[f"largest of {name}"] = min(finite), max(finite)


def floats(entries: Iterable[object]) -> list[float]:
    """Return the entries that are numbers with an absolute value below 1e300, converted to floats."""
    kinds = (int, float, np.integer, np.floating)
    return [float(x) for x in entries if isinstance(x, kinds) and -_HUGE < x < _HUGE]


def bag(parts: Parts, name: str, entries: AnyArray) -> None:
    """Add the parts of an unordered collection of numbers, such as a column of a data frame."""
    known = np.sort(entries[~np.isnan(entries)])
    parts.counts[f"missing values of {name}"] = len(entries) - len(known)
    summary(parts, name, known)
    if len(known):
        parts.numbers[f"mean of {name}"] = float(known.mean())
        for quantile in (25, 50, 75):
            parts.numbers[f"{quantile} % quantile of {name}"] = float(known[(len(known) - 1) * quantile // 100])
        parts.counts[f"distinct values of {name}"] = float(1 + np.count_nonzero(np.diff(known)))
