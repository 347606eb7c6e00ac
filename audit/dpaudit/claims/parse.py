"""Claims from text: `parse_claim("gaussian(mu=1)")`.  `str(claim)` gives that form back."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from dpaudit.claims.approximate import ApproxDP
from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.pure import PureDP

CLAIMS: dict[str, type[TradeoffFunction]] = {kind.name: kind for kind in (PureDP, ApproxDP, GaussianDP)}


def parse_claim(text: str) -> TradeoffFunction:
    """The claim that `text` states, e.g. "pure(epsilon=1)".  ValueError with what is allowed otherwise."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        call = None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in CLAIMS):
        raise ValueError(f"claim must be one of {', '.join(_form(k) for k in CLAIMS.values())}; got {text!r}")
    kind = CLAIMS[call.func.id]
    try:
        positional = [_number(a) for a in call.args]
        named = {k.arg: _number(k.value) for k in call.keywords if k.arg is not None}
        bound = inspect.signature(kind).bind(*positional, **named)
    except TypeError as error:
        raise ValueError(f"claim must read {_form(kind)}, got {text!r} ({error})") from None
    return kind(*bound.args, **bound.kwargs)


def _number(node: ast.expr) -> float:
    try:
        value: Any = ast.literal_eval(node)
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{ast.unparse(node)} is not a number")
    return float(value)


def _form(kind: type[TradeoffFunction]) -> str:
    return f"{kind.name}({', '.join(f'{p}=...' for p in inspect.signature(kind).parameters)})"
