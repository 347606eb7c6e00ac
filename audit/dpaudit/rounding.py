"""Numbers for people: rounding to the safe side, and numbers that people wrote."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext

FUNCTIONS: dict[str, Callable[[float], float]] = {"log": math.log, "ln": math.log, "exp": math.exp, "sqrt": math.sqrt}
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}


def read_number(text: str) -> float | None:
    """Return the number, or None if the text is not a number or the number is not finite."""
    try:
        value = number_of(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None
    return value if value is not None and math.isfinite(value) else None


def comma_meant(given: object, instead: str) -> str:
    """Return a hint for a number that is written with commas, or ""."""
    if isinstance(given, str) and re.fullmatch(r"[0-9]{1,20}(,[0-9]{1,20}){1,9}", given):
        return f"; write {given.replace(',', instead, 1 if instead else -1)}"
    return ""


def number_of(node: ast.expr) -> float | None:
    """Return the number of a syntax node, or None without one: another grammar, or 1/0 or log(0)."""
    try:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return float(value)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                inner = number_of(operand)
                return -inner if inner is not None and isinstance(sign, ast.USub) else inner
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                first, second = number_of(left), number_of(right)
                return None if first is None or second is None else _OPERATORS[type(op)](first, second)
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
                inner = number_of(argument)
                return None if inner is None else FUNCTIONS[name](inner)
    except (ValueError, ZeroDivisionError):
        pass
    return None


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NOT_KNOWN = "not known"


def lower(x: float, digits: int = 4, *, over: float = -math.inf) -> str:
    """Write a certified lower bound in plain text, rounded down, e.g. "1.0006"."""
    return _written(_bound(x, digits, ROUND_FLOOR, over), typeset=False)


def lower_as(x: float, specification: str) -> str:
    """Write a certified lower bound by a format specification such as ".3f", rounded down."""
    with localcontext() as context:
        context.rounding = ROUND_FLOOR
        return format(Decimal(repr(float(x))), specification)


def upper(x: float, digits: int = 2, *, under: float = math.inf) -> str:
    """Write an upper bound, such as a p-value, in plain text, rounded up, e.g. "8.9e-7"."""
    return _written(_bound(x, digits, ROUND_CEILING, under), typeset=False)


def at_least(x: float, digits: int = 4, *, over: float = -math.inf) -> str:
    """Write a certified lower bound with its sign, rounded down, e.g. "≥ 1.043"; "not known" for NaN."""
    return NOT_KNOWN if math.isnan(x) else f"≥\u00a0{_written(_bound(x, digits, ROUND_FLOOR, over))}"


def at_most(x: float, digits: int = 2, *, under: float = math.inf) -> str:
    """Write an upper bound with its sign, rounded up, e.g. "≤ 0.021"; "not known" for NaN."""
    return NOT_KNOWN if math.isnan(x) else f"≤\u00a0{_written(_bound(x, digits, ROUND_CEILING, under))}"


def number(x: float, digits: int = 3) -> str:
    """Write an estimate with `digits` significant digits, rounded to nearest, e.g. 0.0312, 3.1 × 10⁻⁷ or ∞."""
    return _written(_rounded(x, digits, ROUND_HALF_EVEN))


def count(n: int) -> str:
    """Write a whole number with separators of thousands."""
    return f"{n:,}".replace("-", "−")


def runs(n: int) -> str:
    """Write a number of runs per dataset."""
    return f"{count(n)} run{'' if n == 1 else 's'} per dataset"


def percent(rate: float, digits: int = 3) -> str:
    """Write a rate in per cent, rounded to nearest, with enough digits to distinguish a rate close to 1 from 1."""
    return _percent(rate, digits, ROUND_HALF_EVEN)


def percent_at_most(rate: float, digits: int = 3) -> str:
    """Write an upper bound of a rate in per cent, rounded up."""
    return _percent(Decimal(repr(float(rate))), digits, ROUND_CEILING)


def rate_at_most(rate: float, digits: int = 3) -> float:
    """Return the rate that `percent_at_most` shows, which is at least the given rate."""
    return max(float(_percent_value(Decimal(repr(float(rate))), digits, ROUND_CEILING) / 100), rate)


def percent_at_least(rate: float, digits: int = 3) -> str:
    """Write a confidence or a lower bound of a rate in per cent, rounded down, with enough digits to differ from 1."""
    return _percent(Decimal(repr(float(rate))), digits, ROUND_FLOOR)


def percent_beyond(confidence: float, digits: int = 3) -> str:
    """Write 1 - confidence, the largest probability of a false alarm, in per cent, rounded up."""
    return _percent(1 - Decimal(repr(float(confidence))), digits, ROUND_CEILING)


def seconds(s: float) -> str:
    """Write a duration in seconds, minutes or hours."""
    if not math.isfinite(s):
        return NOT_KNOWN
    if s < 120:
        return f"{number(s)}\u00a0s"
    minutes = round(s / 60)
    return f"{minutes}\u00a0min" if minutes < 120 else f"{minutes // 60}\u00a0h {minutes % 60}\u00a0min"


def _percent(rate: float | Decimal, digits: int, rounding: str) -> str:
    return f"{_written(_percent_value(rate, digits, rounding))}\u00a0%" if math.isfinite(rate) else NOT_KNOWN


def _percent_value(rate: float | Decimal, digits: int, rounding: str) -> Decimal:
    exact = 100 * rate if isinstance(rate, Decimal) else Decimal(100 * rate)
    if 0 < 100 - exact < 1:
        digits = max(digits, 2 - (100 - exact).adjusted() + 1)
    return _rounded(exact, digits, rounding)


def _bound(x: float, digits: int, rounding: str, limit: float) -> Decimal:
    """Round `x` in one direction, with more digits if rounding would change whether the value exceeds `limit`."""

    def telling(value: Decimal | float) -> bool:
        return value > limit if rounding == ROUND_FLOOR else value <= limit

    bound = _rounded(x, digits, rounding)
    while telling(x) and not telling(bound) and digits < 17:  # these identify a double
        digits += 1
        bound = _rounded(x, digits, rounding)
    return bound


def _rounded(x: float | Decimal, digits: int, rounding: str) -> Decimal:
    value = Decimal(repr(float(x))) if not isinstance(x, Decimal) else x
    if not value.is_finite() or value == 0:
        return value
    return value.quantize(Decimal((0, (1,), value.adjusted() - digits + 1)), rounding=rounding)


def _written(value: Decimal, *, typeset: bool = True) -> str:
    """Write all digits, with a power of ten if the number is very large or very small."""
    exponent = value.adjusted() if value.is_finite() and value else 0
    powered = not -4 <= exponent < 6
    if not value.is_finite():
        digits = NOT_KNOWN if value.is_nan() else "inf" if value > 0 else "-inf"
    else:
        digits = f"{value.scaleb(-exponent):f}" if powered else f"{value:,f}" if value else "0"
        digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    if not typeset:
        return f"{digits}e{exponent}" if powered else digits
    digits = digits.replace("-", "−").replace("inf", "∞")
    power = f"10{str(exponent).translate(_SUPERSCRIPT)}"
    if not powered:
        return digits
    return power if digits == "1" else f"{digits}\u00a0×\u00a0{power}"
