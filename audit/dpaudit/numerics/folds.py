"""Scores of rows by what was fitted without them: honest training data for a second stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array, Flags

FOLDS = 3  # every so many rows are one fold

Rows = TypeVar("Rows", bound="npt.NDArray[Any] | Sequence[Any]")


def in_fold(rows: int, fold: int) -> Flags:
    """Which rows belong to a fold, (rows,): every third one, from row `fold` on."""
    inside: Flags = np.arange(rows) % FOLDS == fold
    return inside


def chosen_rows(rows: Rows, chosen: Flags) -> Rows:
    """The rows, of an array (n, ...) or a list of n, for which a mask (n,) is true."""
    found = rows[chosen] if isinstance(rows, np.ndarray) else [rows[int(i)] for i in np.flatnonzero(chosen)]
    return cast(Rows, found)


def out_of_fold(fit: Callable[[Rows, Rows], Callable[[Rows], Array]], rows0: Rows, rows1: Rows) -> tuple[Array, Array]:
    """Score each row by what was fitted to the other folds (cross-fitting; stacking as of Wolpert 1992 rests on it).

    Args:
        fit: Rows of d0 and of d1 -> a scorer, which maps k rows to scores (k,) or (k, m).
        rows0: Rows of d0, (n0, ...) or a list of n0.
        rows1: Rows of d1.

    Returns:
        Scores of all rows of d0 and of d1, in their order, (n0,) and (n1,) or (n0, m) and (n1, m).
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
