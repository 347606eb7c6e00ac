"""Limits the work that the text of a claim can ask for, before any curve is computed.

A text may come from a stranger, and a few letters can ask for minutes of accounting: each composition inside another
operation takes seconds of its own, and so may each term or Renyi order of a composition.
"""

from __future__ import annotations

import ast

MAX_TERMS = 60
"""Maximum number of terms such as subsampled claims in one text; a composition of them takes ten to twenty seconds."""

MAX_ORDERS = 500
"""Maximum number of orders of all Renyi claims of a text; 500 orders take eight seconds."""

MAX_INNER = 3
"""Maximum number of compositions inside other operations; each may take six seconds and a gigabyte."""

_TERMS = {"renyi", "subsampled", "group", "tabulated", "privacy_loss"}  # other claims take milliseconds each
_COMPOSITIONS = {"compose", "repeated"}
_CLOSED = ({"gaussian"}, {"zcdp"})  # claims whose compositions have a closed form
_OTHER_OPERATIONS = {"group", "subsampled", "symmetrized", "inverse"}


def check_work(claim: ast.expr) -> None:
    """Check the syntax tree of a claim.

    Args:
        claim: The parsed text.

    Raises:
        ValueError: If the text asks for too much work.
    """
    calls = [(_name(node), node) for node in ast.walk(claim) if isinstance(node, ast.Call)]
    terms = sum(name in _TERMS for name, _ in calls)
    orders = sum(_orders(node) for name, node in calls if name == "renyi")
    inner = _inner_compositions(claim)
    for number, most, what in (
        (terms, MAX_TERMS, f"terms such as {', '.join(sorted(_TERMS))}"),
        (orders, MAX_ORDERS, "orders of renyi"),
        (inner, MAX_INNER, "compositions inside group, subsampled, symmetrized or inverse"),
    ):
        if number > most:
            raise ValueError(
                f"the claim has {number:,} {what}; the maximum is {most}, because each takes long to compute.  "
                "Write equal mechanisms as repeated(CLAIM, n=...), or state the total as tabulated or approximate"
            )


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _orders(call: ast.Call) -> int:
    """Return the number of orders of a Renyi claim, which is the length of its longest list."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return max((len(value.elts) for value in values if isinstance(value, ast.Tuple | ast.List)), default=1)


def _inner_compositions(claim: ast.expr) -> int:
    """Count compositions inside other operations; those directly inside each other are one, closed forms none."""
    found = 0
    left: list[tuple[ast.AST, bool, bool]] = [(claim, False, False)]
    while left:
        node, inside, composed = left.pop()
        if isinstance(node, ast.Call):
            name = _name(node)
            found += inside and not composed and name in _COMPOSITIONS and not _closed(node)
            inside, composed = inside or name in _OTHER_OPERATIONS, name in _COMPOSITIONS
        left += [(one, inside, composed) for one in ast.iter_child_nodes(node)]
    return found


def _closed(composition: ast.Call) -> bool:
    names = {_name(node) for node in ast.walk(composition) if isinstance(node, ast.Call)}
    return names - _COMPOSITIONS in _CLOSED
