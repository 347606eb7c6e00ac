"""Reads OpenDP's debug texts of domains, and selects values of a domain that may expose a fault.

The texts are such as `VectorDomain(AtomDomain(bounds=[0, 10], T=i32), size=5)`; the values are both ends, the middle,
nulls, NaN and the limits of the type.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpaudit.values import Record

_TOKEN = re.compile(
    r"\s*(?:(\"[^\"]*\")|([A-Za-z_]\w*(?:::\w+)*(?:<[^>]*>)?)|([-+]?(?:inf|NaN|[\d.]+(?:e[-+]?\d+)?))|(.))"
)


@dataclass(frozen=True, slots=True)
class Node:
    """A name with positional and named parts, such as `AtomDomain(T=i32)`.  A part is a node, a text or a number."""

    name: str  # "" for a list in square brackets
    parts: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


def parsed(text: str) -> Node:
    """Parse a debug text; a text that does not have the form of OpenDP's texts gives a node with the name `text`."""
    tokens = [match for match in _TOKEN.finditer(text) if match[0].strip()]
    try:
        value, end = _value(tokens, 0)
    except IndexError:
        return Node(text)
    return value if isinstance(value, Node) and end == len(tokens) else Node(text)


def _value(tokens: Sequence[re.Match[str]], at: int) -> tuple[Node | str | float, int]:
    """Parse the value that begins at a token, and return the place after its last token."""
    quoted, name, number, sign = tokens[at].groups()
    at += 1
    if quoted is not None:
        return quoted[1:-1], at
    if number is not None:
        return float(number) if any(letter in number for letter in ".einNa") else int(number), at
    if name is None and sign != "[":
        raise IndexError
    if name is not None:
        if at == len(tokens) or tokens[at][4] not in ("(", "{"):
            return name, at
        at += 1
    parts: list[Node | str | float] = []
    named: dict[str, Node | str | float] = {}
    while tokens[at][4] not in (")", "}", "]"):
        if tokens[at][4] in (",", ";"):
            at += 1
        elif tokens[at][2] and tokens[at + 1][4] in ("=", ":"):
            named[tokens[at][2]], at = _value(tokens, at + 2)
        else:
            part, at = _value(tokens, at)
            parts.append(part)
    return Node((name or "").split("<")[0].rpartition("::")[2], tuple(parts), named), at + 1


_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "i128": 128, "isize": 64}
INTEGERS: dict[str, tuple[int, int]] = {
    **{name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in _BITS.items()},
    **{name.replace("i", "u", 1): (0, 2**bits - 1) for name, bits in _BITS.items()},
}
"""The smallest and the largest value of each integer type of OpenDP."""

FLOATS = {"f32": (1e-45, 3.4028234663852886e38), "f64": (5e-324, 1.7976931348623157e308)}
"""The smallest positive and the largest value of each float type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Values of one domain."""

    usual: Sequence[Record]
    unusual: Sequence[tuple[str, Record]] = ()
    kind: str
    limits: tuple[float, float] | None = None

    @property
    def low(self) -> Record:
        return self.usual[0]

    @property
    def high(self) -> Record:
        return self.usual[-1]

    @property
    def middle(self) -> Record:
        return self.usual[len(self.usual) // 2]

    def exact(self, number: float) -> Record | None:
        """Return a number in the domain's type, or None outside the domain.  Integers are rounded down."""
        if self.limits is None or not self.limits[0] <= number <= self.limits[1]:
            return None
        if self.kind in INTEGERS:
            return math.floor(number)
        return struct.unpack("f", struct.pack("f", number))[0] if self.kind == "f32" else float(number)


def cells_of(domain: object, hints: Sequence[Record] = ()) -> Cells:
    """Return values of a domain of atoms, among them the hints in the domain; other domains raise LookupError."""
    if not isinstance(domain, Node) or domain.name not in ("AtomDomain", "AllDomain", "OptionDomain"):
        raise LookupError(domain)
    if domain.name == "OptionDomain":
        inner = cells_of(domain.parts[0], hints)
        return replace(inner, unusual=[("a null", None), *inner.unusual])
    kind = str(domain.named.get("T", domain.parts[0] if domain.parts else ""))
    if kind == "bool":
        return Cells(usual=[False, True], kind=kind)
    if kind == "String":
        texts = [hint for hint in hints if isinstance(hint, str)] or ["a", "b"]
        return Cells(usual=texts, unusual=[("a new category", "zz"), ("an empty text", "")], kind=kind)
    cast = int if kind in INTEGERS else float
    least, most = INTEGERS[kind] if kind in INTEGERS else (-FLOATS[kind][1], FLOATS[kind][1])
    stated = domain.named.get("bounds")  # a text such as None in some releases
    bounds = stated.parts if isinstance(stated, Node) and len(stated.parts) == 2 else ()
    low, high = bounds or (least, most)
    numbers = [hint for hint in hints if isinstance(hint, int | float) and not isinstance(hint, bool)]
    near = sorted({cast(hint) for hint in numbers if low <= hint <= high})
    nan = "true" in (domain.named.get("nan"), domain.named.get("nullable"))
    unusual: list[tuple[str, Record]] = [("NaN", math.nan)] if nan else []
    usual: list[float]
    if bounds:
        middle = (low + high) // 2 if cast is int else (low + high) / 2
        usual = sorted({cast(low), *near[:5], cast(middle), cast(high)})
    else:
        usual = near[:7] if len(near) > 1 else sorted({*near, cast(0), cast(10)})
        unusual += [("the largest number", cast(most)), *([("the smallest number", cast(least))] * (least < 0))]
        unusual += [] if cast is int else [("infinity", math.inf), ("a subnormal number", FLOATS[kind][0])]
    return Cells(usual=usual, unusual=unusual, kind=kind, limits=(low, high))
