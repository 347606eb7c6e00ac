"""Reads tables of any library as columns of numbers and of categories.

A table is a data frame, a structured array, a list of rows that are dicts, or a dict of columns of equal length.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import AnyArray, Array
from dpaudit.outputs.entries import column, is_missing, label_of
from dpaudit.values import Feature, Label

MAX_COLUMNS = 64
"""Maximum number of columns that are read; further columns only count."""

MAX_ROWS = 2**17
"""Maximum number of rows in a `Table`.

Of a longer output, a `Table` has evenly spaced rows, because the rows may be sorted.  All rows are counted column by
column.
"""

_PLAIN = ({str, type(None)}, {int}, {bool}, {bytes})  # sets of types whose values differ if their labels differ
_NUMERIC = "biufmM"

Codes = npt.NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The entries of one column, and its distinct values."""

    kind: str  # name of the type of an array of numbers or times, otherwise "labels"
    numbers: Array | None  # (rows,), NaN for missing entries and microseconds for times; None for labels
    codes: npt.NDArray[np.intp]  # (rows,), index of each entry among the distinct values
    values: list[object]  # distinct values
    counts: npt.NDArray[np.intp]  # number of occurrences of each distinct value

    def entry(self, row: int) -> object:
        """Return the entry of a row."""
        return self.values[self.codes[row]]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows of a table in a compact form, from which counting queries are answered."""

    rows: int
    numbers: Mapping[str, AnyArray]  # column -> numbers, NaN for missing entries
    codes: Mapping[str, Codes]  # column -> index of the category of each row
    categories: Mapping[str, Mapping[str, int]]  # column -> category as a label -> its index
    times: frozenset[str]  # columns whose numbers are microseconds since 1970

    @classmethod
    def of(cls, columns: Mapping[str, Column]) -> Table:
        """Return the compact form of columns of equal length."""
        rows = max((len(entries.codes) for entries in columns.values()), default=0)
        labelled = {name: entries for name, entries in columns.items() if entries.numbers is None}
        return cls(
            rows=min(rows, MAX_ROWS),
            numbers={
                name: _small(some_rows(entries.numbers))
                for name, entries in columns.items()
                if entries.numbers is not None
            },
            codes={name: _small_codes(entries) for name, entries in labelled.items()},
            categories={
                name: {label_of(value): code for code, value in enumerate(entries.values)}
                for name, entries in labelled.items()
            },
            times=frozenset(name for name, entries in columns.items() if entries.kind.startswith("datetime64")),
        )


def read_column(entries: Any) -> Column:
    """Read the entries of a column."""
    array = np.asarray(_as_array(entries))
    if array.dtype.kind == "O" and set(map(type, listed := array.tolist())) <= _PLAIN[0]:
        return _labels(listed)
    if array.dtype.kind == "O":
        array = column(array)
    if array.dtype.kind == "O":
        array = _times(array)
    if array.dtype.kind not in _NUMERIC:
        return _labels(array.tolist())
    kind = array.dtype.name
    if array.dtype.kind in "mM":
        array = array.astype(f"{array.dtype.kind}8[us]")
    values, codes, counts = np.unique(array, return_inverse=True, return_counts=True)
    found = array.astype(np.float64)
    if array.dtype.kind in "mM":
        found[np.isnat(array)] = np.nan
    return Column(kind, found, codes.reshape(-1), values.tolist(), counts)


def frame_columns(frame: Any) -> dict[str, Column]:
    """Return the first columns of a data frame by title.  A number distinguishes columns with the same title."""
    titles = list(getattr(frame, "column_names", None) or frame.columns)[:MAX_COLUMNS]
    if hasattr(frame, "iloc"):
        entries = [frame.iloc[:, place] for place in range(len(titles))]
    elif hasattr(frame, "get_columns"):
        entries = frame.get_columns()[:MAX_COLUMNS]
    else:
        entries = [frame[title] for title in titles]
    return _titled((str(title), read_column(found)) for title, found in zip(titles, entries, strict=True))


def array_columns(array: AnyArray) -> dict[str, Column]:
    """Return the first columns of a structured array."""
    names = (array.dtype.names or ())[:MAX_COLUMNS]
    return {name: read_column(array[name]) for name in names}


def row_columns(rows: Sequence[Mapping[str, object]]) -> dict[str, Column]:
    """Return the columns of a list of rows.  A missing key is a missing entry."""
    titles = list(dict.fromkeys(title for row in rows for title in row))[:MAX_COLUMNS]
    return {title: read_column([row.get(title) for row in rows]) for title in titles}


def are_rows(entries: Sequence[object]) -> TypeGuard[Sequence[Mapping[str, object]]]:
    """Return whether all entries of a sequence are dicts whose keys are texts."""
    return bool(entries) and all(type(row) is dict and all(type(key) is str for key in row) for row in entries)


def mapping_columns(mapping: Mapping[Any, object]) -> dict[str, Column] | None:
    """Return the columns of a dict; None unless all values are flat sequences of one length above 0."""
    if not 0 < len(mapping) <= MAX_COLUMNS or not all(type(title) is str for title in mapping):
        return None
    if not all(_is_flat(entries) for entries in mapping.values()):
        return None
    lengths = {len(entries) for entries in mapping.values()}  # type: ignore[arg-type]
    if len(lengths) != 1 or not lengths.pop():
        return None
    return {title: read_column(entries) for title, entries in mapping.items()}


def _is_flat(entries: Any) -> bool:
    return isinstance(entries, list | tuple) or (hasattr(entries, "__array__") and len(np.shape(entries)) == 1)


def _as_array(entries: Any) -> object:
    """Return a list as an array of one type of numbers, or else as an array of objects; keep other columns."""
    if isinstance(entries, np.ndarray):
        return _boxed(entries.tolist()) if entries.ndim > 1 or entries.dtype.names else entries
    if not isinstance(entries, list | tuple):
        nested = hasattr(entries, "to_list") and np.asarray(entries).ndim > 1  # a series whose entries are structs
        return _boxed(entries.to_list()) if nested else entries
    if set(map(type, entries)) in ({float}, {bool}, {int}):
        array = np.array(entries)
        return array if array.dtype.kind in _NUMERIC else _boxed(entries)
    return _boxed(entries)


def _boxed(entries: Sequence[object]) -> AnyArray:
    return np.fromiter(entries, dtype=object, count=len(entries))


def _times(array: AnyArray) -> AnyArray:
    """Return an array of objects as an array of times or of floats, if all entries are dates, or exact numbers."""
    known = [entry for entry in array.tolist() if not is_missing(entry)]
    if not known:
        return array
    if all(isinstance(entry, datetime.date) for entry in known):
        return np.array([_microseconds(entry) for entry in array.tolist()], dtype="M8[us]")
    exact = (decimal.Decimal, fractions.Fraction)
    if any(isinstance(entry, exact) for entry in known) and all(
        isinstance(entry, (*exact, numbers.Integral, float)) for entry in known
    ):
        return np.array([np.nan if is_missing(entry) else float(entry) for entry in array.tolist()])
    return array


def _microseconds(entry: Any) -> np.datetime64:
    if is_missing(entry) or entry != entry:  # the missing time of pandas differs from itself
        return np.datetime64("NaT", "us")
    if isinstance(entry, datetime.datetime) and entry.tzinfo is not None:
        entry = entry.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(entry, "us")


def _labels(entries: list[object]) -> Column:
    types = set(map(type, entries))
    plain = any(types <= kinds for kinds in _PLAIN)
    keys: Sequence[object] = entries if plain else list(map(label_of, entries))
    index = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    codes = np.fromiter(map(index.__getitem__, keys), dtype=np.intp, count=len(keys))
    values: list[object] = list(index)
    if keys is not entries:  # the value behind each label, which need not be hashable
        first = {code: place for place, code in reversed(list(enumerate(codes.tolist())))}
        values = [entries[first[code]] for code in range(len(index))]
    return Column("labels", None, codes, values, np.bincount(codes, minlength=len(index)))


def _titled(columns: Any) -> dict[str, Column]:
    found: dict[str, Column] = {}
    for title, entries in columns:
        name, number = title, 1
        while name in found:
            number += 1
            name = f"{title} ({number})"
        found[name] = entries
    return found


def some_rows(entries: AnyArray, most: int = MAX_ROWS) -> AnyArray:
    """Return the entries of a column in all rows, or in `most` evenly spaced rows."""
    if len(entries) <= most:
        return entries
    return entries[np.linspace(0, len(entries) - 1, most).astype(np.intp)]


def _small(found: Array) -> AnyArray:
    """Return numbers in the smallest type that represents them exactly."""
    for kind in (np.int8, np.int16, np.int32):
        limits = np.iinfo(kind)
        if len(found) and found.min() >= limits.min and found.max() <= limits.max:  # false if a number is missing
            small = found.astype(kind)
            return small if np.array_equal(small, found) else found
    return found


def _small_codes(entries: Column) -> Codes:
    size = len(entries.values)
    return some_rows(entries.codes).astype(np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32)


@dataclasses.dataclass(slots=True)
class Parts:
    """The parts of one output.  Reports display these features in words."""

    numbers: dict[Feature, int | float] = dataclasses.field(default_factory=dict)  # a missing number is encoded as NaN
    labels: dict[Feature, Label] = dataclasses.field(default_factory=dict)
    counts: dict[Feature, float] = dataclasses.field(default_factory=dict)  # the count of a missing name is 0
    # tables among the parts, from which counting queries are answered
    tables: dict[Feature, Table] = dataclasses.field(default_factory=dict, compare=False)
