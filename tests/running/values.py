"""Values of which an encoding must preserve every bit."""

from __future__ import annotations

import math
import struct
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any


def bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def nan(payload: int, negative: bool = False) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", 0x7FF8 << 48 | negative << 63 | payload))[0])


FLOATS = [
    0.0,
    -0.0,
    5e-324,
    -2.2250738585072009e-308,
    sys.float_info.max,
    math.inf,
    -math.inf,
    0.1,
    nan(12345, True),
    nan(1),
]
OTHERS: list[Any] = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, 2**200, -(2**200), "", "é\ud800", b"\x00\xff", [], (), {},
    1 + 2j, Decimal("1.50"), Decimal("-0"), Decimal("inf"), Fraction(1, 3), date(2020, 2, 29), timedelta(-1, 5, 7),
    datetime(2020, 1, 2, 3, 4, 5, 6), datetime(2020, 1, 2, tzinfo=UTC), {1, "b", (2.0,)}, frozenset([None]), set(),
    [1, 2.0], [True, False], [2**63, 1], (1, [2, (3,)]), {"a": {1: [None]}, (1, 2): b""},
]  # fmt: skip
