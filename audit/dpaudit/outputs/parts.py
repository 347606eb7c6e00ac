"""One output of any kind -> named parts: numbers, labels and counts.

| output                            | parts                                                                          |
|-----------------------------------|--------------------------------------------------------------------------------|
| anything                          | its type, as a label; None, NaN and +-inf are types of their own               |
| number, boolean, Decimal, date    | itself; integers of any size exactly                                           |
| complex                           | real and imaginary part                                                        |
| text                              | itself, first and last character as labels; length, words, first numbers in it |
| bytes                             | itself as a label, length, entries                                             |
| enum                              | its name as a label                                                            |
| tuple, list                       | length, each entry, the last one, how often each label occurs, sum, extremes   |
| dict, dataclass, namedtuple       | presence and number of keys, the first key, the parts of each value            |
| set                               | presence of each element, length                                               |
| array, also of another library    | shape, entries; a long one in 64 pieces, by their means; sum, norm, extremes   |
| data frame, rows in any order     | columns, rows, and of each column what does not depend on the order; the rows  |
|                                   | themselves and which there are, where they have names                          |
| series                            | as an array; as a dict where the rows have names                               |
| Raised                            | the exception's type as a label, its message as text                           |
| object with a registered encoder  | the parts of what the encoder returns                                          |

An output has a bounded number of parts however large it is, so that outputs of many megabytes can be audited.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import re
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from dpaudit.outputs.encoders import encoder_of
from dpaudit.outputs.frames import column, is_frame, is_missing, row_names
from dpaudit.outputs.outcomes import OutputError, Raised

_ENTRIES = 64  # entries of a sequence, and pieces of a long one, that are looked at one by one
_KEYS = 512  # keys and elements that are looked at one by one
_LISTED = 4096  # elements of a long sequence of anything but numbers that are looked at at all
_TEXT = 64  # characters up to which a text is a label as it stands
_DEPTH = 8
_WORDS = 64
_HUGE = 1e300
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclasses.dataclass(slots=True)
class Parts:
    """What is known of one output.  Names are words: they are shown to people."""

    numbers: dict[str, int | float] = dataclasses.field(default_factory=dict)  # a missing one is NaN
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    counts: dict[str, float] = dataclasses.field(default_factory=dict)  # a missing one is 0


def parts_of(output: Any) -> Parts:
    """The parts of one output.  OutputError for an object that nobody taught us to read."""
    parts = Parts()
    _add(parts, "output", output, 0)
    return parts


def _add(parts: Parts, name: str, value: Any, depth: int) -> None:
    if type(value) is float and encoder_of(value) is None:  # by far the most frequent; what follows would do the same
        parts.labels[f"type of {name}"] = "number" if math.isfinite(value) else str(value)
        parts.numbers[name] = value
        return
    if depth > _DEPTH:
        parts.labels[name] = "nested too deep to be read"
        return
    encoder = encoder_of(value)
    if encoder is not None:
        _add(parts, name, encoder(value), depth + 1)
        return
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64 | np.void):
        value = value.item()
    kind = f"type of {name}"
    match value:
        case None:
            parts.labels[kind] = "None"
        case _ if is_missing(value):
            parts.labels[kind] = "missing"
        case enum.Enum():
            parts.labels[kind] = type(value).__name__
            parts.labels[name] = value.name or str(value.value)
        case bool():
            parts.labels[kind], parts.numbers[name] = "boolean", int(value)
        case int():
            parts.labels[kind], parts.numbers[name] = "integer", value
        case float():
            parts.labels[kind] = "number" if math.isfinite(value) else str(value)
            parts.numbers[name] = value
        case complex():
            parts.labels[kind] = "complex number"
            parts.numbers[f"real part of {name}"], parts.numbers[f"imaginary part of {name}"] = value.real, value.imag
        case decimal.Decimal() | fractions.Fraction():
            parts.labels[kind] = type(value).__name__
            parts.labels[name] = str(value)
            parts.numbers[name] = math.nan if isinstance(value, decimal.Decimal) and value.is_nan() else float(value)
        case str() | pathlib.PurePath() | uuid.UUID():
            parts.labels[kind] = "text" if isinstance(value, str) else type(value).__name__
            _text(parts, name, str(value))
        case bytes() | bytearray() | memoryview():
            parts.labels[kind] = "bytes"
            _bytes(parts, name, bytes(value))
        case np.datetime64() | np.timedelta64():
            parts.labels[kind], parts.numbers[name] = value.dtype.name, int(value.astype(np.int64))
        case datetime.datetime():
            parts.labels[kind], parts.numbers[name] = "time", value.timestamp()
        case datetime.date():
            parts.labels[kind], parts.numbers[name] = "date", value.toordinal()
        case datetime.timedelta():
            parts.labels[kind], parts.numbers[name] = "duration", value.total_seconds()
        case Raised():
            parts.labels[kind] = f"raised {value.type}"
            _text(parts, f"message of {name}", value.message)
        case BaseException():
            _add(parts, name, Raised.of(value), depth)
        case np.ndarray():
            _array(parts, name, value, depth)
        case Mapping():
            parts.labels[kind] = type(value).__name__
            _mapping(parts, name, value, depth)
        case AbstractSet():
            parts.labels[kind] = type(value).__name__
            parts.numbers[f"length of {name}"] = len(value)
            for element in _some_elements(value) if len(value) > _LISTED else value:
                parts.counts[f"{_label(element)} in {name}"] = 1
        case tuple() if hasattr(value, "_fields"):
            parts.labels[kind] = type(value).__name__
            _mapping(parts, name, dict(zip(value._fields, value, strict=True)), depth)
        case tuple() | list() | range():
            parts.labels[kind] = type(value).__name__
            _sequence(parts, name, value, depth)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts.labels[kind] = type(value).__name__
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            _mapping(parts, name, fields, depth)
        case _ if is_frame(value):
            parts.labels[kind] = "data frame"
            _frame(parts, name, value, depth)
        case _ if hasattr(value, "__array__") and not isinstance(value, type):
            _series(parts, name, value, depth)
        case _:
            raise OutputError(
                f"{name} is of type {type(value).__module__}.{type(value).__qualname__}, which is not known; let the "
                f"mechanism return numbers or a dict of what the analyst sees, or teach dpaudit to read it: "
                f"register_encoder({type(value).__qualname__}, function), where the function returns those"
            )


def _some_elements(elements: Iterable[Any]) -> list[Any]:
    """The first ones of a large set in a fixed order: a set's own order differs from process to process."""
    kinds = set(map(type, elements))
    in_order = sorted(elements) if kinds in ({str}, {int}, {bytes}) else sorted(elements, key=_label)
    return in_order[:_LISTED]


