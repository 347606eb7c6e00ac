"""Finds the distinct values among outputs, and gives each value a key that is the same in every block."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import uuid
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import AnyArray
from dpaudit.outputs.plain import Plain, array_of, plain_kind
from dpaudit.values import Foreign, Output

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


def _content(value: Foreign) -> Hashable:
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
