"""The k nearest training outputs vote on the dataset that an output comes from (Cover & Hart 1967).

In a few dimensions, this attack detects shapes that no column shows alone, such as rings and clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics import Array
from dpaudit.outputs import Scale

_LEAF, _LARGE_LEAF = 16, 64  # maximum number of rows in a leaf; large leaves are faster if columns are many
_MANY_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class NearestNeighbours:
    """Share of d1 among the k nearest outputs; k is about twice the square root of the number of outputs."""

    name: ClassVar[str] = "knn"
    former_names: ClassVar[tuple[str, ...]] = ("neighbours",)
    sees: ClassVar[str] = "features"
    from_trials: ClassVar[int] = 400
    most_rows: ClassVar[int] = 3000

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        # with more columns, distances carry little information
        return bool(2 <= outputs0.shape[1] <= 10)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        from scipy.spatial import cKDTree

        scale = Scale.of(np.concatenate([outputs0, outputs1]))
        rows = scale(np.concatenate([outputs0, outputs1]))
        # leaves are small if equal distances may occur, whose order depends on them
        large = rows.shape[1] >= _MANY_COLUMNS and len(np.unique(rows[:, 0])) == len(rows)
        tree = cKDTree(rows, leafsize=_LARGE_LEAF if large else _LEAF)
        of_d1 = np.arange(tree.n) >= len(outputs0)
        k = min(tree.n, max(3, round(2 * tree.n**0.5)))

        def score(outputs: Array) -> Array:
            _, nearest = tree.query(scale(outputs), k=k)
            votes = of_d1[nearest.reshape(len(outputs), k)].sum(axis=1)
            return np.asarray(np.log((votes + 1) / (k - votes + 1)))

        return score
