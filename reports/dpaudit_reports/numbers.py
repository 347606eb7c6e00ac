"""Numbers as people read them.  A proven bound is only ever rounded to its safe side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NOT_KNOWN = "not known"


def number(x: float, digits: int = 3) -> str:
    """`x` to `digits` significant digits, e.g. 0.0312, 1,250, 3.1 × 10⁻⁷, ∞."""
    return _rounded(x, digits, ROUND_HALF_EVEN)


def at_least(x: float, digits: int = 4) -> str:
    """A certified lower bound, rounded down, with its sign: "≥ 1.043"."""
    return NOT_KNOWN if math.isnan(x) else f"≥\u00a0{_rounded(x, digits, ROUND_FLOOR)}"


def at_most(x: float, digits: int = 2) -> str:
    """A certified upper bound, such as a p-value, rounded up, with its sign: "≤ 0.021"."""
    return NOT_KNOWN if math.isnan(x) else f"≤\u00a0{_rounded(x, digits, ROUND_CEILING)}"


def count(n: int) -> str:
    """A whole number with its thousands apart."""
    return f"{n:,}".replace("-", "−")


def runs(n: int) -> str:
    """A number of runs, with its noun."""
    return f"{count(n)} run{'' if n == 1 else 's'} per dataset"


def percent(rate: float, digits: int = 3) -> str:
    """A rate in per cent; of a rate close to 1 as many digits as tell it from 1."""
    if not math.isfinite(rate):
        return NOT_KNOWN
    exact = Decimal(100 * float(rate))
    if 0 < 100 - exact < 1:
        digits = max(digits, 2 - (100 - exact).adjusted() + 1)
    return f"{_rounded(exact, digits, ROUND_HALF_EVEN)}\u00a0%"


def seconds(s: float) -> str:
    """A duration."""
    if not math.isfinite(s):
        return NOT_KNOWN
    if s < 120:
        return f"{number(s)}\u00a0s"
    minutes = round(s / 60)
    return f"{minutes}\u00a0min" if minutes < 120 else f"{minutes // 60}\u00a0h {minutes % 60}\u00a0min"


def _rounded(x: float | Decimal, digits: int, rounding: str) -> str:
    value = Decimal(repr(float(x))) if not isinstance(x, Decimal) else x
    if value.is_nan():
        return NOT_KNOWN
    if value.is_infinite():
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    value = value.quantize(Decimal((0, (1,), value.adjusted() - digits + 1)), rounding=rounding)
    exponent = value.adjusted()
    if -4 <= exponent < 6:
        return _trimmed(f"{value:,f}")
    factor, power = _trimmed(f"{value.scaleb(-exponent):f}"), f"10{str(exponent).translate(_SUPERSCRIPT)}"
    return power if factor == "1" else f"{factor}\u00a0×\u00a0{power}"


def _trimmed(digits: str) -> str:
    """Without the zeros at the end of a fraction; with a proper minus."""
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits).replace("-", "−")
