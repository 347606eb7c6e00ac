"""Claims from text: `parse_claim("gaussian(mu=1)")`.  `str(claim)` gives that form back.

Operations nest: `repeated(subsampled(gaussian(mu=1), rate=0.01), n=1000)`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from dpaudit.claims.approximate import ApproxDP
from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.composition import compose, repeated
from dpaudit.claims.concentrated import ZeroConcentratedDP
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.groups import group
from dpaudit.claims.laplace import LaplaceDP
from dpaudit.claims.losses import PrivacyLoss
from dpaudit.claims.pure import PureDP
from dpaudit.claims.renyi import RenyiDP
from dpaudit.claims.subsampling import RELATIONS, subsampled
from dpaudit.claims.tabulated import TabulatedTradeoff

CLAIMS: dict[str, type[TradeoffFunction]] = {
    kind.name: kind
    for kind in (
        PureDP,
        ApproxDP,
        GaussianDP,
        LaplaceDP,
        ZeroConcentratedDP,
        RenyiDP,
        TabulatedTradeoff,
        PrivacyLoss,
    )
}


def symmetrized(claim: TradeoffFunction) -> TradeoffFunction:
    """max(f, f inverse): the promise for both orders of a pair, in one curve."""
    return claim.symmetrized()


def inverse(claim: TradeoffFunction) -> TradeoffFunction:
    """f inverse: the promise with d0 and d1 exchanged."""
    return claim.inverse()


OPERATIONS: dict[str, Callable[..., TradeoffFunction]] = {
    operation.__name__: operation for operation in (compose, repeated, group, subsampled, symmetrized, inverse)
}


def parse_claim(text: str) -> TradeoffFunction:
    """The claim that `text` states, e.g. "pure(epsilon=1)".  ValueError with what is allowed otherwise."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise _unknown(text) from None
    return _claim(node)


def _claim(node: ast.expr) -> TradeoffFunction:
    text = ast.unparse(node)
    known: dict[str, Callable[..., TradeoffFunction]] = {**CLAIMS, **OPERATIONS}
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known):
        raise _unknown(text)
    name = node.func.id
    read = _value if name in CLAIMS else _argument
    try:
        positional = [read(a) for a in node.args]
        named = {k.arg: read(k.value) for k in node.keywords if k.arg is not None}
        bound = inspect.signature(known[name]).bind(*positional, **named)
        if not isinstance(bound.arguments.get("claim", PureDP(0.0)), TradeoffFunction):
            raise TypeError(f"{bound.arguments['claim']} is not a claim")
    except TypeError as error:
        raise ValueError(f"claim must read {_form(name, known[name])}, got {text!r} ({error})") from None
    return known[name](*bound.args, **bound.kwargs)


def _argument(node: ast.expr) -> Any:
    """A claim, a number, or the name of a relation."""
    if isinstance(node, ast.Call):
        return _claim(node)
    if isinstance(node, ast.Name) and node.id in RELATIONS:
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return _value(node)


def _value(node: ast.expr) -> Any:
    """A number or a list of numbers."""
    if isinstance(node, ast.Tuple | ast.List):
        return [_number(element) for element in node.elts]
    return _number(node)


def _number(node: ast.expr) -> float:
    try:
        value: Any = ast.literal_eval(node)
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{ast.unparse(node)} is not a number")
    return float(value)


def _unknown(text: str) -> ValueError:
    known: dict[str, Callable[..., TradeoffFunction]] = {**CLAIMS, **OPERATIONS}
    forms = ", ".join(_form(name, kind) for name, kind in known.items())
    return ValueError(f"claim must be one of {forms}; got {text!r}")


def _form(name: str, kind: Callable[..., TradeoffFunction]) -> str:
    """How the claim or operation is written."""
    shown = []
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            shown.append("CLAIM, CLAIM, ...")
        elif parameter.name == "claim":
            shown.append("CLAIM")
        elif parameter.default is inspect.Parameter.empty:
            shown.append(f"{parameter.name}=...")
    return f"{name}({', '.join(shown)})"
