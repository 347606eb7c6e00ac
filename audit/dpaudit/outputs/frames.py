"""Data frames and series of pandas, polars and the like, read without importing any of them."""

from __future__ import annotations

import numbers

import numpy as np

from dpaudit.numerics.arrays import AnyArray

_EXACT = 2**53


def is_frame(value: object) -> bool:
    """Whether this is a data frame."""
    return hasattr(value, "columns") and hasattr(value, "shape") and hasattr(value, "__getitem__")


def is_missing(value: object) -> bool:
    """Whether this is None or the missing value of pandas, which is not even equal to itself."""
    return value is None or type(value).__name__ == "NAType"


def row_names(value: object, most: int) -> list[object]:
    """The names of the first rows of a frame or series; none if it has no index, or one that only numbers the rows."""
    index = getattr(value, "index", None)
    if index is None or not hasattr(index, "__array__"):  # a list has a method of that name
        return []
    if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1):
        return []
    return list(index[:most])


def column(entries: object) -> AnyArray:
    """The entries of a column, (rows,); numbers among which some are missing are floats, NaN where they are.

    Integers that floats cannot hold stay as they are.
    """
    array = np.asarray(entries)
    array = array[:, 0] if array.ndim > 1 else array  # several columns of one name
    if array.dtype.kind != "O":
        return array
    listed = array.tolist()
    known = [entry for entry in listed if not is_missing(entry)]
    if not known or not all(_exactly_a_float(entry) for entry in known):
        return array
    return np.array([np.nan if is_missing(entry) else float(entry) for entry in listed])


def _exactly_a_float(entry: object) -> bool:
    """Whether this is a number that floats can hold."""
    return isinstance(entry, float) or (isinstance(entry, numbers.Integral) and abs(int(entry)) <= _EXACT)
