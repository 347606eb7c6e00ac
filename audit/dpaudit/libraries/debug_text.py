"""Parses the debug texts by which OpenDP describes its domains, metrics and measures.

All releases of OpenDP have these texts, but only recent releases have accessors such as `element_domain`.  Examples are
`VectorDomain(AtomDomain(bounds=[0, 10], T=i32), size=5)` and `MapDomain { key_domain: AtomDomain(T=String), ... }`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"\s*(?:(\"[^\"]*\")|([A-Za-z_]\w*(?:::\w+)*(?:<[^>]*>)?)|([-+]?(?:inf|NaN|[\d.]+(?:e[-+]?\d+)?))|(.))"
)
_OPEN, _CLOSE = "({[", ")}]"


@dataclass(frozen=True, slots=True)
class Node:
    """A name with positional and named parts, such as `AtomDomain(T=i32)`."""

    name: str  # "" for a list in square brackets
    parts: Sequence[Node | str | float] = ()
    named: Mapping[str, Node | str | float] = field(default_factory=dict)

    def flag(self, name: str) -> bool:
        """Return whether a named part is `true`."""
        return self.named.get(name) == "true"


def parsed(text: str) -> Node:
    """Parse a debug text.

    Returns:
        The root of the tree.  A text that does not have the form of OpenDP's texts gives a node with the name `text`.
    """
    tokens = [match for match in _TOKEN.finditer(text) if match[0].strip()]
    try:
        value, end = _value(tokens, 0)
    except IndexError:
        return Node(text)
    if end != len(tokens):
        return Node(text)
    return value if isinstance(value, Node) else Node(str(value))


def _value(tokens: Sequence[re.Match[str]], at: int) -> tuple[Node | str | float, int]:
    quoted, name, number, sign = tokens[at].groups()
    at += 1
    if quoted is not None:
        return quoted[1:-1], at
    if number is not None:
        return float(number) if any(letter in number for letter in ".einNa") else int(number), at
    if sign == "[":
        parts, named, at = _inside(tokens, at)
        return Node("", parts, named), at
    if name is None:
        raise IndexError
    if at < len(tokens) and tokens[at][4] in ("(", "{"):
        parts, named, at = _inside(tokens, at + 1)
        return Node(name.split("<")[0].rpartition("::")[2], parts, named), at
    return name, at


def _inside(
    tokens: Sequence[re.Match[str]], at: int
) -> tuple[Sequence[Node | str | float], Mapping[str, Node | str | float], int]:
    """Parse the parts between brackets; `at` is the place after the opening bracket."""
    parts: list[Node | str | float] = []
    named: dict[str, Node | str | float] = {}
    while tokens[at][4] is None or tokens[at][4] not in _CLOSE:
        if tokens[at][4] in (",", ";"):
            at += 1
        elif tokens[at][2] and tokens[at + 1][4] in ("=", ":"):
            named[tokens[at][2]], at = _value(tokens, at + 2)
        else:
            part, at = _value(tokens, at)
            parts.append(part)
    return tuple(parts), named, at + 1
