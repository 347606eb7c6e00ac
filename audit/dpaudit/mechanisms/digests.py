"""Computes SHA-256 digests of simple values and of sequences of parts."""

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
    """Raised if the content of a value cannot be compared; the message names the value."""


def simple_content(value: Foreign) -> bytes | None:
    """Return the content of a value without parts, or None if the value has parts or an unknown type."""
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
    """Return the module and the qualified name of a function or class, joined by a dot."""
    return f"{value.__module__}.{value.__qualname__}"


def digest(kind: str, *parts: bytes) -> bytes:
    """Return the SHA-256 of a sequence of parts.  Different kinds or parts give different hashed texts."""
    found = hashlib.sha256(f"{kind} {len(parts)}\n".encode())
    for part in parts:
        found.update(f"{len(part)}\n".encode())
        found.update(part)
    return found.digest()
