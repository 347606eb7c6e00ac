"""Checks that the parameters of claims are in range.  Error messages state the value and the allowed range."""

from __future__ import annotations

import math
from typing import SupportsFloat, SupportsIndex


def nonnegative(name: str, value: object) -> float:
    """Convert a finite number >= 0 to a float."""
    number = _number(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
    return number


def probability(name: str, value: object) -> float:
    """Convert a probability to a float."""
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return number


def count(name: str, value: object) -> int:
    """Convert a whole number >= 1 to an integer.  Floats with integer values, such as 1e4, are allowed."""
    number = _number(value)
    if not (1 <= number < math.inf and number == math.floor(number)):
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
    return int(number)


def _number(value: object) -> float:
    """Convert a number to a float.  If `value` is not a number, return NaN, which every range check rejects."""
    # The types float and int are checked first.  Checking the protocols takes as long as all other steps of
    # constructing a claim.
    if not isinstance(value, float | int | SupportsFloat | SupportsIndex) or isinstance(value, str | bytes):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
