"""Reads tables of any library, and adds the parts of tables, of sequences of numbers and of texts.

A table is a data frame, a structured array, a list of dicts, or a dict of columns of equal length; its parts do not
depend on the order of its rows.  A sequence has its entries, or means of its pieces, and summaries.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import math
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import AnyArray, Array
from dpaudit.outputs.entries import LISTED, TEXT, column, is_missing, label, label_of
from dpaudit.values import Feature, Label

MAX_COLUMNS = 64  # maximum number of columns that are read; further columns only count
MAX_ROWS = 2**17  # in a `Table`; evenly spaced in a longer output, because the rows may be sorted

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
        codes: dict[str, Codes] = {}
        for name, entries in labelled.items():
            size = len(entries.values)
            kind: type[Any] = np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32
            codes[name] = some_rows(entries.codes).astype(kind)
        return cls(
            rows=min(rows, MAX_ROWS),
            numbers={
                name: _small(some_rows(entries.numbers))
                for name, entries in columns.items()
                if entries.numbers is not None
            },
            codes=codes,
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
    columns: dict[str, Column] = {}
    for title, found in zip(map(str, titles), entries, strict=True):
        name, number = title, 1
        while name in columns:
            number += 1
            name = f"{title} ({number})"
        columns[name] = read_column(found)
    return columns


def are_rows(entries: Sequence[object]) -> TypeGuard[Sequence[Mapping[str, object]]]:
    """Return whether all entries of a sequence are dicts whose keys are texts."""
    return bool(entries) and all(type(row) is dict and all(type(key) is str for key in row) for row in entries)


def mapping_columns(mapping: Mapping[Any, object]) -> dict[str, Column] | None:
    """Return the columns of a dict; None unless all values are flat sequences of one length above 0."""
    if not 0 < len(mapping) <= MAX_COLUMNS or not all(type(title) is str for title in mapping):
        return None
    for entries in mapping.values():
        if not isinstance(entries, list | tuple) and not (hasattr(entries, "__array__") and np.ndim(entries) == 1):
            return None
    lengths = {len(entries) for entries in mapping.values()}  # type: ignore[arg-type]
    if len(lengths) != 1 or not lengths.pop():
        return None
    return {title: read_column(entries) for title, entries in mapping.items()}


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
        times = np.full(len(array), np.datetime64("NaT"), dtype="M8[us]")
        for place, entry in enumerate(array.tolist()):
            if is_missing(entry) or entry != entry:  # the missing time of pandas differs from itself
                continue
            if isinstance(entry, datetime.datetime) and entry.tzinfo is not None:
                entry = entry.astimezone(datetime.UTC).replace(tzinfo=None)
            times[place] = np.datetime64(entry, "us")
        return times
    exact = (decimal.Decimal, fractions.Fraction)
    if any(isinstance(entry, exact) for entry in known) and all(
        isinstance(entry, (*exact, numbers.Integral, float)) for entry in known
    ):
        return np.array([np.nan if is_missing(entry) else float(entry) for entry in array.tolist()])
    return array


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


@dataclasses.dataclass(slots=True)
class Parts:
    """The parts of one output.  Reports display these features in words."""

    numbers: dict[Feature, int | float] = dataclasses.field(default_factory=dict)  # a missing number is encoded as NaN
    labels: dict[Feature, Label] = dataclasses.field(default_factory=dict)
    counts: dict[Feature, float] = dataclasses.field(default_factory=dict)  # the count of a missing name is 0
    # tables among the parts, from which counting queries are answered
    tables: dict[Feature, Table] = dataclasses.field(default_factory=dict, compare=False)


ENTRIES = 64  # maximum number of individually read entries, and number of pieces of a longer sequence


def vector(parts: Parts, name: Feature, entries: AnyArray) -> None:
    """Add the parts of an ordered sequence of numbers."""
    if len(entries) <= ENTRIES:
        for index, entry in enumerate(entries.tolist()):
            parts.numbers[("{}[{}]", name, index)] = entry
    else:  # the mean of a piece detects a large change of a single entry
        cuts = np.linspace(0, len(entries), ENTRIES + 1).astype(int)
        with np.errstate(all="ignore"):
            means = np.add.reduceat(entries.astype(np.float64), cuts[:-1]) / np.diff(cuts)
        for index, mean in enumerate(means.tolist()):
            parts.numbers[("mean of {}[{}:{}]", name, int(cuts[index]), int(cuts[index + 1]))] = mean
    summary(parts, name, entries)


def summary(parts: Parts, name: Feature, entries: AnyArray | list[float]) -> None:
    """Add the parts of a sequence of numbers that do not depend on the order of the numbers."""
    if len(entries) <= ENTRIES:
        _short_summary(parts, name, entries if isinstance(entries, list) else entries.tolist())
        return
    values = np.ascontiguousarray(entries, dtype=np.float64)
    known = np.isfinite(values)
    finite = values if known.all() else values[known]
    parts.counts[("number of entries of {} that are not finite", name)] = len(values) - len(finite)
    parts.counts[("number of zeros in {}", name)] = float(np.count_nonzero(values == 0))
    if len(finite):
        with np.errstate(over="ignore"):
            parts.numbers[("sum of {}", name)] = float(finite.sum())
            parts.numbers[("norm of {}", name)] = float(np.sqrt(np.einsum("i,i", finite, finite)))
        parts.numbers[("least of {}", name)], parts.numbers[("largest of {}", name)] = (
            float(finite.min()),
            float(finite.max()),
        )


def _short_summary(parts: Parts, name: Feature, entries: list[float]) -> None:
    """Add the same parts as `summary` for a short list, without creating a numpy array."""
    finite = [float(entry) for entry in entries if math.isfinite(entry)]
    parts.counts[("number of entries of {} that are not finite", name)] = len(entries) - len(finite)
    parts.counts[("number of zeros in {}", name)] = finite.count(0.0)
    if finite:
        parts.numbers[("sum of {}", name)] = sum(finite)
        parts.numbers[("norm of {}", name)] = math.hypot(*finite)
        parts.numbers[("least of {}", name)], parts.numbers[("largest of {}", name)] = min(finite), max(finite)


_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def text(parts: Parts, name: Feature, value: str) -> None:
    """Add the parts of a text."""
    # a subclass of str may compare its texts in its own way
    read = _parts_of_short_text if len(value) <= TEXT and type(value) is str else _parts_of_text
    known = read(name, value)
    parts.labels.update(known.labels)
    parts.numbers.update(known.numbers)
    parts.counts.update(known.counts)
    if len(value) > TEXT:
        vector(parts, name, np.frombuffer(value.encode("utf-8", "replace"), np.uint8).astype(np.float64))


def _parts_of_text(name: Feature, text: str) -> Parts:
    parts = Parts()
    parts.labels[name] = label(text)
    parts.numbers[("length of {}", name)] = len(text)
    if text:
        parts.labels[("first character of {}", name)], parts.labels[("last character of {}", name)] = text[0], text[-1]
    for index, number in enumerate(_NUMBER.findall(text[:LISTED])[:3]):
        parts.numbers[("number {} in {}", index + 1, name)] = float(number)
    for word in _WORD.findall(text[:LISTED])[:ENTRIES]:
        parts.counts[("word {} in {}", label(word), name)] = 1
    return parts


_parts_of_short_text = lru_cache(maxsize=4096)(_parts_of_text)  # they often occur again in another output


def table(parts: Parts, name: Feature, columns: Mapping[str, Column]) -> None:
    """Add the parts of a table."""
    parts.tables[name] = Table.of(columns)
    numeric: dict[Feature, Array] = {}
    for title, entries in columns.items():
        parts.counts[("column {} in {}", title, name)] = 1
        where = ("{}[{}]", name, title)
        parts.labels[("type of {}", where)] = (entries.kind,)
        if entries.numbers is not None:
            numeric[where] = entries.numbers
            known = np.sort(entries.numbers[~np.isnan(entries.numbers)])
            parts.counts[("missing values of {}", where)] = len(entries.numbers) - len(known)
            summary(parts, where, known)
            if len(known):
                parts.numbers[("mean of {}", where)] = float(known.mean())
                for share in (25, 50, 75):
                    quantile = float(known[(len(known) - 1) * share // 100])
                    parts.numbers[("{} % quantile of {}", share, where)] = quantile
                parts.counts[("distinct values of {}", where)] = float(1 + np.count_nonzero(np.diff(known)))
        for place in _frequent(entries.counts):
            parts.counts[("number of {} in {}", label(entries.values[place]), where)] = float(entries.counts[place])
    # the number of occurrences of each frequent row; the codes of distinct rows stay below the number of rows
    codes = np.zeros(min(MAX_ROWS, max((len(entries.codes) for entries in columns.values()), default=0)), dtype=np.intp)
    for entries in columns.values():
        _, codes = np.unique(codes * len(entries.values) + some_rows(entries.codes), return_inverse=True)
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    parts.numbers[("largest number of equal rows of {}", name)] = int(counts.max()) if len(counts) else 0
    for place in _frequent(counts):
        entries_of_row = tuple(entries.entry(int(first[place])) for entries in columns.values())
        parts.counts[("number of rows {} in {}", label(entries_of_row), name)] = float(counts[place])
    paired = list(numeric)[:6]
    for i, right in enumerate(paired):
        for left in paired[:i]:
            product = numeric[right] * numeric[left]
            known = product[~np.isnan(product)]
            parts.numbers[("mean of {} times {}", left, right)] = float(known.mean()) if len(known) else np.nan


def _frequent(counts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the places of the values that are counted: all values if they are few, otherwise values that recur."""
    order = np.argsort(-counts, kind="stable")[:ENTRIES]
    return order if len(counts) <= ENTRIES else order[counts[order] > 1]
