"""Short forms of claims, such as "eps=1" and "(1, 1e-5)".

The grammar of a short form is

    SHORT     = PARTS | (PARTS)
    PARTS     = NUMBER, NUMBER | PARAMETER=NUMBER | PARAMETER=NUMBER, PARAMETER=NUMBER
    PARAMETER = epsilon | eps | ε | delta | δ | mu | μ | rho | ρ

`dpaudit.text.numbers` has the grammar of NUMBER.  Two numbers are epsilon and delta < 1.  A single number is no
claim, because it may be an epsilon or a mu.
"""

from __future__ import annotations

import ast
import re

from dpaudit.text.numbers import number_of, read_number

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


def meant(text: str) -> str:
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
    if home is None or not all(_is_number(value) for value in values):
        return ""
    if not node.keywords and not 0 <= (number_of(values[1]) or 0) < 1:  # two numbers in the wrong order, or 1,5 for 1.5
        return ""
    return f"{home}({', '.join(f'{name}={ast.unparse(v)}' for name, v in zip(names, values, strict=True))})"


def _is_number(node: ast.expr) -> bool:
    try:
        return number_of(node) is not None
    except (OverflowError, RecursionError):
        return False
