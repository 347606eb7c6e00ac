"""Converts outputs of one plain kind, such as numbers or equally long vectors, into arrays, and finds equal outputs."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import sys
import uuid
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import AnyArray
from dpaudit.outputs.entries import encoder_of
from dpaudit.values import Output, RawOutputs

Plain = AnyArray
"""An array of shape (n,) or (n, d) that contains integers, floats or booleans."""

_MAX_COLUMNS = 1024  # maximum length of an output vector that is read completely; longer vectors are summarised
_WORDS = {float: "float", int: "integer", bool: "boolean"}
_ENTRIES = {float, int, bool, np.float64, np.int64, list, tuple}  # types of the entries of vectors
_DTYPES = {"float64": "float", "int64": "integer", "bool": "boolean"}  # numpy's types that are also Python's
_LARGEST = 2**63  # of an integer in an array (exclusive)


def plain_kind(output: Output) -> str:
    """Return the kind of an output, such as "float" or "list of 3 integer"; "" if it is neither number nor vector.

    Outputs of different kinds are told apart, because the type of an output may depend on the dataset: the mechanism
    may return 1 on one dataset and 1.0 on the other.
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
    """Convert outputs into one array if all of them have the same plain kind.

    Returns:
        The kind, and an array of shape (n,) or (n, d); ("", an empty array) if the outputs have no kind in common.
        Rows of an array count as lists of floats, as `shared_calls.as_alone` gives them.
    """
    nothing = "", np.zeros(0)
    if isinstance(outputs, np.ndarray):
        if outputs.ndim == 1:
            return "float", outputs
        rows = outputs.reshape(len(outputs), -1) if len(outputs) else outputs.reshape(0, 1)
        plain = outputs.ndim <= 3 and 0 < rows.shape[1] <= _MAX_COLUMNS
        return ("".join(f"list of {length} " for length in outputs.shape[1:]) + "float", rows) if plain else nothing
    if not len(outputs) or len(set(map(type, outputs))) > 1:
        return nothing
    kinds = set(map(plain_kind, outputs)) if type(outputs[0]) is not float else {plain_kind(outputs[0])}
    if len(kinds) > 1 or "" in kinds:
        return nothing
    return kinds.pop(), array_of(outputs)


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
    _keys: Callable[[], list[Hashable]]

    def value_keys(self) -> list[Hashable]:
        """Return the key of each value, as `Outputs.value_keys` gives it."""
        return self._keys()


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
    """Return the key of an output that is not in an array: equal to that of the same output in an array.

    An object whose content dpaudit does not know has a key that no other object has.
    """
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
