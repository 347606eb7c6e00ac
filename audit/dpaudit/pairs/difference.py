"""Describes the difference between two datasets, for example as "record 31 added: {'sex': 'm', 'age': 31}".

Records and rows are numbered from 1; elements of arrays have their Python index in brackets, "element [2500]".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.numerics import Flags
from dpaudit.values import Dataset, key

DATASET_LENGTH = 200  # maximum length of the text of a dataset in a result, in characters

MAX_COMPARED = 10**6  # values in a comparison of two datasets, which takes up to microseconds for each value
_VALUE_LENGTH = 60  # maximum length of a single value in the description of a difference, in characters


def brief(dataset: Dataset, most: int = 40) -> str:
    """Return the representation of a dataset as one line of text with at most `most` characters."""
    text = " ".join(repr(dataset).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def is_complete(dataset: Dataset, most: int) -> bool:
    """Whether `brief` returns the complete representation; the `repr` of a long array also omits elements."""
    text = brief(dataset, most)
    return not text.endswith("…") and "..." not in text


def hidden_difference(d0: Dataset, d1: Dataset, most: int = 40) -> str:
    """Describe the difference between two datasets if `most` characters do not suffice to represent both, or ""."""
    return "" if is_complete(d0, most) and is_complete(d1, most) else difference(d0, d1)


def difference(d0: Dataset, d1: Dataset) -> str:
    """Describe how d1 differs from d0 in a short line; "" if they are equal, too large to compare, or unsupported."""
    try:
        text = " ".join(_difference(d0, d1, 4).split())
    except Exception:  # a comparison calls methods of the datasets, which may raise any exception
        return ""
    return text if len(text) <= 160 else f"{text[:159]}…"


def _difference(old: Any, new: Any, depth: int) -> str:
    if type(old) is not type(new):
        return f"{type(old).__name__} {_shown(old)} -> {type(new).__name__} {_shown(new)}"
    library = type(old).__module__.split(".")[0]
    match old:
        case np.ndarray():
            return _of_arrays(old, new, depth)
        case list() | tuple():
            return _of_lists("record", old, new, depth)
        case str() | bytes():
            return _of_texts(old, new)
        case Mapping():
            return _of_mappings(old, new, depth)
        case set() | frozenset():
            changes = [*(f"{_shown(x)} removed" for x in old - new), *(f"{_shown(x)} added" for x in new - old)]
            return _first_of(sorted(changes), "items differ")
        case _ if library in ("pandas", "polars") and hasattr(old, "columns"):
            return _of_frames(old, new, depth)
        case _ if library in ("pandas", "polars") and type(old).__name__ == "Series":
            return _of_lists("record", _column(old), _column(new), depth)
    return "" if _same(old, new) else f"{_shown(old)} -> {_shown(new)}"


def _of_lists(noun: str, old: Sequence[Any], new: Sequence[Any], depth: int) -> str:
    if max(len(old), len(new)) > MAX_COMPARED:
        return _counts(noun, len(old), len(new))
    front = _bools(map(_same, old, new))
    back = front if len(old) == len(new) else _bools(map(_same, reversed(old), reversed(new)))
    return _of_units(noun, old, new, front, back, depth)


def _of_arrays(old: Any, new: Any, depth: int) -> str:
    if old.ndim == 0 and new.ndim == 0:
        return "" if _same(old, new) else f"{_shown(old)} -> {_shown(new)}"
    if old.shape[1:] != new.shape[1:] or old.ndim != new.ndim:
        return f"shape {old.shape} -> {new.shape}"
    noun = "element" if old.ndim == 1 else "row"
    if max(old.size, new.size) > MAX_COMPARED:
        return _counts(noun, len(old), len(new))
    least = min(len(old), len(new))
    front = _equal_elements(old[:least], new[:least])
    back = front if len(old) == len(new) else _equal_elements(old[::-1][:least], new[::-1][:least])
    words = _of_units(noun, old, new, front, back, depth)
    return words or ("" if old.dtype == new.dtype else f"type of the elements: {old.dtype} -> {new.dtype}")


def _of_frames(old: Any, new: Any, depth: int) -> str:
    if columns := _of_lists("column", list(old.columns), list(new.columns), depth):
        return columns
    if max(old.shape[0], new.shape[0]) * old.shape[1] > MAX_COMPARED:
        return _counts("row", len(old), len(new))
    names, cells0, cells1 = list(old.columns), _columns(old), _columns(new)
    least = min(len(old), len(new))
    front, back = np.ones(least, dtype=bool), np.ones(least, dtype=bool)
    for column0, column1 in zip(cells0, cells1, strict=True):
        front &= _equal_elements(column0[:least], column1[:least])
        back &= _equal_elements(column0[::-1][:least], column1[::-1][:least])
    rows0, rows1 = (
        [_Row(zip(names, row, strict=True)) for row in zip(*cells, strict=True)] for cells in (cells0, cells1)
    )
    if words := _of_units("row", rows0, rows1, front, back, depth):
        return words
    types = [(str(a), str(b)) for a, b in zip(old.dtypes, new.dtypes, strict=True)]
    changed = [f"type of column {_shown(n)}: {a} -> {b}" for n, (a, b) in zip(names, types, strict=True) if a != b]
    index = "" if _same(old, new) else "the values are equal, but the index differs"
    return _first_of(changed, "columns differ") or index


def _of_mappings(old: Mapping[Any, Any], new: Mapping[Any, Any], depth: int) -> str:
    noun = "column" if isinstance(old, _Row) else "key"
    if max(len(old), len(new)) > MAX_COMPARED:
        return _counts(noun, len(old), len(new))
    changed = [name for name in old if name in new and not _same(old[name], new[name])]
    changes: list[Callable[[], str]] = [
        *(lambda n=n: _changed(f"{noun} {_shown(n)}", old[n], new[n], depth) for n in changed),
        *(lambda n=n: f"key {_shown(n)} removed: {_shown(old[n])}" for n in old if n not in new),
        *(lambda n=n: f"key {_shown(n)} added: {_shown(new[n])}" for n in new if n not in old),
    ]
    if changes:
        return changes[0]() if len(changes) == 1 else f"{len(changes):,} {noun}s differ; the first: {changes[0]()}"
    return "" if list(old) == list(new) else "the order of the keys differs"


def _of_texts(old: Any, new: Any) -> str:
    noun = "character" if isinstance(old, str) else "byte"
    if max(len(old), len(new)) > MAX_COMPARED:
        return _counts(noun, len(old), len(new))
    start = _leading(_bools(map(operator.eq, old, new)))
    end = _leading(_bools(map(operator.eq, reversed(old[start:]), reversed(new[start:]))))
    part0, part1 = old[start : len(old) - end], new[start : len(new) - end]
    if not part0:
        return f"{_shown(part1)} added after {noun} {start:,}" if part1 else ""
    if not part1:
        return f"{_shown(part0)} removed after {noun} {start:,}"
    return f"from {noun} {start + 1:,}: {_shown(part0)} -> {_shown(part1)}"


def _of_units(noun: str, old: Any, new: Any, front: Flags, back: Flags, depth: int) -> str:
    """Describe the difference between two sequences of records, rows or elements, called units."""

    def named(place: int) -> str:
        return f"[{place}]" if noun == "element" else f"{place + 1:,}"

    if len(old) == len(new):
        places = np.flatnonzero(~front).tolist()
        if not places:
            return ""
        old_unit, new_unit = old[places[0]], new[places[0]]
        if len(places) == 1:
            return _changed(f"{noun} {named(places[0])}", old_unit, new_unit, depth)
        share = f"{len(places):,} of {len(old):,}"
        if len(places) > 3:
            first = _changed(f"the first, {noun} {named(places[0])}", old_unit, new_unit, depth)
            return f"{share} {noun}s differ; {first}"
        listed = f"{', '.join(map(named, places[:-1]))} and {named(places[-1])}"
        return f"{noun}s {listed} differ ({share}); {_changed('the first', old_unit, new_unit, depth)}"
    change, longer = ("added", new) if len(new) > len(old) else ("removed", old)
    start, extra = _leading(front), abs(len(new) - len(old))
    if start + min(_leading(back), len(front) - start) < len(front):
        first = _changed(f"the first difference, {noun} {named(start)}", old[start], new[start], depth)
        return f"{_counts(noun, len(old), len(new))}; {first}"
    if extra == 1:
        return f"{noun} {named(start)} {change}: {_shown(longer[start])}"
    return f"{noun}s {named(start)} to {named(start + extra - 1)} {change}; the first: {_shown(longer[start])}"


def _changed(name: str, old: Any, new: Any, depth: int) -> str:
    """Describe the change of a named value.  If the value is long, describe the change inside the value."""
    long = not (is_complete(_plain(old), _VALUE_LENGTH) and is_complete(_plain(new), _VALUE_LENGTH))
    if depth and long and type(old) is type(new) and (inside := _difference(old, new, depth - 1)):
        return f"{name}, {inside}"
    return f"{name}: {_shown(old)} -> {_shown(new)}"


def _first_of(changes: Sequence[str], differ: str) -> str:
    return f"{len(changes):,} {differ}; the first: {changes[0]}" if len(changes) > 1 else "".join(changes)


def _counts(noun: str, old: int, new: int) -> str:
    return "" if old == new else f"{old:,} -> {new:,} {noun}s"


def _leading(equal: Flags) -> int:
    return len(equal) if equal.all() else int(equal.argmin())


def _same(old: Any, new: Any) -> bool:
    return old is new or (type(old) is type(new) and key(old) == key(new))


def _equal_elements(old: Any, new: Any) -> Flags:
    """Compare two arrays of equal shape element by element, or row by row.  NaN is considered equal to NaN."""
    try:
        equal = np.asarray((old == new) | ((old != old) & (new != new)), dtype=bool)
    except (TypeError, ValueError):  # comparisons with pandas.NA have no truth value
        equal = _bools(map(_same, old.ravel(), new.ravel())).reshape(old.shape)
    return np.asarray(equal.reshape(len(old), -1).all(axis=1)) if equal.ndim > 1 else equal


def _bools(found: Iterable[bool]) -> Flags:
    return np.fromiter(found, dtype=bool)


class _Row(dict[Any, Any]):
    """The cells of one row of a data frame, by column name."""


def _columns(frame: Any) -> list[Any]:
    columns = (frame.iloc[:, i] for i in range(frame.shape[1])) if hasattr(frame, "iloc") else frame.get_columns()
    return [np.fromiter(_column(column), dtype=object, count=len(frame)) for column in columns]


def _column(series: Any) -> list[Any]:
    return list(series.tolist() if hasattr(series, "tolist") else series.to_list())


def _shown(value: Any) -> str:
    return brief(_plain(value), _VALUE_LENGTH)


def _plain(value: Any) -> Any:
    """Convert numpy numbers and short numpy arrays to Python numbers and lists, whose representations are shorter."""
    if isinstance(value, np.generic):
        return value.item()
    return value.tolist() if isinstance(value, np.ndarray) and value.size <= _VALUE_LENGTH else value
