"""Adds the parts of a table, regardless of the order of its rows: marginals, domains, and frequent rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array
from dpaudit.outputs.labels import label_of
from dpaudit.outputs.named import Parts
from dpaudit.outputs.tables import MAX_ROWS, Column, Table, some_rows
from dpaudit.outputs.vectors import ENTRIES, bag

_MAX_PAIRED = 6  # maximum number of columns of numbers whose products are averaged


def table(parts: Parts, name: str, columns: Mapping[str, Column]) -> None:
    """Add the parts of a table."""
    parts.tables[name] = Table.of(columns)
    numeric: dict[str, Array] = {}
    for title, entries in columns.items():
        parts.counts[f"column {title!r} in {name}"] = 1
        where = f"{name}[{title!r}]"
        parts.labels[f"type of {where}"] = entries.kind
        if entries.numbers is not None:
            numeric[where] = entries.numbers
            bag(parts, where, entries.numbers)
        for place in _frequent(entries.counts):
            parts.counts[f"number of {label_of(entries.values[place])} in {where}"] = float(entries.counts[place])
    _rows(parts, name, list(columns.values()))
    paired = list(numeric)[:_MAX_PAIRED]
    for i, first in enumerate(paired):
        for second in paired[:i]:
            product = numeric[first] * numeric[second]
            known = product[~np.isnan(product)]
            parts.numbers[f"mean of {second} times {first}"] = float(known.mean()) if len(known) else np.nan


def _rows(parts: Parts, name: str, columns: list[Column]) -> None:
    """Add the number of occurrences of each frequent row."""
    codes = np.zeros(min(MAX_ROWS, len(columns[0].codes) if columns else 0), dtype=np.intp)
    for entries in columns:  # the codes of distinct rows stay below the number of rows
        _, codes = np.unique(codes * len(entries.values) + some_rows(entries.codes), return_inverse=True)
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    parts.numbers[f"largest number of equal rows of {name}"] = int(counts.max()) if len(counts) else 0
    for place in _frequent(counts):
        row = tuple(entries.entry(int(first[place])) for entries in columns)
        parts.counts[f"number of rows {label_of(row)} in {name}"] = float(counts[place])


def _frequent(counts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the places of the values that are counted: all values if they are few, otherwise values that recur."""
    order = np.argsort(-counts, kind="stable")[:ENTRIES]
    return order if len(counts) <= ENTRIES else order[counts[order] > 1]
