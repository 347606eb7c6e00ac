"""Counting queries of synthetic tables: rows that satisfy conditions, and rows that resemble the target record.

See `dpaudit.outputs.queries` for the queries.  Queries that were chosen among many seem better than they are.  So
dpaudit calibrates the scores on outputs that did not influence the choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit_attacks.ratios import Labels, label_ratios, shrunken_ratios

_MAX_BINS = 8  # maximum number of bins of one query
_MAX_CHOSEN = 4  # maximum number of queries in a score


@dataclass(frozen=True, slots=True)
class TableQueries:
    """Likelihood ratios of the counts of the few queries that predict the dataset best."""

    name: ClassVar[str] = "table_queries"
    sees: ClassVar[str] = "queries"

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether the outputs contain tables on which the answer to some query varies."""
        rows = np.concatenate([outputs0, outputs1])
        return bool(rows.size) and bool(np.any((rows != rows[0]) & ~(np.isnan(rows) & np.isnan(rows[0]))))

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Fit to answers to k queries, (n, k); return a function from such arrays to scores."""
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
