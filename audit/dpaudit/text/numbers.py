"""Reads numbers that people write, such as 1e5, 1/3, 2**-20 and log(3), without running any code.

The grammar is

    NUMBER   = LITERAL | (NUMBER) | +NUMBER | -NUMBER | NUMBER OPERATOR NUMBER | FUNCTION(NUMBER)
    OPERATOR = + | - | * | / | **
    FUNCTION = log | ln | exp | sqrt

with Python's literals and Python's order of operations.  All steps are computed with floats.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "log": math.log,
    "ln": math.log,
    "exp": math.exp,
    "sqrt": math.sqrt,
}
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
                one, other = number_of(left), number_of(right)
                return None if one is None or other is None else _OPERATORS[type(op)](one, other)
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
                inner = number_of(argument)
                return None if inner is None else FUNCTIONS[name](inner)
    except (ValueError, ZeroDivisionError):
        return None
    return None
