"""Splits an output of any type into named parts, which are numbers, labels and counts.

| output                            | parts                                                                          |
|-----------------------------------|--------------------------------------------------------------------------------|
| value of any type                 | type as a label; None, NaN and +-inf count as separate types                   |
| number, boolean, Decimal, date    | the value; integers of any size are exact                                      |
| complex number                    | real and imaginary part                                                        |
| text                              | text, first and last character as labels; length, words, first three numbers   |
| bytes                             | the bytes as a label, length, entries                                          |
| enum                              | name as a label                                                                |
| tuple, list                       | length, each entry, last entry, number of each label, sum, extremes            |
| dict, dataclass, namedtuple       | presence and number of keys, first key, parts of each value; a table for       |
|                                   | queries, if all values of a dict are sequences of one length, and of all       |
|                                   | categories only the first rows one by one, if it has more than 64 rows         |
| set                               | presence of each element, length                                               |
| array of any library              | shape, entries (means of 64 pieces of a long array), sum, norm, extremes       |
| data frame, structured array,     | number of rows; columns, each summarised regardless of order; frequent rows;   |
| rows in any order                 | names of rows and entries by name, if the rows have names; a table for queries |
| list of dicts                     | the same, and the parts of the first rows                                      |
| series                            | the parts of an array, or of a dict if the rows have names                     |
| Raised, or a dict of the texts    | type of the exception as a label, message as text                              |
| "raised" and "message"            |                                                                                |
| object with a registered encoder  | parts of the value that the encoder returns                                    |

The number of parts of an output is bounded, so that outputs of many megabytes can be audited.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from dpaudit.numerics import AnyArray
from dpaudit.outputs.entries import (
    LISTED,
    OutputError,
    Raised,
    column,
    encoder_of,
    is_frame,
    is_missing,
    label,
    label_of,
    row_names,
)
from dpaudit.outputs.tables import (
    ENTRIES,
    MAX_COLUMNS,
    Parts,
    Table,
    are_rows,
    frame_columns,
    mapping_columns,
    read_column,
    summary,
    table,
    text,
    vector,
)
from dpaudit.values import OUTPUT, Feature, Label, Output, words

Reader = Callable[[Parts, Feature, Any, int], None]
"""A function that adds the parts of a value to `Parts`: (parts, name of the value, value, nesting depth)."""

_MAX_KEYS = 512  # maximum number of keys and labels of an output that are read individually
_MAX_DEPTH = 100  # far below Python's limit of recursion
_FLAT_DEPTH = 1  # maximum depth of lists whose inner lists are also read as last entries and as labels


def parts_of(output: Output) -> Parts:
    """Return the parts of one output."""
    parts = Parts()
    _add(parts, OUTPUT, output, 0)
    return parts


def _add(parts: Parts, name: Feature, value: object, depth: int) -> None:
    encoder = encoder_of(value)
    if type(value) is float and encoder is None:  # floats are handled first, because they are the most frequent outputs
        _scalar(parts, name, value, depth)
        return
    if depth > _MAX_DEPTH:
        raise OutputError(
            f"an output is nested deeper than {_MAX_DEPTH} levels; let the mechanism return a list or a dict of the "
            "visible values without this nesting"
        )
    if encoder is not None:
        _add(parts, name, encoder(value), depth + 1)
        return
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64 | np.void):
        value = value.item()
    reader = _READERS_OF_TYPES.get(type(value))
    if reader is None:
        reader = next((read for kinds, read in _READERS if isinstance(value, kinds)), None)
    if reader is None and is_missing(value):
        reader = _scalar
    elif reader is None and dataclasses.is_dataclass(value) and not isinstance(value, type):
        reader = _dataclass
    elif reader is None and is_frame(value):
        reader = _frame
    elif reader is None and hasattr(value, "__array__") and not isinstance(value, type):
        reader = _series
    if reader is None:
        raise OutputError(
            f"{words(name)} is of type {type(value).__module__}.{type(value).__qualname__}, which dpaudit cannot read; "
            "let the mechanism return numbers or a dict of the visible values, or register a function that converts "
            f"such objects: register_encoder({type(value).__qualname__}, function)"
        )
    reader(parts, name, value, depth)


def _scalar(parts: Parts, name: Feature, value: Any, depth: int) -> None:
    """Add the parts of a value that contains no other values."""
    kind = ("type of {}", name)
    if isinstance(value, float) and not isinstance(value, enum.Enum):
        parts.labels[kind] = ("number" if math.isfinite(value) else str(value),)
        parts.numbers[name] = value
        return
    match value:
        case enum.Enum():
            parts.labels[kind], parts.labels[name] = (type(value).__name__,), (value.name or str(value.value),)
        case bool():
            parts.labels[kind], parts.numbers[name] = ("boolean",), int(value)
        case int():
            parts.labels[kind], parts.numbers[name] = ("integer",), value
        case str() | pathlib.PurePath() | uuid.UUID():
            parts.labels[kind] = ("text" if isinstance(value, str) else type(value).__name__,)
            text(parts, name, str(value))
        case complex():
            parts.labels[kind] = ("complex number",)
            parts.numbers[("real part of {}", name)] = value.real
            parts.numbers[("imaginary part of {}", name)] = value.imag
        case decimal.Decimal() | fractions.Fraction():
            parts.labels[kind], parts.labels[name] = (type(value).__name__,), (str(value),)
            parts.numbers[name] = math.nan if isinstance(value, decimal.Decimal) and value.is_nan() else float(value)
        case _ if is_missing(value):
            parts.labels[kind] = ("None" if value is None else "missing",)
        case np.datetime64() | np.timedelta64():
            parts.labels[kind], parts.numbers[name] = (value.dtype.name,), int(value.astype(np.int64))
        case datetime.datetime():
            parts.labels[kind], parts.numbers[name] = ("time",), value.timestamp()
        case datetime.date():
            parts.labels[kind], parts.numbers[name] = ("date",), value.toordinal()
        case datetime.timedelta():
            parts.labels[kind], parts.numbers[name] = ("duration",), value.total_seconds()
        case Raised():
            parts.labels[kind] = ("raised {}", (value.type,))
            text(parts, ("message of {}", name), value.message)
        case BaseException():
            _add(parts, name, Raised.of(value), depth)


def _bytes(parts: Parts, name: Feature, value: Any, depth: int) -> None:
    data = bytes(value)
    parts.labels[("type of {}", name)] = ("bytes",)
    parts.labels[name] = label(data)
    parts.numbers[("length of {}", name)] = len(data)
    vector(parts, name, np.frombuffer(data, np.uint8).astype(np.float64))
    if data:
        parts.numbers[("{}[{}]", name, -1)] = data[-1]


def _floats(entries: Iterable[object]) -> list[float]:
    """Return the entries that are numbers with an absolute value below 1e300, converted to floats."""
    kinds = (int, float, np.integer, np.floating)
    return [float(x) for x in entries if isinstance(x, kinds) and -1e300 < x < 1e300]


def _array(parts: Parts, name: Feature, array: AnyArray, depth: int) -> None:
    kind = ("type of {}", name)
    if isinstance(array, np.ma.MaskedArray):  # the values below the mask are not visible
        _array(parts, ("mask of {}", name), np.ma.getmaskarray(array), depth)
        empty: Any = np.nan if array.dtype.kind in "fc" else np.zeros((), array.dtype)[()]
        array = array.filled(empty)
    array = np.asarray(array)  # a matrix has two dimensions even if it is reshaped
    if array.dtype.kind not in "biuf":
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag], axis=-1)
        elif array.dtype.kind in "mM":
            array = array.astype(np.int64)
        elif array.dtype.names and array.ndim == 1:
            parts.labels[kind] = ("table",)
            parts.numbers[("rows of {}", name)], parts.numbers[("columns of {}", name)] = (
                len(array),
                len(array.dtype.names),
            )
            table(parts, name, {title: read_column(array[title]) for title in array.dtype.names[:MAX_COLUMNS]})
            return
        else:
            parts.labels[kind] = ("array",)
            _sequence(parts, name, array.tolist() if array.ndim else [array.item()], depth)
            return
    parts.labels[kind] = ("array of {}", (array.dtype.name,))
    parts.labels[("shape of {}", name)] = ("x".join(map(str, array.shape)) or "()",)
    parts.numbers[("length of {}", name)] = array.size
    vector(parts, name, array.reshape(-1))


def _sequence(parts: Parts, name: Feature, entries: Sequence[object], depth: int) -> None:
    length = len(entries)
    parts.numbers[("length of {}", name)] = length
    if length == 0:
        return
    separate = ENTRIES
    if are_rows(entries):
        titles = list(dict.fromkeys(title for row in entries for title in row))[:MAX_COLUMNS]
        columns = {title: read_column([row.get(title) for row in entries]) for title in titles}
        table(parts, name, columns)
        separate = max(1, ENTRIES // max(1, len(columns)))
    elif length > ENTRIES:
        kinds = set(map(type, entries))
        if kinds <= {int, float, bool, np.float64, np.int64}:
            try:
                vector(parts, name, np.array(entries, dtype=np.float64))
                return
            except OverflowError:
                pass
    for index, entry in enumerate(entries[:separate]):
        _add(parts, ("{}[{}]", name, index), entry, depth + 1)
    looked_at, last = entries[:LISTED], entries[-1:]
    if depth > _FLAT_DEPTH:  # an inner list is read once; otherwise the parts would double with each level
        looked_at, last = (
            [entry for entry in some if not isinstance(entry, list | tuple | Mapping)] for some in (looked_at, last)
        )
    for entry in last:
        _add(parts, ("{}[{}]", name, -1), entry, depth + 1)
    if separate < ENTRIES:  # the frequent rows of a table are counted already
        return
    numbers = _floats(looked_at)
    if numbers:
        summary(parts, name, numbers)
    for entry_label, count in Counter(map(label, looked_at)).most_common(_MAX_KEYS):
        parts.counts[("number of {} in {}", entry_label, name)] = count


def _set(parts: Parts, name: Feature, value: AbstractSet[object], depth: int) -> None:
    parts.labels[("type of {}", name)] = (type(value).__name__,)
    parts.numbers[("length of {}", name)] = len(value)
    elements: list[Any] = list(value)
    if len(elements) > LISTED:  # the first in an order that is the same in every process
        plain = set(map(type, elements)) in ({str}, {int}, {bytes})
        elements = (sorted(elements) if plain else sorted(elements, key=label_of))[:LISTED]
    for element in elements:
        parts.counts[("{} in {}", label(element), name)] = 1


def _listed(parts: Parts, name: Feature, value: Sequence[object], depth: int) -> None:
    """Add the parts of a tuple, list or range."""
    parts.labels[("type of {}", name)] = (type(value).__name__,)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        _entries(parts, name, dict(zip(value._fields, value, strict=True)), depth)
    else:
        _sequence(parts, name, value, depth)


def _mapping(parts: Parts, name: Feature, value: Mapping[Any, Any], depth: int) -> None:
    if len(value) == 2 and all(type(value.get(key)) is str for key in ("raised", "message")):
        # `library: synthesizer` returns the exception of a fit in this form
        _scalar(parts, name, Raised(value["raised"], value["message"]), depth)
        return
    parts.labels[("type of {}", name)] = (type(value).__name__,)
    columns = mapping_columns(value)
    if columns is not None and (rows := len(next(iter(columns.values())).codes)) <= ENTRIES:
        parts.tables[name] = Table.of(columns)
    elif columns is not None:
        parts.numbers[("rows of {}", name)] = rows
        table(parts, name, columns)
        separate = max(1, ENTRIES // len(columns))
        value = {key: value[key][:separate] if columns[key].numbers is None else value[key] for key in value}
    _entries(parts, name, value, depth)


def _dataclass(parts: Parts, name: Feature, value: Any, depth: int) -> None:
    fields: dict[str, object] = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    parts.labels[("type of {}", name)] = (type(value).__name__,)
    _entries(parts, name, fields, depth)


def _entries(parts: Parts, name: Feature, mapping: Mapping[Any, object], depth: int) -> None:
    parts.numbers[("number of keys of {}", name)] = len(mapping)
    for index, (key, value) in enumerate(mapping.items()):
        step = label(key)
        if index == 0:
            parts.labels[("first key of {}", name)] = step
        if index >= LISTED:
            break
        parts.counts[("{} in {}", step, name)] = 1
        if index < _MAX_KEYS:
            _add(parts, ("{}[{}]", name, step), value, depth + 1)
    numbers = _floats(mapping.values())
    if numbers:
        summary(parts, name, numbers)


def _series(parts: Parts, name: Feature, series: object, depth: int) -> None:
    """Add the parts of a series, or of an array of a library other than numpy."""
    names, values = row_names(series, LISTED), np.asarray(series)
    if values.ndim == 1:
        values = column(values)
    if names and len(set(map(label, names))) == len(values):
        parts.labels[("type of {}", name)] = ("series",)
        _entries(parts, name, dict(zip(names, values.tolist(), strict=True)), depth)
        return
    _array(parts, name, values, depth)
    _names(parts, name, list(map(label, names)))


def _names(parts: Parts, name: Feature, names: Sequence[Label]) -> None:
    for row, count in Counter(names).most_common(_MAX_KEYS):
        parts.counts[("number of rows named {} in {}", row, name)] = count


def _frame(parts: Parts, name: Feature, frame: Any, depth: int) -> None:
    """Add the parts of a data frame, which is treated as an unordered collection of rows with optional names."""
    parts.labels[("type of {}", name)] = ("data frame",)
    parts.numbers[("rows of {}", name)], parts.numbers[("columns of {}", name)] = frame.shape[0], frame.shape[1]
    columns = frame_columns(frame)
    table(parts, name, columns)
    names = [label(row) for row in row_names(frame, LISTED)]
    _names(parts, name, names)
    if len(names) <= ENTRIES and len(set(names)) == len(names):
        for place, row in enumerate(names):
            for title, entries in columns.items():
                _add(parts, ("{}[{}]", ("{}[{}]", name, title), row), entries.entry(place), depth + 1)


_SCALARS = (enum.Enum, int, float, complex, decimal.Decimal, fractions.Fraction, str, pathlib.PurePath, uuid.UUID)
_TIMES = (np.datetime64, np.timedelta64, datetime.date, datetime.timedelta)
_READERS: tuple[tuple[type | tuple[type, ...], Reader], ...] = (
    ((*_SCALARS, *_TIMES, type(None), Raised, BaseException), _scalar),
    ((bytes, bytearray, memoryview), _bytes),
    (np.ndarray, _array),
    (Mapping, _mapping),
    (AbstractSet, _set),
    ((tuple, list, range), _listed),
)
_READERS_OF_TYPES: dict[type, Reader] = {  # readers of the most frequent types, which are looked up first
    kind: next(reader for kinds, reader in _READERS if issubclass(kind, kinds))
    for kind in (bool, int, float, str, bytes, tuple, list, dict, np.ndarray)
}
