"""Reads the data frames and series of pandas, polars and similar libraries without importing these libraries."""

from __future__ import annotations

import numbers

import numpy as np

from dpaudit.numerics.arrays import AnyArray

_EXACT = 2**53  # a float64 represents all integers up to this absolute value exactly


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
    if not known or not all(_exactly_a_float(entry) for entry in known):
        return array
    return np.array([np.nan if is_missing(entry) else float(entry) for entry in listed])


def _exactly_a_float(entry: object) -> bool:
    """Return whether a value is a number that a float64 represents exactly."""
    return isinstance(entry, float) or (isinstance(entry, numbers.Integral) and abs(int(entry)) <= _EXACT)
