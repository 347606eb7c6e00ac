"""SHA-256 of content that has no parts, and of parts together."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import hashlib
import struct
from pathlib import PurePath

import numpy as np

from dpaudit.values import Foreign

_DOUBLE = struct.Struct("<d")


class Unknowable(Exception):
    """A value whose content cannot be compared; says which one."""


def simple_content(value: Foreign) -> bytes | None:
    """The content of a value without parts; None if it has parts, or is of no known type."""
    kind = type(value)
    if value is None or value is Ellipsis or value is NotImplemented or kind is bool:
        return str(value).encode()
    if kind is float:
        return _DOUBLE.pack(value)
    if kind is complex:
        return _DOUBLE.pack(value.real) + _DOUBLE.pack(value.imag)
    if kind is int:
        return hex(value).encode()
    if kind is str:
        return str(value).encode("utf-8", "surrogatepass")
    if kind in (bytes, bytearray, memoryview):
        return bytes(value)
    if kind in (range, slice, decimal.Decimal, fractions.Fraction, datetime.timedelta):
        return repr(value).encode()
    if isinstance(value, datetime.date | datetime.time) and kind.__module__.split(".")[0] in ("datetime", "pandas"):
        return f"{value.isoformat()} {getattr(value, 'tzinfo', None)!r} {getattr(value, 'fold', 0)}".encode()
    if isinstance(value, PurePath):
        return str(value).encode("utf-8", "surrogatepass")
    if dataclasses.is_dataclass(value) or not isinstance(value, np.dtype):
        return None
    return f"{value!r} {value.str}".encode()


def address_of(value: Foreign) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def digest(kind: str, *parts: bytes) -> bytes:
    found = hashlib.sha256(f"{kind} {len(parts)}\n".encode())
    for part in parts:
        found.update(f"{len(part)}\n".encode())
        found.update(part)
    return found.digest()
