"""Gives each output of a shared call the value that it would have alone.

numpy and pandas give all entries of an array or a column one type.  So if one call of a mechanism returns many outputs,
the type of an output may depend on the other outputs of the call: next to one 0.5 or one NaN, the integer 3 becomes
3.0.  `tolist` and rows of data frames keep these types.  Two outputs are merged exactly where a shared call could turn
one into the other, at any depth of containers:

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
import math
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from dpaudit.numerics import AnyArray, Array
from dpaudit.outputs.entries import OutputError, is_missing
from dpaudit.values import Output, RawOutputs

_EXACT = 2**53  # a float64 represents all integers up to this absolute value exactly
WIDE = 1024  # numbers of an output from which on it stays an array, because lists would take too long
_FEW = 32  # outputs of a list that may all have one type by chance
_WORDS = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "c": "numbers", "U": "text", "S": "bytes"}
_LARGE, _FLOATS = "integers beyond 2^53", "floats"


def as_alone(outputs: RawOutputs) -> Array | list[Output]:
    """Return the outputs of a shared call, each with the value that it would have alone.

    The result is an array of float64 if float64 represents all outputs, and otherwise a list.  The function changes
    neither of these a second time.
    """
    outputs = _sequence(outputs)
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf" and _is_float(outputs):
        return _numbers(outputs)
    found = [_alone(output) for output in outputs]
    kinds = set(map(type, found))
    if kinds == {float} or (kinds == {list} and len(set(map(len, found))) == 1 and found[0] and _all_floats(found)):
        return np.array(found)
    return found


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
        return float(value) if -_EXACT <= value <= _EXACT else int(value)
    if isinstance(value, complex | np.complexfloating):
        return complex(value) if value.imag else _alone(value.real)
    if isinstance(value, np.str_ | np.bytes_):
        return value.item()
    if kind is str or kind is bytes:
        return value
    if is_missing(value):
        return math.nan
    return _part(value)


def _part(value: Any) -> Any:
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
        return kind(tuple(one) if isinstance(one, list) else one for one in map(_alone, value))
    if isinstance(value, dict):
        whole = copy.copy(value)
        for name, entry in value.items():
            whole[name] = _alone(entry)
        return whole
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        again = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(again, field.name, _alone(getattr(value, field.name)))
        return again
    return value


def _numbers(array: AnyArray) -> Array:
    found: Array = array.astype(np.float64, order="C")
    missing = np.isnan(found)
    if missing.any():
        found[missing] = np.nan
    return found


def _is_float(array: AnyArray) -> bool:
    """Return whether float64 represents each number of an array exactly."""
    if array.dtype.kind == "f":
        return array.dtype.itemsize <= 8
    return array.dtype.kind == "b" or not _large(array)


def _large(array: AnyArray) -> bool:
    return bool(array.size) and (int(array.max()) > _EXACT or int(array.min()) < -_EXACT)


def _all_floats(rows: list[list[Output]]) -> bool:
    return all(set(map(type, row)) == {float} for row in rows)


def types_of(outputs: RawOutputs) -> frozenset[str]:
    """Return words for the types that numpy may have given to all outputs of a call; empty if it changed none.

    A list counts only if it is long, and if one of its texts or floats looks like a converted number.
    """
    outputs = _sequence(outputs)
    if isinstance(outputs, np.ndarray) and outputs.size and outputs.dtype.kind != "O":
        found = {_WORDS.get(outputs.dtype.kind, str(outputs.dtype))}
        if outputs.dtype.kind == "f":
            found.add(_FLOATS)
        elif outputs.dtype.kind in "iu" and _large(outputs):
            found.add(_LARGE)
        return frozenset(found)
    if isinstance(outputs, np.ndarray) or len(outputs) < _FEW:
        return frozenset()
    entries = list(chain.from_iterable(outputs)) if set(map(type, outputs)) == {list} else outputs
    kinds = set(map(type, entries))
    if kinds == {str}:
        return frozenset({"text"} if any(map(_is_number, entries)) else ())
    if kinds == {float}:
        rounded = any(abs(value) > _EXACT and value.is_integer() for value in entries)
        return frozenset({"numbers", _FLOATS} if rounded else {"numbers"})
    if kinds == {int}:
        large = any(not -_EXACT <= value <= _EXACT for value in entries)
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
