"""Reads OpenDP's debug texts of domains, and selects values of a domain that may expose a fault.

All releases describe domains, metrics and measures by texts such as `VectorDomain(AtomDomain(bounds=[0, 10], T=i32),
size=5)` and `MapDomain { key_domain: AtomDomain(T=String), ... }`.  The values are both ends of a domain, its middle,
nulls, NaN and the limits of the type.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpaudit.values import Record

_TOKEN = re.compile(
    r"\s*(?:(\"[^\"]*\")|([A-Za-z_]\w*(?:::\w+)*(?:<[^>]*>)?)|([-+]?(?:inf|NaN|[\d.]+(?:e[-+]?\d+)?))|(.))"
)
_CLOSE = ")}]"


@dataclass(frozen=True, slots=True)
class Node:
    """A name with positional and named parts, such as `AtomDomain(T=i32)`."""

    name: str  # "" for a list in square brackets
    parts: Sequence[Node | str | float] = ()
    named: Mapping[str, Node | str | float] = field(default_factory=dict)


def parsed(text: str) -> Node:
    """Parse a debug text; a text that does not have the form of OpenDP's texts gives a node with the name `text`."""
    tokens = [match for match in _TOKEN.finditer(text) if match[0].strip()]
    try:
        value, end = _value(tokens, 0)
    except IndexError:
        return Node(text)
    return value if isinstance(value, Node) and end == len(tokens) else Node(text)


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


def node(part: object) -> Node:
    """Return a part that is a node; other parts raise LookupError."""
    if not isinstance(part, Node):
        raise LookupError(part)
    return part


def cells_of(domain: Node, hints: Sequence[Record] = ()) -> Cells:
    """Return values of a domain of atoms; other domains raise LookupError."""
    if domain.name == "OptionDomain":
        inner = cells_of(node(domain.parts[0]), hints)
        return replace(inner, unusual=[("a null", None), *inner.unusual])
    if domain.name not in ("AtomDomain", "AllDomain"):
        raise LookupError(domain.name)
    kind = str(domain.named.get("T", domain.parts[0] if domain.parts else ""))
    if kind == "bool":
        return Cells(usual=[False, True], kind=kind)
    if kind == "String":
        usual = [hint for hint in hints if isinstance(hint, str)] or ["a", "b"]
        return Cells(usual=usual, unusual=[("a new category", "zz"), ("an empty text", "")], kind=kind)
    bounds = domain.named.get("bounds")
    nan = "true" in (domain.named.get("nan"), domain.named.get("nullable"))
    return _numbers(kind, bounds.parts if isinstance(bounds, Node) else (), hints, nan=nan)


def _numbers(kind: str, bounds: Sequence[Record], hints: Sequence[Record], *, nan: bool) -> Cells:
    whole = kind in INTEGERS
    least, most = INTEGERS[kind] if whole else (-FLOATS[kind][1], FLOATS[kind][1])
    limits = (bounds[0], bounds[1]) if len(bounds) == 2 else (least, most)
    cast = int if whole else float
    near = [one for one in hints if isinstance(one, int | float) and not isinstance(one, bool)]
    given = sorted({cast(one) for one in near if limits[0] <= one <= limits[1]})
    if len(bounds) == 2:
        middle = (bounds[0] + bounds[1]) // 2 if whole else (bounds[0] + bounds[1]) / 2
        usual = sorted({cast(bounds[0]), *given[:5], cast(middle), cast(bounds[1])})
    else:
        usual = given[:7] if len(given) > 1 else sorted({*given, cast(0), cast(10)})
    unusual: list[tuple[str, Record]] = [("NaN", math.nan)] if nan else []
    if len(bounds) != 2:
        unusual += [("the largest number", cast(most)), *([("the smallest number", cast(least))] * (least < 0))]
        unusual += [] if whole else [("infinity", math.inf), ("a subnormal number", FLOATS[kind][0])]
    return Cells(usual=usual, unusual=unusual, kind=kind, limits=limits)
