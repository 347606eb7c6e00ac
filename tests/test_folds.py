"""Out-of-fold scores: no row is scored by a model that was fitted to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpaudit.numerics.arrays import AnyArray, Array
from dpaudit.numerics.folds import FOLDS, out_of_fold


@pytest.mark.parametrize(("n0", "n1"), [(7, 10), (1, 1), (3, 2), (0, 4)])
def test_no_row_is_scored_by_what_was_fitted_to_it(n0: int, n1: int) -> None:
    rows0, rows1 = np.arange(n0), 100 + np.arange(n1)
    fitted: list[set[int]] = []

    def fit(rest0: AnyArray, rest1: AnyArray) -> Callable[[AnyArray], Array]:
        known = {*rest0.tolist(), *rest1.tolist()}
        fitted.append(known)

        def scorer(rows: AnyArray) -> Array:
            assert not known & {*rows.tolist()}
            return np.column_stack([rows, -rows]).astype(np.float64)

        return scorer

    held0, held1 = out_of_fold(fit, rows0, rows1)
    assert held0.tolist() == [[x, -x] for x in rows0]
    assert held1.tolist() == [[x, -x] for x in rows1]
    assert len(fitted) == FOLDS
    for row in (*rows0.tolist(), *rows1.tolist()):
        assert sum(row in known for known in fitted) == FOLDS - 1


def test_lists_are_rows_as_well() -> None:
    def fit(rest0: list[str], rest1: list[str]) -> Callable[[list[str]], Array]:
        assert isinstance(rest0, list)
        return lambda rows: np.array([len(row) for row in rows], dtype=np.float64)

    held0, held1 = out_of_fold(fit, ["a", "bb", "ccc", "dddd"], ["", "e"])
    assert held0.tolist() == [1, 2, 3, 4]
    assert held1.tolist() == [0, 1]
