"""Likelihood ratios from frequencies: of each value, if values are few, of the bins of a histogram, or of queries.

The bins of each number lie between quantiles, and each value that recurs has a separate bin.  The histogram suits noise
with steps, gaps and atoms, such as clamped or truncated outputs.  The number of bins grows like the cube root of the
number of outputs (Freedman & Diaconis 1981).

Counting queries of synthetic tables (`dpaudit.outputs.queries`) count rows that satisfy conditions, or that resemble
the target record.  Queries that were chosen among many seem better than they are, so dpaudit calibrates their scores on
outputs that did not influence the choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics import Array
from dpaudit_attacks.ratios import Labels, label_ratios, located, shrunken_ratios

_MAX_COLUMNS = 16  # maximum number of columns of the outputs
_ATOM = 0.02  # share of the outputs above which a value gets a separate bin


@dataclass(frozen=True, slots=True)
class Histogram:
    """Likelihood ratios of bins; for several numbers, a weighted sum of the log-likelihood ratios."""

    name: ClassVar[str] = "histogram"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    from_trials: ClassVar[int] = 100

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return bool(outputs0.shape[1] <= _MAX_COLUMNS)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        binnings = [_binning(column) for column in np.concatenate([outputs0, outputs1]).T]

        def labels(outputs: Array) -> Labels:
            return np.column_stack([place(column) for (place, _), column in zip(binnings, outputs.T, strict=True)])

        ratios = label_ratios(labels(outputs0), labels(outputs1), [size for _, size in binnings])
        return lambda outputs: ratios(labels(outputs))


def _binning(column: Array) -> tuple[Callable[[Array], Labels], int]:
    """Return the function from numbers to their bins, and the number of bins, for a column (n,)."""
    values = np.sort(column[~np.isnan(column)])
    bins = max(4, round(1.5 * len(column) ** (1 / 3)))
    edges = np.unique(values[np.linspace(0, len(values) - 1, bins + 1).astype(int)[1:-1]]) if len(values) else values
    distinct, times = np.unique(values, return_counts=True)
    atoms = distinct[times > max(3, _ATOM * len(column))][: 4 * bins]

    def place(numbers: Array) -> Labels:
        found = np.searchsorted(edges, numbers, side="left")  # NaN comes last; the next line gives it a separate bin
        found = np.where(np.isnan(numbers), len(edges) + 1, found)
        if len(atoms):
            at = np.minimum(np.searchsorted(atoms, numbers), len(atoms) - 1)
            found = np.where(atoms[at] == numbers, len(edges) + 2 + at, found)
        return found.astype(np.intp)

    return place, len(edges) + 2 + len(atoms)


_MAX_VALUES = 4096  # maximum number of different outputs
_MIN_MEAN_OCCURRENCES = 4  # minimum mean number of outputs with each value; with fewer, ratios are mostly noise


@dataclass(frozen=True, slots=True)
class PlugInRatio:
    """The optimal attack on discrete outputs if every value has occurred often."""

    name: ClassVar[str] = "plug_in_ratio"
    former_names: ClassVar[tuple[str, ...]] = ("events",)
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether the outputs take few values, and each value often on average."""
        outputs = np.concatenate([outputs0, outputs1])
        if len(set(_rows(outputs[:: max(1, len(outputs) // 200)]))) > 150:
            return False  # counting the values of all outputs would be slow and have the same result
        return len(set(_rows(outputs))) <= min(_MAX_VALUES, len(outputs) // _MIN_MEAN_OCCURRENCES)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        if outputs0.shape[1] == 1:
            known = np.unique(np.concatenate([_bits(outputs0), _bits(outputs1)]))
            places0, places1 = (located(known, _bits(side))[:, None] for side in (outputs0, outputs1))
            ratio = label_ratios(places0, places1, [len(known)])
            return lambda outputs: ratio(located(known, _bits(outputs))[:, None])
        values = {row: index for index, row in enumerate(dict.fromkeys(_rows(np.concatenate([outputs0, outputs1]))))}

        def labels(outputs: Array) -> Labels:
            return np.array([values.get(row, -1) for row in _rows(outputs)], dtype=np.intp).reshape(-1, 1)

        ratios = label_ratios(labels(outputs0), labels(outputs1), [len(values)])
        return lambda outputs: ratios(labels(outputs))

    def fit_second_stage(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        return self.fit(outputs0, outputs1, rng)


def _rows(outputs: Array) -> list[bytes]:
    """Return rows as keys.  Rows with equal bits have equal keys, so NaN equals NaN, but -0.0 is not 0.0."""
    return [row.tobytes() for row in np.ascontiguousarray(outputs)]


def _bits(outputs: Array) -> Labels:
    return np.ascontiguousarray(outputs[:, 0]).view(np.int64)


_MAX_BINS = 8  # maximum number of bins of one query
_MAX_CHOSEN = 4  # maximum number of queries in a score


@dataclass(frozen=True, slots=True)
class TableQueries:
    """Likelihood ratios of the counts of the few queries that predict the dataset best."""

    name: ClassVar[str] = "table_queries"
    sees: ClassVar[str] = "queries"

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        rows = np.concatenate([outputs0, outputs1])
        return bool(rows.size) and bool(np.any((rows != rows[0]) & ~(np.isnan(rows) & np.isnan(rows[0]))))

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        rows = np.concatenate([outputs0, outputs1])
        edges = [_edges(column) for column in rows.T]

        def bins(outputs: Array, chosen: list[int]) -> Labels:
            """Return the bin of each answer, (n, chosen); a missing answer is in the last bin."""
            return np.column_stack([np.searchsorted(edges[j], outputs[:, j], side="right") for j in chosen])

        every = list(range(rows.shape[1]))
        if not every:
            return lambda outputs: np.zeros(len(outputs))
        labels0, labels1 = bins(outputs0, every), bins(outputs1, every)
        gains = np.array([_gain(labels0[:, j], labels1[:, j], len(edges[j]) + 2) for j in every])
        chosen = [int(j) for j in np.argsort(-gains, kind="stable")[:_MAX_CHOSEN] if gains[j] > 0]
        if not chosen:
            return lambda outputs: np.zeros(len(outputs))
        sizes = [len(edges[j]) + 2 for j in chosen]
        scorer = label_ratios(labels0[:, chosen], labels1[:, chosen], sizes)
        return lambda outputs: scorer(bins(outputs, chosen))


def _edges(column: Array) -> Array:
    """Return cuts between different answers, at most `_MAX_BINS` - 1; the last cut separates missing answers."""
    known = np.sort(column[~np.isnan(column)])
    distinct = np.unique(known)
    if len(distinct) > _MAX_BINS:
        distinct = np.unique(known[((len(known) - 1) * np.linspace(0, 1, _MAX_BINS + 1)[:-1]).astype(np.intp)])
    return np.append(distinct[1:], np.inf)


def _gain(labels0: Labels, labels1: Labels, size: int) -> float:
    """Return the reduction of the log loss by the ratios of one query, after a penalty for each bin."""
    counts0, counts1 = (np.bincount(side, minlength=size).astype(np.float64) for side in (labels0, labels1))
    ratios = shrunken_ratios(counts0, counts1)
    loss = counts0 @ np.logaddexp(0.0, ratios) + counts1 @ np.logaddexp(0.0, -ratios)
    used = np.count_nonzero(counts0 + counts1)
    return float((len(labels0) + len(labels1)) * np.log(2) - loss - (used - 1) / 2)
