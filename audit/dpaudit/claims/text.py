"""Parses claims from text such as "gaussian(mu=1)", the form that `str(claim)` returns.

Operations on claims can be nested: `repeated(subsampled(gaussian(mu=1), rate=0.01), n=1000)`.  Numbers may be
expressions, such as log(3) (`dpaudit.rounding`).  Common claims have short forms, such as "eps=1" and "(1, 1e-5)":

    SHORT     = PARTS | (PARTS)
    PARTS     = NUMBER, NUMBER | PARAMETER=NUMBER | PARAMETER=NUMBER, PARAMETER=NUMBER
    PARAMETER = epsilon | eps | ε | delta | δ | mu | μ | rho | ρ

Two numbers are epsilon and delta < 1.  A single number is no claim, because it may be an epsilon or a mu.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.compose import compose, repeated
from dpaudit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.claims.standard import ApproxDP, GaussianDP, LaplaceDP, PureDP, Reported
from dpaudit.claims.subsample import RELATIONS, group, subsampled
from dpaudit.claims.tabulated import PrivacyLoss, TabulatedTradeoff
from dpaudit.rounding import FUNCTIONS, number_of, read_number, upper
from dpaudit.text import nearest

CLAIMS: dict[str, type[TradeoffFunction]] = {
    kind.name: kind
    for kind in (PureDP, ApproxDP, GaussianDP, LaplaceDP, ZeroConcentratedDP, RenyiDP, TabulatedTradeoff, PrivacyLoss)
}


def symmetrized(claim: TradeoffFunction) -> TradeoffFunction:
    """Return max(f, f inverse), the promise for both directions of a pair."""
    return claim.symmetrized()


def inverse(claim: TradeoffFunction) -> TradeoffFunction:
    """Return the inverse of f, which is the promise for the direction (d1, d0) and exchanges the two errors."""
    return claim.inverse()


OPERATIONS: dict[str, Callable[..., TradeoffFunction]] = {
    operation.__name__: operation for operation in (compose, repeated, group, subsampled, symmetrized, inverse)
}


_KNOWN: dict[str, Callable[..., TradeoffFunction]] = {**CLAIMS, **OPERATIONS}

_OTHER_NAMES = {
    "renyi": ("rdp",),
    "pure": ("dp", "puredp"),
    "approximate": ("adp", "approx", "approxdp", "eps_delta"),
    "gaussian": ("gdp", "normal"),
    "zcdp": ("cdp", "rhozcdp"),
    "subsampled": ("subsample",),
    "repeated": ("repeat", "compose_n"),
    "compose": ("composed", "composition"),
}
_FROM_NOISE = {
    "gaussian": "for Gaussian noise, mu = sensitivity / sigma",
    "pure": "for Laplace noise, epsilon = sensitivity / scale",
    "laplace": "for Laplace noise, epsilon = sensitivity / scale",
}
"""How the parameter of a claim follows from the noise, by the name of the claim."""

_OTHER_PARAMETERS = {"e": "epsilon", "d": "delta", "alpha": "order", "p": "rate", "times": "n", "steps": "n"}


def parse_claim(text: str) -> TradeoffFunction:
    """Parse the text of a claim, such as "pure(epsilon=1)".

    Args:
        text: A claim, or operations on claims, in the form that `str(claim)` returns; or a short form such as
            "eps=1", "eps=1, delta=1e-5", "(1, 1e-5)", "mu=1" or "rho=0.5".  A number may be an expression of numbers
            with + - * / ** and log, ln, exp, sqrt, such as log(3) or 1/3.  "reported" is what a session reports.

    Returns:
        The claim that the text describes.

    Raises:
        ValueError: If the text is not a claim.  The message states the problem and, if possible, a correction.
    """
    if not isinstance(text, str):
        raise ValueError(f'a claim must be text such as "pure(epsilon=1)", got {_brief(repr(text))}')
    if text.strip() in (Reported.name, str(Reported())):
        return Reported()
    try:
        node = ast.parse(written_out(text) or text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        raise _not_a_claim(text) from None
    try:
        return _claim(node)
    except OverflowError as error:
        raise ValueError(f"the claim {_brief(text)} has a number that is too large: {error}") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"the claim {_brief(text)} is nested too deeply or too large") from None


def _claim(node: ast.expr) -> TradeoffFunction:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _KNOWN):
        raise _not_a_claim(ast.unparse(node), node)
    name, kind, form = node.func.id, _KNOWN[node.func.id], _form(node.func.id)
    allowed = [p.name for p in inspect.signature(kind).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    keywords: dict[str, ast.expr] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ValueError(f"claim must have the form {form}, got {_brief(node)}")
        usual = ALSO.get(keyword.arg, keyword.arg)
        parameter = usual if usual in allowed else keyword.arg
        if parameter in keywords:
            raise ValueError(f"{name} has the parameter {parameter} twice in {_brief(node)}  (write {form})")
        keywords[parameter] = keyword.value
        if parameter not in allowed:
            other = _OTHER_PARAMETERS.get(parameter)
            meant = other if other in allowed else nearest(parameter, allowed)
            hint = f"did you mean {meant}?" if meant else f"allowed are {', '.join(allowed) or 'none'}"
            if parameter in ("sigma", "std", "scale"):
                hint = f"a claim states the promise, not the noise; {_FROM_NOISE.get(name, _FROM_NOISE['gaussian'])}"
            raise ValueError(f"{name} has no parameter {parameter}; {hint}  (write {form})")
    read = _argument_of_claim if name in CLAIMS else _argument_of_operation
    try:
        positional = [read(argument) for argument in node.args]
        named = {
            parameter: value.id if parameter == "relation" and isinstance(value, ast.Name) else read(value)
            for parameter, value in keywords.items()
        }
        bound = inspect.signature(kind).bind(*positional, **named)
        if not isinstance(bound.arguments.get("claim", PureDP(0.0)), TradeoffFunction):
            raise TypeError(f"{bound.arguments['claim']} is not a claim")
    except TypeError as error:
        raise ValueError(f"claim must have the form {form}, got {_brief(node)} ({error})") from None
    return kind(*bound.args, **bound.kwargs)


def _argument_of_operation(node: ast.expr) -> object:
    if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
        return _claim(node)
    if isinstance(node, ast.Name) and node.id in RELATIONS:
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return _argument_of_claim(node)


def _argument_of_claim(node: ast.expr) -> object:
    numbers = []
    for number in node.elts if isinstance(node, ast.Tuple | ast.List) else [node]:
        value = number_of(number)
        if value is None:
            power = "; a power is written 10**-5" if any(isinstance(n, ast.BitXor) for n in ast.walk(number)) else ""
            raise TypeError(f"{_brief(number)} is not a number{power}")
        numbers.append(value)
    return numbers if isinstance(node, ast.Tuple | ast.List) else numbers[0]


def _not_a_claim(text: str, node: ast.expr | None = None) -> ValueError:
    """Return the error for a text that is not a claim.  The error suggests a correction if there is an obvious one."""
    quoted = _brief(text)
    missing = text.count("(") - text.count(")")
    if node is None and missing:
        return ValueError(f"claim {quoted} {'lacks a' if missing > 0 else 'has a superfluous'} )")
    if instead := _meant(text):
        return ValueError(f"{quoted} is not a claim; did you mean {instead}?")
    parts = node.elts if isinstance(node, ast.Tuple) else []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [node.left, node.right]
    if parts and all(isinstance(p, ast.Call) and isinstance(p.func, ast.Name) and p.func.id in CLAIMS for p in parts):
        return ValueError(f"{quoted} is not a claim; did you mean compose({', '.join(map(ast.unparse, parts))})?")
    name = re.match(r"\s*([A-Za-z_]\w*)", text)
    if name and name[1] not in _KNOWN:
        other = next((right for right, others in _OTHER_NAMES.items() if name[1].lower() in others), None)
        if near := other or nearest(name[1], _KNOWN):
            return ValueError(f"unknown claim {_brief(name[1])}; did you mean {near}?  Write {_form(near)}")
    if name and name[1] in _KNOWN and "(" not in text:
        return ValueError(f"{quoted} has no parameters; write {_form(name[1])}")
    return ValueError(
        f"claim must be one of {', '.join(_KNOWN)}, e.g. pure(epsilon=1); got {quoted}.  "
        "`dpaudit list claims` explains them"
    )


def _brief(claim: str | ast.expr) -> str:
    text = claim if isinstance(claim, str) else ast.unparse(claim)
    return repr(text if len(text) <= 80 else f"{text[:80]}…")


def _form(name: str) -> str:
    arguments = []
    for parameter in inspect.signature(_KNOWN[name]).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            arguments.append("CLAIM, CLAIM, ...")
        elif parameter.name == "claim":
            arguments.append("CLAIM")
        elif parameter.default is inspect.Parameter.empty:
            arguments.append(f"{parameter.name}=...")
    return f"{name}({', '.join(arguments)})"


_WEAKER_IF_LARGER = frozenset({"mu", "epsilon", "delta", "rho"})
_DECIMAL = re.compile(r"(?:\b([a-z]+)=)?(\d+\.\d{4,}(?:e-?\d+)?)")


def rounded(text: str) -> str:
    """Shorten the numbers in the text of a claim, for display.  The text never states a stronger claim as exact.

    Args:
        text: The text of a claim.  Numbers that accounting libraries computed may have 17 digits.

    Returns:
        The text.  Numbers that six significant digits express, up to rounding errors, are exact.  Any other number with
        four or more decimals has four significant digits and the sign "≈".  Numbers that make a claim weaker if they
        are larger, such as mu, are then rounded up.
    """

    def shortened(found: re.Match[str]) -> str:
        name, value = found[1], float(found[2])
        near = f"{value:.6g}"  # people write at most six digits, and accounting libraries make relative errors of 1e-9
        if math.isclose(float(near), value, rel_tol=1e-9):
            return f"{name}={near}" if name else near
        return f"{name or ''}≈{upper(value, 4) if name in _WEAKER_IF_LARGER else f'{value:.4g}'}"

    return _DECIMAL.sub(shortened, text)


ALSO = {"eps": "epsilon", "ε": "epsilon", "δ": "delta", "μ": "mu", "ρ": "rho"}
"""Other spellings of parameters.  Python reads the signs ϵ and µ as ε and μ."""

_HOMES: dict[tuple[str, ...], str] = {
    ("epsilon",): "pure",
    ("delta", "epsilon"): "approximate",
    ("mu",): "gaussian",
    ("rho",): "zcdp",
}


def written_out(text: str) -> str:
    """Return the complete form of a short form, such as "pure(epsilon=1)" for "eps=1"."""
    text = text.strip()
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    return _parsed(inner) or (_parsed(text) if inner != text else "")


def _meant(text: str) -> str:
    """Return the claim that a text such as "1", "(1e-5, 1)" or "epsilon: 1" probably means, or "" for other texts."""
    text = text.strip()
    if read_number(text) is not None:
        return f"pure(epsilon={text})"
    if (two := re.fullmatch(r"\(?([^(),]+),([^(),]+)\)?", text)) and read_number(two[1]):
        return written_out(f"{two[2]}, {two[1]}")  # delta first
    return written_out(re.sub(r"\s*:\s*", "=", text.strip("{}"))) if ":" in text else ""


def _parsed(parts: str) -> str:
    try:
        node = ast.parse(f"_({parts})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_"):
        return ""
    if not node.keywords and len(node.args) == 2:
        names, values = ["epsilon", "delta"], node.args
    elif not node.args:
        names = [ALSO.get(keyword.arg or "", keyword.arg or "") for keyword in node.keywords]
        values = [keyword.value for keyword in node.keywords]
    else:
        return ""
    home = _HOMES.get(tuple(sorted(names)))
    try:
        numbers = list(map(number_of, values))
    except (OverflowError, RecursionError):
        return ""
    if home is None or None in numbers:
        return ""
    if not node.keywords and not 0 <= (numbers[1] or 0) < 1:  # two numbers in the wrong order, or 1,5 for 1.5
        return ""
    return f"{home}({', '.join(f'{name}={ast.unparse(v)}' for name, v in zip(names, values, strict=True))})"
