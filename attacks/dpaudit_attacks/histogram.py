"""Likelihood ratios from frequencies: of each value, if values are few, of the bins of a histogram, or of queries.

Bins lie between quantiles, and each value that recurs has its own, which suits noise with steps, gaps and atoms.  The
number of bins grows like the cube root of the number of outputs (Freedman & Diaconis 1981).  Counting queries of
synthetic tables were chosen among many and seem better than they are, so dpaudit calibrates their scores on other
outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics import Array
from dpaudit_attacks.ratios import Labels, label_ratios, located, shrunken_ratios

_ATOM = 0.02  # share of the outputs above which a value gets a separate bin


@dataclass(frozen=True, slots=True)
class Histogram:
    """Likelihood ratios of bins; for several numbers, a weighted sum of the log-likelihood ratios."""

    name: ClassVar[str] = "histogram"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    from_trials: ClassVar[int] = 100

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return bool(outputs0.shape[1] <= 16)

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
        # with fewer than four outputs of each value on average, ratios are mostly noise
        return len(set(_rows(outputs))) <= min(4096, len(outputs) // 4)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        if outputs0.shape[1] == 1:

            def bits(outputs: Array) -> Labels:
                return np.ascontiguousarray(outputs[:, 0]).view(np.int64)

            known = np.unique(np.concatenate([bits(outputs0), bits(outputs1)]))
            places0, places1 = (located(known, bits(side))[:, None] for side in (outputs0, outputs1))
            ratio = label_ratios(places0, places1, [len(known)])
            return lambda outputs: ratio(located(known, bits(outputs))[:, None])
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


_BINS = 8  # maximum number of bins of one query


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
        edges = []  # of each query: cuts between different answers; the last cut separates missing answers
        for column in rows.T:
            known = np.sort(column[~np.isnan(column)])
            distinct = np.unique(known)
            if len(distinct) > _BINS:
                shares = np.linspace(0, 1, _BINS + 1)[:-1]
                distinct = np.unique(known[((len(known) - 1) * shares).astype(np.intp)])
            edges.append(np.append(distinct[1:], np.inf))

        def bins(outputs: Array, columns: list[int]) -> Labels:
            return np.column_stack([np.searchsorted(edges[j], outputs[:, j], side="right") for j in columns])

        gains = []  # reduction of the log loss by the ratios of each query, after a penalty for each bin
        for j, cuts in enumerate(edges):
            sides = (bins(outputs, [j])[:, 0] for outputs in (outputs0, outputs1))
            counts0, counts1 = (np.bincount(side, minlength=len(cuts) + 2).astype(np.float64) for side in sides)
            ratios = shrunken_ratios(counts0, counts1)
            loss = counts0 @ np.logaddexp(0.0, ratios) + counts1 @ np.logaddexp(0.0, -ratios)
            used = np.count_nonzero(counts0 + counts1)
            gains.append(float(len(rows) * np.log(2) - loss - (used - 1) / 2))
        chosen = [int(j) for j in np.argsort(-np.array(gains), kind="stable")[:4] if gains[j] > 0]
        if not chosen:
            return lambda outputs: np.zeros(len(outputs))
        sizes = [len(edges[j]) + 2 for j in chosen]
        scorer = label_ratios(bins(outputs0, chosen), bins(outputs1, chosen), sizes)
        return lambda outputs: scorer(bins(outputs, chosen))
