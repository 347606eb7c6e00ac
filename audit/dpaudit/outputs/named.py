"""What is known of one output: numbers, labels and counts under names, and the labels of values."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import uuid
import zlib
from collections.abc import Iterable

import numpy as np

from dpaudit.values import Foreign

LISTED = 4096  # elements of a long sequence of anything but numbers that are looked at at all
TEXT = 64  # characters up to which a text is a label as it stands


@dataclasses.dataclass(slots=True)
class Parts:
    """What is known of one output.  Names are words: they are shown to people."""

    numbers: dict[str, int | float] = dataclasses.field(default_factory=dict)  # a missing one is NaN
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    counts: dict[str, float] = dataclasses.field(default_factory=dict)  # a missing one is 0


def some_elements(elements: Iterable[Foreign]) -> list[Foreign]:
    """The first ones of a large set in a fixed order: a set's own order differs from process to process."""
    kinds = set(map(type, elements))
    in_order = sorted(elements) if kinds in ({str}, {int}, {bytes}) else sorted(elements, key=label_of)
    return in_order[:LISTED]


def label_of(value: object) -> str:
    """A short text that equal values share."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and len(value) <= TEXT:
        return repr(value)
    if isinstance(value, bool | int | float | np.number | np.bool_ | enum.Enum) or value is None:
        return str(value)
    if isinstance(value, tuple | list | frozenset):
        written = f"({', '.join(map(label_of, sorted(value, key=str) if isinstance(value, frozenset) else value))})"
        return written if len(written) <= TEXT else f"#{zlib.crc32(written.encode()):08x}"
    if isinstance(value, str):
        return f"#{zlib.crc32(value.encode('utf-8', 'replace')):08x}"
    if isinstance(value, bytes):
        return f"bytes {value.hex()}" if len(value) <= TEXT // 2 else f"#{zlib.crc32(value):08x}"
    if isinstance(value, pathlib.PurePath | uuid.UUID | decimal.Decimal | fractions.Fraction | datetime.date):
        return str(value)
    return type(value).__name__