def _label(value: Any) -> str:
    """A short text that equal values share."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and len(value) <= _TEXT:
        return repr(value)
    if isinstance(value, bool | int | float | np.number | np.bool_ | enum.Enum) or value is None:
        return str(value)
    if isinstance(value, tuple | list | frozenset):
        written = f"({', '.join(map(_label, sorted(value, key=str) if isinstance(value, frozenset) else value))})"
        return written if len(written) <= _TEXT else f"#{zlib.crc32(written.encode()):08x}"
    if isinstance(value, str):
        return f"#{zlib.crc32(value.encode('utf-8', 'replace')):08x}"
    if isinstance(value, bytes):
        return f"bytes {value.hex()}" if len(value) <= _TEXT // 2 else f"#{zlib.crc32(value):08x}"
    if isinstance(value, pathlib.PurePath | uuid.UUID | decimal.Decimal | fractions.Fraction | datetime.date):
        return str(value)
    return type(value).__name__


def _text(parts: Parts, name: str, text: str) -> None:
    parts.labels[name] = _label(text)
    parts.numbers[f"length of {name}"] = len(text)
    if text:
        parts.labels[f"first character of {name}"], parts.labels[f"last character of {name}"] = text[0], text[-1]
    for index, found in enumerate(_NUMBER.findall(text[:_LISTED])[:3]):
        parts.numbers[f"number {index + 1} in {name}"] = float(found)
    for word in _WORD.findall(text[:_LISTED])[:_WORDS]:
        parts.counts[f"word {_label(word)} in {name}"] = 1
    if len(text) > _TEXT:
        _vector(parts, name, np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.float64))


def _bytes(parts: Parts, name: str, data: bytes) -> None:
    parts.labels[name] = _label(data)
    parts.numbers[f"length of {name}"] = len(data)
    _vector(parts, name, np.frombuffer(data, np.uint8).astype(np.float64))
    if data:
        parts.numbers[f"{name}[-1]"] = data[-1]


def _array(parts: Parts, name: str, array: np.ndarray[Any, Any], depth: int) -> None:
    kind = f"type of {name}"
    if array.dtype.kind not in "biuf":
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag], axis=-1)
        elif array.dtype.kind in "mM":
            array = array.astype(np.int64)
        else:
            parts.labels[kind] = "array"
            _sequence(parts, name, array.tolist() if array.ndim else [array.item()], depth)
            return
    parts.labels[kind] = f"array of {array.dtype.name}"
    parts.labels[f"shape of {name}"] = "x".join(map(str, array.shape)) or "()"
    parts.numbers[f"length of {name}"] = array.size
    _vector(parts, name, array.reshape(-1))


def _vector(parts: Parts, name: str, entries: np.ndarray[Any, Any]) -> None:
    """Numbers in a fixed order; `entries`: (length,)."""
    if len(entries) <= _ENTRIES:
        for index, entry in enumerate(entries.tolist()):
            parts.numbers[f"{name}[{index}]"] = entry
    else:  # a leak in one of a million entries moves the mean of its piece
        cuts = np.linspace(0, len(entries), _ENTRIES + 1).astype(int)
        with np.errstate(all="ignore"):
            means = np.add.reduceat(entries.astype(np.float64), cuts[:-1]) / np.diff(cuts)
        for index, mean in enumerate(means.tolist()):
            parts.numbers[f"mean of {name}[{cuts[index]}:{cuts[index + 1]}]"] = mean
    _summary(parts, name, entries)


def _summary(parts: Parts, name: str, entries: np.ndarray[Any, Any] | list[float]) -> None:
    """What does not depend on the order of numbers; `entries`: (length,)."""
    if len(entries) <= _ENTRIES:
        _short_summary(parts, name, entries if isinstance(entries, list) else entries.tolist())
        return
    values = np.asarray(entries, dtype=np.float64)
    finite = values[np.isfinite(values)]
    parts.counts[f"number of entries of {name} that are not finite"] = len(values) - len(finite)
    parts.counts[f"number of zeros in {name}"] = float(np.count_nonzero(values == 0))
    if len(finite):
        with np.errstate(over="ignore"):
            parts.numbers[f"sum of {name}"] = float(finite.sum())
            parts.numbers[f"norm of {name}"] = float(np.sqrt(finite @ finite))
        parts.numbers[f"least of {name}"], parts.numbers[f"largest of {name}"] = (
            float(finite.min()),
            float(finite.max()),
        )


def _short_summary(parts: Parts, name: str, entries: list[float]) -> None:
    """The same, without the cost of an array."""
    finite = [float(entry) for entry in entries if math.isfinite(entry)]
    parts.counts[f"number of entries of {name} that are not finite"] = len(entries) - len(finite)
    parts.counts[f"number of zeros in {name}"] = finite.count(0.0)
    if finite:
        parts.numbers[f"sum of {name}"] = sum(finite)
        parts.numbers[f"norm of {name}"] = math.hypot(*finite)
        parts.numbers[f"least of {name}"], parts.numbers[f"largest of {name}"] = min(finite), max(finite)


def _sequence(parts: Parts, name: str, entries: Sequence[Any], depth: int) -> None:
    length = len(entries)
    parts.numbers[f"length of {name}"] = length
    if length == 0:
        return
    if length > _ENTRIES:
        kinds = set(map(type, entries))
        if kinds <= {int, float, bool, np.float64, np.int64}:
            try:
                _vector(parts, name, np.array(entries, dtype=np.float64))
                return
            except OverflowError:
                pass
    for index, entry in enumerate(entries[:_ENTRIES]):
        _add(parts, f"{name}[{index}]", entry, depth + 1)
    _add(parts, f"{name}[-1]", entries[-1], depth + 1)
    looked_at = entries[:_LISTED]
    numbers = _floats(looked_at)
    if numbers:
        _summary(parts, name, numbers)
    for label, count in Counter(map(_label, looked_at)).most_common(_KEYS):
        parts.counts[f"number of {label} in {name}"] = count


def _floats(entries: Iterable[Any]) -> list[float]:
    kinds = (int, float, np.integer, np.floating)
    return [float(x) for x in entries if isinstance(x, kinds) and -_HUGE < x < _HUGE]


def _mapping(parts: Parts, name: str, mapping: Mapping[Any, Any], depth: int) -> None:
    parts.numbers[f"number of keys of {name}"] = len(mapping)
    for index, (key, value) in enumerate(mapping.items()):
        label = _label(key)
        if index == 0:
            parts.labels[f"first key of {name}"] = label
        if index >= _LISTED:
            break
        parts.counts[f"{label} in {name}"] = 1
        if index < _KEYS:
            _add(parts, f"{name}[{label}]", value, depth + 1)
    numbers = _floats(mapping.values())
    if numbers:
        _summary(parts, name, numbers)


def _series(parts: Parts, name: str, series: Any, depth: int) -> None:
    """A series, or any array of another library."""
    names, values = row_names(series, _LISTED), np.asarray(series)
    if values.ndim == 1:
        values = column(values)
    if names and len(set(map(_label, names))) == len(values):
        parts.labels[f"type of {name}"] = "series"
        _mapping(parts, name, dict(zip(names, values.tolist(), strict=True)), depth)
        return
    _array(parts, name, values, depth)
    _names(parts, name, list(map(_label, names)))


def _names(parts: Parts, name: str, names: Sequence[str]) -> None:
    """Which rows there are."""
    for row, count in Counter(names).most_common(_KEYS):
        parts.counts[f"number of rows named {row} in {name}"] = count


def _frame(parts: Parts, name: str, frame: Any, depth: int) -> None:
    """A data frame as a bag of rows, for their order carries nothing; their names do."""
    columns = [str(column) for column in frame.columns]
    parts.numbers[f"rows of {name}"], parts.numbers[f"columns of {name}"] = frame.shape[0], len(columns)
    numeric: dict[str, np.ndarray[Any, Any]] = {}
    values: list[list[Any]] = []
    for title, key in zip(columns[:_ENTRIES], frame.columns, strict=False):
        parts.counts[f"column {title!r} in {name}"] = 1
        entries = column(frame[key])
        where = f"{name}[{title!r}]"
        parts.labels[f"type of {where}"] = entries.dtype.name if entries.dtype.kind in "biufmM" else "labels"
        values.append(entries[:_LISTED].tolist())
        if entries.dtype.kind in "biufmM":
            numeric[where] = entries.astype(np.float64)
            _bag(parts, where, numeric[where])
        for label, count in Counter(map(_label, values[-1])).most_common(_ENTRIES):
            parts.counts[f"number of {label} in {where}"] = count
    names = [_label(row) for row in row_names(frame, _LISTED)]
    _names(parts, name, names)
    if len(names) <= _ENTRIES and len(set(names)) == len(names):
        for row, *entries_of_row in zip(names, *values, strict=False):
            for title, entry in zip(columns, entries_of_row, strict=False):
                _add(parts, f"{name}[{title!r}][{row}]", entry, depth + 1)
    alike = Counter(_label(row) for row in zip(*values, strict=True))
    parts.numbers[f"largest number of equal rows of {name}"] = max(alike.values(), default=0)
    for row, count in alike.most_common(_ENTRIES):
        parts.counts[f"number of rows {row} in {name}"] = count
    paired = list(numeric)[:6]
    for i, first in enumerate(paired):
        for second in paired[:i]:
            with np.errstate(all="ignore"):
                parts.numbers[f"mean of {second} times {first}"] = float(np.nanmean(numeric[first] * numeric[second]))


def _bag(parts: Parts, name: str, entries: np.ndarray[Any, Any]) -> None:
    known = np.sort(entries[~np.isnan(entries)])
    parts.counts[f"missing values of {name}"] = len(entries) - len(known)
    _summary(parts, name, known)
    if len(known):
        parts.numbers[f"mean of {name}"] = float(known.mean())
        for quantile in (25, 50, 75):
            parts.numbers[f"{quantile} % quantile of {name}"] = float(known[(len(known) - 1) * quantile // 100])
        parts.counts[f"distinct values of {name}"] = float(1 + np.count_nonzero(np.diff(known)))
