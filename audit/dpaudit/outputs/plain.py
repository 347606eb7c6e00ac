"""Outputs as a mechanism returned them: arrays of outputs of one plain kind, equal outputs, and shared calls.

**Shared calls.**  numpy and pandas give all entries of an array or a column one type.  So if one call returns many
outputs, the type of one may depend on the others: next to one 0.5 or one NaN, the integer 3 becomes 3.0.  `as_alone`
merges two outputs exactly where a shared call could turn one into the other, at any depth of containers:

- A number is one exact number, whether it was an int, a float, a boolean or a complex number without imaginary part.
  Integers never pass through float64 unless float64 represents them exactly.  -0.0 is not 0.0.
- A missing value is NaN, whether it was None, NaN, NaT or NA.
- A sequence of outputs or entries is one list, whether it was a row of an array, a list or a tuple.

What numpy cannot undo is refused: numbers that became text next to a text, and integers beyond 2^53 that became floats
next to a float.  If each call makes one run, nothing is merged.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import sys
import uuid
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import EXACT, AnyArray, Array
from dpaudit.outputs.entries import OutputError, encoder_of, is_missing
from dpaudit.values import Output, RawOutputs

Plain = AnyArray  # an array of shape (n,) or (n, d) that contains integers, floats or booleans

_MAX_COLUMNS = 2**14  # maximum length of an output vector that is read completely; longer vectors are summarised
_WORDS = {float: "float", int: "integer", bool: "boolean"}
_ENTRIES = {float, int, bool, np.float64, np.int64, list, tuple}  # types of the entries of vectors
_DTYPES = {"float64": "float", "int64": "integer", "bool": "boolean"}  # numpy's types that are also Python's
_LARGEST = 2**63  # of an integer in an array (exclusive)


def plain_kind(output: Output) -> str:
    """Return the kind of an output, such as "float" or "list of 3 integer"; "" if it is neither number nor vector.

    Kinds are told apart, because a mechanism may return 1 on one dataset and 1.0 on the other.
    """
    kind = type(output)
    if kind in _WORDS:
        return "" if kind is int and not -_LARGEST <= output < _LARGEST else _WORDS[kind]
    if encoder_of(output) is not None:
        return ""
    if isinstance(output, np.generic) or kind is np.ndarray:  # not a subclass, such as a masked array
        known = output.dtype.kind in "biuf" and output.dtype.itemsize <= 8 and output.dtype.isnative
        if not known or not 0 < output.size <= _MAX_COLUMNS:
            return ""
        word = _DTYPES.get(output.dtype.name, output.dtype.name)
        return f"array of {'x'.join(map(str, output.shape))} {word}" if kind is np.ndarray else word
    if kind not in (list, tuple) or not 0 < len(output) <= _MAX_COLUMNS:
        return ""
    entries = set(map(type, output))
    if len(entries) > 1 or not entries <= _ENTRIES:
        return ""
    words = {plain_kind(output[0])} if entries == {float} else set(map(plain_kind, output))
    nested = entries <= {list, tuple}
    if len(words) > 1 or "" in words or (nested and not 0 < len(output) * len(output[0]) <= _MAX_COLUMNS):
        return ""
    if nested and isinstance(output[0][0], list | tuple):
        return ""  # deeper than a matrix
    return f"{kind.__name__} of {len(output)} {words.pop()}"


def plain_array(outputs: RawOutputs) -> tuple[str, Plain]:
    """Convert outputs of one plain kind into this kind and an array (n,) or (n, d); otherwise "" and an empty array.

    Rows of an array count as lists of floats, as `as_alone` gives them.
    """
    if isinstance(outputs, np.ndarray):
        if outputs.ndim == 1:
            return "float", outputs
        rows = outputs.reshape(len(outputs), -1) if len(outputs) else outputs.reshape(0, 1)
        if outputs.ndim <= 3 and 0 < rows.shape[1] <= _MAX_COLUMNS:
            return "".join(f"list of {length} " for length in outputs.shape[1:]) + "float", rows
    elif len(outputs) and len(set(map(type, outputs))) == 1:
        kinds = set(map(plain_kind, outputs)) if type(outputs[0]) is not float else {plain_kind(outputs[0])}
        if len(kinds) == 1 and "" not in kinds:
            return kinds.pop(), array_of(outputs)
    return "", np.zeros(0)


def array_of(outputs: Sequence[Any]) -> Plain:
    """Return outputs of one plain kind as an array of shape (n,) or (n, d)."""
    array = np.array(outputs)
    if array.dtype.kind == "f" and np.isnan(array).any():
        array[np.isnan(array)] = np.nan  # all NaNs are one
    return array if array.ndim == 1 else array.reshape(len(array), -1)


def size_of(output: Output) -> float:
    """Return the approximate size of an output, in bytes."""
    if hasattr(output, "nbytes"):
        return float(output.nbytes)
    inside = list(output.values()) if isinstance(output, dict) else output
    deeper = 0.0
    if isinstance(inside, tuple | list) and inside:
        some = inside[:: max(1, len(inside) // 20)]
        deeper = len(inside) * sum(map(size_of, some)) / len(some)
    return sys.getsizeof(output) + deeper


# classes whose instances are determined by their text
_WRITTEN = decimal.Decimal | fractions.Fraction | datetime.date | datetime.time | datetime.timedelta
_WRITTEN |= uuid.UUID | pathlib.PurePath | enum.Enum
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # unsigned integer type by its size in bytes


@dataclass(frozen=True, slots=True)
class Distinct:
    """The k distinct values among n outputs."""

    index: npt.NDArray[np.intp]  # place of the first output with each value; (k,)
    places: npt.NDArray[np.intp]  # index of the value of each output, from 0 to k - 1; (n,)
    value_keys: Callable[[], list[Hashable]]  # the key of each value, as `Outputs.value_keys` gives it


def distinct_rows(kind: str, array: Plain) -> Distinct:
    """Return the distinct values among outputs of one plain kind in an array."""
    rows = np.ascontiguousarray(array).reshape(len(array), -1)
    bits = rows.view(_BITS[rows.dtype.itemsize])
    if bits.shape[1] == 1:
        _, index, places = np.unique(bits.ravel(), return_index=True, return_inverse=True)
    else:  # the rows of one value are neighbours after sorting
        order = np.lexsort(bits.T)
        new = np.append(True, np.any(bits[order[1:]] != bits[order[:-1]], axis=1))[: len(order)]
        places = np.empty(len(order), dtype=np.intp)
        places[order] = np.cumsum(new) - 1
        index = order[new]
    return Distinct(index, places, lambda: [row_key(kind, rows[i]) for i in index])


def distinct_keys(keys: Sequence[Hashable]) -> Distinct:
    """Return the distinct values among outputs with these keys."""
    known: dict[Hashable, int] = {}
    places = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.intp)
    return Distinct(np.unique(places, return_index=True)[1], places, lambda: list(known))


def row_key(kind: str, row: AnyArray) -> Hashable:
    """Return the key of an output of a plain kind, which is a number or a row of an array."""
    return kind, row.tobytes()


def key_of(output: Output) -> Hashable:
    """Return the key of an output, equal to that of the same output in an array; unknown objects have unique keys."""
    kind = plain_kind(output)
    if kind:
        return row_key(kind, array_of([output]))
    try:
        return "", _content(output)
    except (TypeError, ValueError, RecursionError):
        return "", object()


def _content(value: Any) -> Hashable:
    kind = type(value)
    name = kind.__qualname__
    if kind in (float, complex, int, bool, str, bytes, type(None)) or isinstance(value, _WRITTEN):
        return name, repr(value)
    if value is np.ma.masked:
        return name
    if kind is np.ndarray or isinstance(value, np.generic):
        if value.dtype.kind not in "biufSUmM" or (value.dtype.itemsize > 8 and value.dtype.kind == "f"):
            raise TypeError
        return name, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return name, tuple((_content(entry), _content(value[entry])) for entry in value)
    if isinstance(value, set | frozenset):
        return name, frozenset(map(_content, value))
    if isinstance(value, list | tuple):
        return name, tuple(map(_content, value))
    if dataclasses.is_dataclass(value):
        return name, tuple(_content(getattr(value, field.name)) for field in dataclasses.fields(value))
    raise TypeError


WIDE = 1024  # numbers of an output from which on it stays an array, because lists would take too long
_FEW = 32  # outputs of a list that may all have one type by chance
_TYPES = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "c": "numbers", "U": "text", "S": "bytes"}
_LARGE, _FLOATS = "integers beyond 2^53", "floats"


def as_alone(outputs: RawOutputs) -> Array | list[Output]:
    """Return the outputs of a shared call with their values alone, as float64 if it represents all of them."""
    outputs = _sequence(outputs)
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf" and _is_float(outputs):
        return _numbers(outputs)
    alone = [_alone(output) for output in outputs]
    kinds = set(map(type, alone))
    if kinds == {list}:
        floats = len(set(map(len, alone))) == 1 and alone[0] and all(set(map(type, row)) == {float} for row in alone)
    else:
        floats = kinds == {float}
    return np.array(alone) if floats else alone


def _sequence(outputs: RawOutputs) -> AnyArray | list[Output]:
    if isinstance(outputs, list | np.ma.MaskedArray):
        return list(outputs)
    return np.asarray(outputs) if hasattr(outputs, "__array__") else list(outputs)


def _alone(value: Any) -> Any:
    """Return the value of an output or of a part of an output, whatever stood beside it."""
    kind = type(value)
    if kind is float or isinstance(value, float | np.floating):
        exact = float(value)
        return exact if exact == value else value if value == value else math.nan
    if isinstance(value, int | np.integer | np.bool_):  # also booleans and members of IntEnum
        return float(value) if -EXACT <= value <= EXACT else int(value)
    if isinstance(value, complex | np.complexfloating):
        return complex(value) if value.imag else _alone(value.real)
    if isinstance(value, np.str_ | np.bytes_):
        return value.item()
    if kind is str or kind is bytes:
        return value
    return math.nan if is_missing(value) else _container(value)


def _container(value: Any) -> Any:
    """Return an array or a container with the values that its entries have alone; other objects are unchanged."""
    kind = type(value)
    if isinstance(value, np.void):
        return _alone(value.item())
    if kind is np.ndarray and not value.dtype.names:
        if value.size > WIDE:
            return _numbers(value) if value.dtype.kind in "biuf" and _is_float(value) else value
        return _alone(value.tolist())
    if kind is list or kind is tuple:
        entries = [_alone(entry) for entry in value]
        numbers = set(map(type, entries))
        if numbers == {float} and len(entries) > WIDE:
            return np.array(entries)
        if numbers == {float, int} and all(isinstance(entry, int) or entry.is_integer() for entry in entries):
            return list(map(int, entries))  # large integers of one array are exact, and so are their neighbours
        return entries
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*map(_alone, value))
    if isinstance(value, set | frozenset):
        return kind(tuple(entry) if isinstance(entry, list) else entry for entry in map(_alone, value))
    if isinstance(value, dict):
        copied = copy.copy(value)
        for name, entry in value.items():
            copied[name] = _alone(entry)
        return copied
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        again = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(again, field.name, _alone(getattr(value, field.name)))
        return again
    return value


def _numbers(array: AnyArray) -> Array:
    floats: Array = array.astype(np.float64, order="C")
    floats[np.isnan(floats)] = np.nan  # all NaNs are one
    return floats


def _is_float(array: AnyArray) -> bool:
    """Return whether float64 represents each number of an array exactly."""
    if array.dtype.kind == "f":
        return array.dtype.itemsize <= 8
    return array.dtype.kind == "b" or not _large(array)


def _large(array: AnyArray) -> bool:
    return bool(array.size) and (int(array.max()) > EXACT or int(array.min()) < -EXACT)


def types_of(outputs: RawOutputs) -> frozenset[str]:
    """Return words for the types that numpy may have given to all outputs of a call; empty if it changed none."""
    outputs = _sequence(outputs)
    if isinstance(outputs, np.ndarray) and outputs.size and outputs.dtype.kind != "O":
        kind = outputs.dtype.kind
        words = {_TYPES.get(kind, str(outputs.dtype))}
        if kind == "f" or (kind in "iu" and _large(outputs)):
            words.add(_FLOATS if kind == "f" else _LARGE)
        return frozenset(words)
    if isinstance(outputs, np.ndarray) or len(outputs) < _FEW:
        return frozenset()
    entries = list(chain.from_iterable(outputs)) if set(map(type, outputs)) == {list} else outputs
    kinds = set(map(type, entries))
    if kinds == {str}:
        return frozenset({"text"} if any(map(_is_number, entries)) else ())
    if kinds == {float}:
        rounded = any(abs(value) > EXACT and value.is_integer() for value in entries)
        return frozenset({"numbers", _FLOATS} if rounded else {"numbers"})
    if kinds == {int}:
        large = any(not -EXACT <= value <= EXACT for value in entries)
        return frozenset({"numbers", _LARGE} if large else {"numbers"})
    return frozenset()


def refuse_mixed_types(types: Iterable[str]) -> None:
    """Raise OutputError if the types of the calls on a pair show that numpy may have changed an output for good."""
    found = set(types)
    kinds = [_FLOATS, _LARGE] if found >= {_LARGE, _FLOATS} else sorted(found - {_LARGE, _FLOATS})
    if len(kinds) > 1:
        raise OutputError(
            f"one call returned only {kinds[0]} and another call only {kinds[1]}.  numpy converts all values of an "
            "array to one type, so an output may depend on the other outputs of its call.  Return a list or an object "
            "array, whose values keep their types"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("True", "False", "None")
    return True
