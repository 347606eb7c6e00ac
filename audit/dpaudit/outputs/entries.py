"""Values in outputs: outcomes of runs, encoders of users, labels that are equal for equal values, and columns."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import math
import numbers
import pathlib
import uuid
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.numerics import EXACT, AnyArray
from dpaudit.values import Label, Output

LISTED = 4096  # maximum number of elements that are read from a sequence with non-numeric elements
_TIMES = datetime.date | datetime.time | datetime.timedelta
TEXT = 64  # maximum length of a text that is used as a label, in characters; longer texts are hashed


def label(value: object) -> Label:
    """Return a value as an argument of a feature: the value of a short text or an integer, or else `label_of` it."""
    if (type(value) is str and len(value) <= TEXT) or type(value) is int:
        return value
    written = label_of(value)
    if isinstance(value, str) and written == str.__repr__(value):
        return str.__str__(value)
    if isinstance(value, int | np.integer) and written == str(int(value)):
        return int(value)
    if isinstance(value, float | np.floating) and value and math.isfinite(value):  # 0.0 and -0.0 are equal
        return "{}", float(value)
    if isinstance(value, bytes) and len(value) <= TEXT // 2:
        return "bytes {}", (value.hex(),)
    return (written,)


def label_of(value: object) -> str:
    """Return a short text that represents a value.  Equal values have equal texts."""
    if type(value) is str and len(value) <= TEXT:  # texts are handled first, because they are the most frequent values
        return repr(value)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size <= TEXT):
        value = value.tolist()
    if isinstance(value, str) and len(value) <= TEXT:
        return repr(value)
    if isinstance(value, bool | int | float | np.number | np.bool_ | enum.Enum) or value is None:
        return str(value)
    if isinstance(value, tuple | list | frozenset):
        written = f"({', '.join(map(label_of, sorted(value, key=str) if isinstance(value, frozenset) else value))})"
        return written if len(written) <= TEXT else f"#{zlib.crc32(written.encode()):08x}"
    if isinstance(value, Mapping):  # a nested value of a table, such as a struct of polars
        return label_of(tuple(value.items()))
    if isinstance(value, str):
        return f"#{zlib.crc32(value.encode('utf-8', 'replace')):08x}"
    if isinstance(value, bytes):
        return f"bytes {value.hex()}" if len(value) <= TEXT // 2 else f"#{zlib.crc32(value):08x}"
    if isinstance(value, pathlib.PurePath | uuid.UUID | decimal.Decimal | fractions.Fraction | _TIMES | complex):
        return str(value)
    return type(value).__name__


def is_frame(value: object) -> bool:
    """Return whether a value is a data frame."""
    return hasattr(value, "columns") and hasattr(value, "shape") and hasattr(value, "__getitem__")


def is_missing(value: object) -> bool:
    """Return whether a value is None, `pandas.NA`, or a time that is missing (NaT)."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def row_names(value: object, most: int) -> list[object]:
    """Return the names of the first rows of a data frame or series."""
    index = getattr(value, "index", None)
    if index is None or not hasattr(index, "__array__"):  # the attribute `index` of a Python list is a method
        return []
    if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1):
        return []
    return list(index[:most])


def column(entries: object) -> AnyArray:
    """Return the entries of a column as an array."""
    array = np.asarray(entries)
    array = array[:, 0] if array.ndim > 1 else array  # several columns of a data frame may have the same name
    if array.dtype.kind != "O":
        return array
    listed = array.tolist()
    known = [entry for entry in listed if not is_missing(entry)]
    exact = all(
        isinstance(entry, float) or (isinstance(entry, numbers.Integral) and abs(int(entry)) <= EXACT)
        for entry in known
    )
    if not known or not exact:
        return array
    return np.array([np.nan if is_missing(entry) else float(entry) for entry in listed])


_ENCODERS: dict[type, Callable[[Any], object]] = {}


def register_encoder(kind: type, function: Callable[[Any], object]) -> None:
    """Register a function that converts objects of a class to a type that dpaudit can read.

    The objects may be outputs or parts of outputs.  A later registration for the same class replaces an earlier one.
    If several encoders apply, that of the first class in the method resolution order is used.

    Args:
        kind: The class of the objects, or of their base class.
        function: The encoder, which maps an object to a number, text, bytes, None, tuple, list, dict, set, array or
            data frame, which may contain objects of other classes with encoders.  It must keep all information that the
            analyst sees, and add no other, such as a memory address.

    Raises:
        TypeError: If `kind` is not a class or `function` is not callable.
    """
    if not isinstance(kind, type):
        raise TypeError(f"register_encoder needs a class, got {kind!r}")
    if not callable(function):
        raise TypeError(f"register_encoder needs a function for {kind.__name__}, got {function!r}")
    _ENCODERS[kind] = function


def encoder_of(output: Output) -> Callable[[Any], object] | None:
    """Return the encoder that is registered for the class of an output or for its nearest ancestor, or None."""
    if not _ENCODERS:
        return None
    return next((_ENCODERS[kind] for kind in type(output).__mro__ if kind in _ENCODERS), None)


class OutputError(Exception):
    """Raised for an output that dpaudit cannot read.  The message states the reason."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of a run that raised an exception, if the analyst observes the exception."""

    type: str  # the name of the class of the exception
    message: str

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """Return the outcome of a run that raised the given exception."""
        try:
            message = f"{error}"
        except Exception as another:
            message = f"(message unavailable: __str__ raised {type(another).__name__})"
        return cls(type(error).__name__, message)


@dataclass(frozen=True, slots=True)
class Timed:
    """An output together with the running time of the run, if the analyst observes running times."""

    output: Output
    seconds: float  # running time of the run, in seconds, >= 0
