"""Intervals of sorted outputs, which are events such as "the first answer above the threshold is after the fifth".

Rows are sorted lexicographically, so an interval can be all sequences with one prefix, or a range of what follows it.
The ratio is an average over all partitions into intervals, weighted by their posterior probabilities (Fearnhead 2006,
"Exact and efficient Bayesian inference for multiple changepoint problems", section 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array
from dpaudit_attacks.ratios import Labels, averaged_ratios, stacked

Words = npt.NDArray[np.bytes_]


@dataclass(frozen=True, slots=True)
class OrderedEvents:
    """Likelihood ratios of intervals of rows, sorted from both ends and by the number of values above 0."""

    name: ClassVar[str] = "ordered_events"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    from_trials: ClassVar[int] = 200

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return bool(2 <= outputs0.shape[1] <= 32)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        edges = [_edges(np.concatenate([order(outputs0), order(outputs1)])) for order in _ORDERS]

        def cells(outputs: Array) -> Labels:
            sorted_in = zip(_ORDERS, edges, strict=True)
            return np.column_stack([np.searchsorted(edge, order(outputs), side="right") for order, edge in sorted_in])

        sizes = [len(edge) + 1 for edge in edges]

        def ratios(first: Labels, second: Labels) -> list[Array]:
            return [
                averaged_ratios(*(np.bincount(side[:, j], minlength=size) for side in (first, second)))
                for j, size in enumerate(sizes)
            ]

        scorer = stacked(ratios, cells(outputs0), cells(outputs1))
        return lambda outputs: scorer(cells(outputs))


def _edges(words: Words) -> Words:
    """Return the words at which cells begin: every word if words are few, otherwise quantiles."""
    # the number of cells limits the time of a fit
    most = int(np.clip(4 * len(words) ** (1 / 3), 16, 256))
    ordered = np.sort(words)
    distinct = ordered[np.flatnonzero(ordered[1:] != ordered[:-1]) + 1]
    places = np.linspace(0, len(ordered) - 1, most + 1).astype(np.intp)[1:-1]
    return distinct if len(distinct) < most else np.unique(ordered[places])


def _words(outputs: Array) -> Words:
    """Return rows (n, d) as words (n,) that sort like the rows, by the first column first; NaN comes first."""
    values = np.where(np.isnan(outputs), -np.inf, outputs + 0.0)  # adding 0 turns -0 into 0
    bits = np.ascontiguousarray(values).view(np.uint64)
    ordered = np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))
    return np.ascontiguousarray(ordered.astype(">u8")).view(f"S{8 * outputs.shape[1]}").reshape(-1)


_ORDERS: tuple[Callable[[Array], Words], ...] = (
    _words,
    lambda outputs: _words(outputs[:, ::-1]),
    lambda outputs: _words((outputs > 0).sum(axis=1, keepdims=True).astype(np.float64)),
)
