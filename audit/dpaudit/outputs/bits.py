"""Extracts features of the binary representation of numbers.

Every finite nonzero float64 equals m 2^k, where m is an odd integer and k is an integer.  If noise is added to a query
answer, the rounding of the floating-point sum changes the exponent k.  Let fl denote rounding to the nearest float64.
Noise near 0 has significant bits far below the last bit of 1, which fl(1 + noise) loses.  An output fl(0 + noise) keeps
these bits, so the exponent k can reveal whether the answer is 0 or 1.  References: Mironov 2012, "On significance of
the least significant bits for differential privacy"; Haney, Desfontaines, Hartman, Shrestha & Hay 2022, arXiv
2207.13793.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import AnyArray, Array

PER_NUMBER = 3  # number of feature columns computed from the bits of each number
_ZERO, _NOT_FINITE, _MISSING = 4000.0, 4001.0, 4002.0  # placeholder exponents of zero, of infinities and of NaN
_LOW = 0xFF  # bit mask that selects the last eight bits of an integer


def bits(values: AnyArray | Sequence[int | float]) -> Array:
    """Return features of the binary representation of numbers as three columns.

    The features depend only on the numerical value.  For example, the integer 3 and the float 3.0 have the same
    features.  This property is necessary, because numpy converts an array of integers to floats if one entry is NaN.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "biu":
        return _integers(values)
    if isinstance(values, np.ndarray):
        return _floats(values.astype(np.float64))
    whole = [i for i, value in enumerate(values) if isinstance(value, int)]
    if not whole:
        return _floats(np.array(values, dtype=np.float64))
    table = _floats(np.array([math.nan if isinstance(value, int) else value for value in values], dtype=np.float64))
    for i in whole:
        value = int(values[i])
        last = (value & -value).bit_length() - 1
        table[i] = (value.bit_length() - 1, last, value & _LOW) if value else (_ZERO, _ZERO, 0)
    return table


def _integers(values: AnyArray) -> Array:
    unsigned = values.astype(np.int64).view(np.uint64) if values.dtype.kind in "bi" else values.astype(np.uint64)
    low = unsigned & (~unsigned + np.uint64(1))
    zero = unsigned == 0
    with np.errstate(divide="ignore"):
        last = np.where(zero, _ZERO, np.log2(low.astype(np.float64)))
        size = np.abs(values.astype(np.float64))
        first = np.where(zero, _ZERO, np.floor(np.log2(np.where(size > 0, size, 1.0))))
    return np.column_stack([first, last, (unsigned & np.uint64(_LOW)).astype(np.float64)])


def _floats(values: Array) -> Array:
    finite = np.isfinite(values)
    fraction, exponent = np.frexp(np.where(finite, values, 1.0))
    significand: npt.NDArray[np.int64] = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    zero = significand == 0
    trailing = np.log2(np.where(zero, 1, significand & -significand).astype(np.float64))
    special = np.where(np.isnan(values), _MISSING, np.where(finite, _ZERO, _NOT_FINITE))
    usual = finite & ~zero
    last = exponent - 53 + trailing
    right, left = np.clip(53 - exponent, 0, 62), np.clip(exponent - 53, 0, 8)  # a shift by 8 sets all eight bits to 0
    whole = (significand >> right << left) & _LOW
    whole = np.where(values < 0, -whole & _LOW, whole)  # the two's complement, as in an array of integers
    return np.column_stack(
        [
            np.where(usual, exponent - 1, special),
            np.where(usual, last, special),
            np.where(usual, np.where(last >= 0, whole, significand & _LOW), 0),
        ]
    )
