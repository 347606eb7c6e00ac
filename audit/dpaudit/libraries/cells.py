"""Selects values of a domain that may expose a fault: both ends, the middle, nulls, NaN and the limits of the type."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpaudit.libraries.debug_text import Node
from dpaudit.values import Record

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


def cells_of(domain: Node, hints: Sequence[Record] = ()) -> Cells | None:
    """Return values of a domain of atoms."""
    if domain.name == "OptionDomain" and domain.parts and isinstance(domain.parts[0], Node):
        inner = cells_of(domain.parts[0], hints)
        return None if inner is None else replace(inner, unusual=[("a null", None), *inner.unusual])
    if domain.name not in ("AtomDomain", "AllDomain"):
        return None
    kind = str(domain.named.get("T", domain.parts[0] if domain.parts else ""))
    if kind == "bool":
        return Cells(usual=[False, True], kind=kind)
    if kind == "String":
        usual = [hint for hint in hints if isinstance(hint, str)] or ["a", "b"]
        return Cells(usual=usual, unusual=[("a new category", "zz"), ("an empty text", "")], kind=kind)
    if kind in INTEGERS or kind in FLOATS:
        bounds = domain.named.get("bounds")
        return _numbers(kind, bounds.parts if isinstance(bounds, Node) else (), hints, nan=_has_nan(domain))
    return None


def _has_nan(domain: Node) -> bool:
    return domain.flag("nan") or domain.flag("nullable")


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
