"""Finds the row in which two neighbouring tables differ, so that attacks can look for traces of this row."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from dpaudit.pairs.pair import Pair, without_shared_ends
from dpaudit.values import Foreign
from dpaudit.values.content import key

Row = Mapping[str, Any]

_MAX_ROWS = 50_000  # maximum number of rows in a comparison, which takes microseconds per row
_MAX_COLUMNS = 1_000


def target_rows(pair: Pair) -> tuple[Row | None, Row | None]:
    """Return the row that only d0 of a pair has, and the row that only d1 has, regardless of the order of rows.

    A dataset is a table if it is a list of dicts, a dict of columns of equal length, a data frame, or a structured
    array.
    """
    try:
        lists = isinstance(pair.d0, list) and isinstance(pair.d1, list)
        d0, d1 = without_shared_ends(pair.d0, pair.d1) if lists else (pair.d0, pair.d1)
        rows0, rows1 = _rows(d0), _rows(d1)
        if rows0 is None or rows1 is None:
            return None, None
        only0, only1 = _unshared(rows0, rows1), _unshared(rows1, rows0)
    except Exception:  # a comparison calls methods of the datasets, which may raise any exception
        return None, None
    if max(len(only0), len(only1)) > 1:
        return None, None
    return next(iter(only0), None), next(iter(only1), None)


def _rows(dataset: Foreign) -> list[Row] | None:
    """Return the rows of a table; None if the dataset is no table or is too large."""
    if isinstance(dataset, list | tuple):
        rows = len(dataset) <= _MAX_ROWS and all(type(row) is dict for row in dataset)
        return [{str(title): entry for title, entry in row.items()} for row in dataset] if rows else None
    columns: dict[str, list[Any]] | None = None
    if isinstance(dataset, np.ndarray):
        names = dataset.dtype.names
        columns = {name: dataset[name].tolist() for name in names} if names and dataset.ndim == 1 else None
    elif isinstance(dataset, dict):
        flat = all(isinstance(entries, list | tuple | np.ndarray) for entries in dataset.values())
        columns = {str(title): list(entries) for title, entries in dataset.items()} if flat and dataset else None
    elif hasattr(dataset, "columns") and hasattr(dataset, "shape") and len(dataset) <= _MAX_ROWS:
        columns = {str(title): list(dataset[title]) for title in dataset.columns}
    if columns is None or len(columns) > _MAX_COLUMNS:
        return None
    lengths = set(map(len, columns.values()))
    if len(lengths) != 1 or max(lengths) > _MAX_ROWS:
        return None
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _unshared(rows: list[Row], others: list[Row]) -> list[Row]:
    """Return the rows that occur more often in the first list, each as often as the difference."""
    left: dict[Hashable, int] = {}
    for row in others:
        name = key(sorted(row.items()))
        left[name] = left.get(name, 0) + 1
    found = []
    for row in rows:
        name = key(sorted(row.items()))
        left[name] = left.get(name, 0) - 1
        if left[name] < 0:
            found.append(row)
    return found
