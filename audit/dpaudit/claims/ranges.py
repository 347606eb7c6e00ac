"""Parameters of claims and the ranges they must lie in.  A message names the value and the range."""

from __future__ import annotations

import math
from typing import SupportsFloat, SupportsIndex


def nonnegative(name: str, value: object) -> float:
    """`value` as a finite float >= 0, else ValueError."""
    number = _number(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
    return number


def probability(name: str, value: object) -> float:
    """`value` as a float in [0, 1], else ValueError."""
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return number


def count(name: str, value: object) -> int:
    """`value` as an integer >= 1, else ValueError.  2.0 and 1e4 are integers, too."""
    number = _number(value)
    if not (1 <= number < math.inf and number == math.floor(number)):
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
    return int(number)


def _number(value: object) -> float:
    """NaN, which is in no range, for whatever is not a number."""
    if isinstance(value, str | bytes) or not isinstance(value, SupportsFloat | SupportsIndex):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
