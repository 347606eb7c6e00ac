"""Reads and writes amounts of memory, such as "2 GB", "512 MiB" or a number of bytes."""

from __future__ import annotations

import re

from dpaudit.settings.limits import shown

MIN_MEMORY, MAX_MEMORY = 16 * 2**20, 2**50  # bytes; hardly any program starts with less, and no process needs more

_DECIMAL = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_UNITS = {name.casefold(): size for name, size in (_DECIMAL | _BINARY).items()}
_AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([A-Za-z]{1,3})")


def check_memory(given: object, name: str = "memory") -> int | None:
    """Check a memory limit and return it in bytes.

    Returns:
        The number of bytes; None for no limit.
    """
    if given is None:
        return None
    allowed = f'{name} must be text such as "2 GB" or "512 MB", or a whole number of bytes'.lstrip()
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise TypeError(f"{allowed}, got {shown(given)}")
    size = given if isinstance(given, int) else _bytes(given)
    if size is None:
        raise ValueError(f"{allowed}, got {shown(given)}; units are {', '.join((*_DECIMAL, *_BINARY))}")
    if not MIN_MEMORY <= size <= MAX_MEMORY:
        between = f"from {memory_text(MIN_MEMORY)} to {memory_text(MAX_MEMORY)}"
        raise ValueError(f"{name} must be {between}, got {shown(given)}".lstrip())
    return size


def _bytes(text: str) -> int | None:
    found = _AMOUNT.fullmatch(text.strip())
    unit = _UNITS.get(found[2].casefold()) if found else None
    return int(float(found[1]) * unit) if found and unit else None


def memory_text(size: int) -> str:
    """Return a number of bytes in the largest unit that shows it exactly, such as "512 MB", or in bytes."""
    for unit, one in sorted((_DECIMAL | _BINARY).items(), key=lambda item: item[1], reverse=True):
        if size % one == 0 and size >= one and unit != "B":
            return f"{size // one} {unit}"
    return f"{size:,} bytes"
