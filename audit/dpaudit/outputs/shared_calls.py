"""Gives each output of a shared call the value that it would have alone.

numpy gives all entries of an array one type.  So if one call of a mechanism returns many outputs, the type of an output
may depend on the other outputs of the call: next to one 0.5 or one NaN, the integer 3 becomes 3.0.  `tolist` keeps
these types, so lists from such calls are treated in the same way.  Two outputs are merged exactly where a shared call
could turn one into the other:

- A number is one exact number, whether it was an int, a float or a boolean of any size.  Integers never pass through
  float64 unless float64 represents them exactly.  -0.0 is not 0.0, and all NaNs are one.
- A sequence of outputs or entries is one list, whether it was a row of an array, a list or a tuple.

What numpy cannot undo is refused: numbers that became text next to a text, and integers beyond 2^53 that became floats
next to a float.  If each call makes one run, nothing is merged.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpaudit.numerics.arrays import AnyArray, Array
from dpaudit.outputs.outcomes import OutputError
from dpaudit.values import Foreign, Output, RawOutputs

_EXACT = 2**53  # a float64 represents all integers up to this absolute value exactly
WIDE = 1024  # numbers of an output from which on it stays an array, because lists would take too long
_WORDS = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "c": "complex numbers", "U": "text"}
_LARGE, _FLOATS = "integers beyond 2^53", "floats"


def as_alone(outputs: RawOutputs) -> Array | list[Output]:
    """Return the outputs of a shared call, each with the value that it would have alone.

    Args:
        outputs: The n outputs: an array, a list, or another sequence such as a series or a tensor.

    Returns:
        An array of float64 if float64 represents all outputs, and otherwise a list.  The function changes neither of
        these a second time.
    """
    if not isinstance(outputs, np.ndarray | list):
        outputs = np.asarray(outputs) if hasattr(outputs, "__array__") else list(outputs)
    if isinstance(outputs, np.ma.MaskedArray):
        outputs = list(outputs)
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
        return _numbers(outputs) if _is_float(outputs) else [_alone(row) for row in outputs]
    found = [_alone(output) for output in outputs]
    kinds = set(map(type, found))
    if kinds == {float} or (kinds == {list} and len(set(map(len, found))) == 1 and _all_floats(found)):
        return np.array(found)
    return found


def _alone(value: Foreign) -> Foreign:
    """Return the value of an output or of a part of an output, whatever stood beside it."""
    if isinstance(value, np.ma.MaskedArray):
        return value
    if isinstance(value, np.ndarray) and value.size <= WIDE:
        value = value.tolist()
    elif isinstance(value, np.ndarray):
        return _numbers(value) if value.dtype.kind in "biuf" and _is_float(value) else value
    elif isinstance(value, np.generic) and value.dtype.kind in "biufSU":
        value = value.item()
    kind = type(value)
    if kind is float or kind is bool:
        return float(value) if value == value else np.nan
    if kind is int:
        return float(value) if -_EXACT <= value <= _EXACT else value
    if kind is dict:
        return {key: _alone(entry) for key, entry in value.items()}
    if kind is not list and kind is not tuple:
        return value
    entries = [_alone(entry) for entry in value]
    numbers = set(map(type, entries))
    if numbers == {float} and len(entries) > WIDE:
        return np.array(entries)
    if numbers == {float, int} and all(float(entry).is_integer() for entry in entries):
        return list(map(int, entries))  # large integers of one array are compared exactly, and so are their neighbours
    return entries


def _numbers(array: AnyArray) -> Array:
    found: Array = array.astype(np.float64)
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

    A list of texts or floats counts only if one of them looks like a converted number.

    Args:
        outputs: The outputs as the mechanism returned them.
    """
    if not len(outputs):
        return frozenset()
    if isinstance(outputs, np.ndarray):
        if outputs.dtype.kind == "O":
            return frozenset()
        found = {_WORDS.get(outputs.dtype.kind, str(outputs.dtype))}
        if outputs.dtype.kind == "f":
            found.add(_FLOATS)
        elif outputs.dtype.kind in "iu" and _large(outputs):
            found.add(_LARGE)
        return frozenset(found)
    kinds = set(map(type, outputs)) if isinstance(outputs, list) else set()
    if kinds == {str} and any(_is_number(text) for text in outputs):
        return frozenset({"text"})
    if kinds == {float}:
        rounded = any(abs(value) > _EXACT and value.is_integer() for value in outputs)
        return frozenset({"numbers", _FLOATS} if rounded else {"numbers"})
    if kinds == {int}:
        large = any(not -_EXACT <= value <= _EXACT for value in outputs)
        return frozenset({"numbers", _LARGE} if large else {"numbers"})
    return frozenset()


def refuse_mixed_types(types: Iterable[str]) -> None:
    """Refuse the types of several calls if numpy may have changed an output in a way that cannot be undone.

    Args:
        types: The words that `types_of` returned for the calls on one pair of datasets.

    Raises:
        OutputError: If there are two such types.
    """
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
