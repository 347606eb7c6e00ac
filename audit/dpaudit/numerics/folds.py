"""Cross-fitting: each row of a data set is scored by a model that was fitted without this row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np

from dpaudit.numerics.arrays import AnyArray, Array, Flags

FOLDS = 3  # number of folds of the cross-fitting; row i belongs to fold i % FOLDS

Rows = TypeVar("Rows", bound="AnyArray | Sequence[object]")


def in_fold(rows: int, fold: int) -> Flags:
    """Return a boolean mask of the rows that belong to a fold; shape (rows,)."""
    inside: Flags = np.arange(rows) % FOLDS == fold
    return inside


def chosen_rows(rows: Rows, chosen: Flags) -> Rows:
    """Return the rows of an array or list for which a boolean mask is true."""
    found = rows[chosen] if isinstance(rows, np.ndarray) else [rows[int(i)] for i in np.flatnonzero(chosen)]
    return cast(Rows, found)


def out_of_fold(fit: Callable[[Rows, Rows], Callable[[Rows], Array]], rows0: Rows, rows1: Rows) -> tuple[Array, Array]:
    """Score each row with a model that was fitted to the rows of the other folds; shapes (n0,) and (n1,), or with m.

    Stacked generalization trains its second stage on such scores (Wolpert 1992, "Stacked generalization").
    """
    held: list[Array] = []
    for fold in range(FOLDS):
        out = in_fold(len(rows0), fold), in_fold(len(rows1), fold)
        scorer = fit(chosen_rows(rows0, ~out[0]), chosen_rows(rows1, ~out[1]))
        found = [scorer(chosen_rows(rows, side)) for rows, side in zip((rows0, rows1), out, strict=True)]
        held = held or [np.empty((len(side), *scores.shape[1:])) for side, scores in zip(out, found, strict=True)]
        for scores, side, new in zip(held, out, found, strict=True):
            scores[side] = new
    return held[0], held[1]
