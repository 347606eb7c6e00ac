"""Writes plain values as Python literals that cannot contain code, control characters or secrets."""

from __future__ import annotations

import keyword
import math
import re
from typing import Any

import numpy as np

from dpaudit.text import MASK, masked, masked_values, one_line, shortened
from dpaudit.values import JsonObject

MAX_LITERAL = 4_000
"""Maximum length of the literal of one value, in characters.  Longer scripts cannot be read or pasted."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Unwritable(Exception):
    """Raised if a script cannot be written.  The message states the reason and what to do."""


def literal(value: Any) -> str:
    """Return an expression of ASCII characters whose value is the given plain value."""
    refuse_secrets(value)
    try:
        text = _written(value)
    except (ValueError, RecursionError):  # Python refuses to write integers with thousands of digits
        raise Unwritable("a value is too long or nested too deeply for a script") from None
    if len(text) > MAX_LITERAL:
        raise Unwritable(f"a value has {len(text):,} characters; a script may hold {MAX_LITERAL:,}")
    return text


def refuse_secrets(value: Any) -> None:
    """Raise Unwritable if a value looks like a secret, or if a mask has already replaced a secret in it."""
    if MASK in repr(masked_values(value)):
        raise Unwritable("a value looks like a secret, which no script may contain")


def _written(value: Any) -> str:
    match value:
        case None | bool() | str() | bytes():
            return ascii(value)
        case float():
            return repr(float(value)) if math.isfinite(value) else f"float({str(float(value))!r})"
        case int():
            return repr(int(value))
        case list() if len(value) >= 8 and len({repr(one) for one in value}) == 1:
            one = _written(value[0])
            if value[0] is None or isinstance(value[0], bool | int | float | str | bytes):
                return f"[{one}] * {len(value)}"
            return f"[{one} for _ in range({len(value)})]"  # separate objects, which a mechanism may change in place
        case list():
            return f"[{', '.join(_written(one) for one in value)}]"
        case tuple():
            return f"({', '.join(_written(one) for one in value)}{',' * (len(value) == 1)})"
        case set() if value:
            return f"{{{', '.join(sorted(_written(one) for one in value))}}}"
        case dict():
            return f"{{{', '.join(f'{_written(k)}: {_written(v)}' for k, v in value.items())}}}"
        case np.ndarray() if value.dtype.kind in "biuf":
            return f"np.array({_written(value.tolist())}, dtype={value.dtype.name!r})"
    raise Unwritable(f"a value of type {type(value).__name__} has no literal")


def comment(text: str, most: int = 200) -> str:
    """Return foreign text for a comment: one line of ASCII characters, shortened, with a mask in place of secrets."""
    text = one_line(masked(text))
    text = text if len(text) <= most else f"{text[:most]}..."
    return text.encode("ascii", "backslashreplace").decode("ascii")


def brief_text(text: str) -> str:
    """Return foreign text for a message."""
    return repr(shortened(one_line(masked(text)), 80))


def checked_name(name: str, what: str) -> str:
    """Return a dotted Python name."""
    parts = name.split(".")
    if not all(_NAME.fullmatch(part) and not keyword.iskeyword(part) for part in parts):
        raise Unwritable(f"{what} must be a valid Python name, got {brief_text(name)}")
    return name


def arguments(values: Any) -> str:
    """Return the arguments of a call: a list becomes positional arguments, and a dict becomes named arguments."""
    if isinstance(values, list | tuple):
        return ", ".join(map(literal, values))
    named = named_arguments(values)
    refuse_secrets(named)  # the names help to recognise secrets
    if not all(_NAME.fullmatch(name) and not keyword.iskeyword(name) for name in named):
        return f"**{literal(named)}"
    return ", ".join(f"{name}={literal(value)}" for name, value in named.items())


def named_arguments(values: Any) -> JsonObject:
    """Return the named arguments of a call as a dict; {} for None."""
    if values is not None and not (isinstance(values, dict) and all(isinstance(name, str) for name in values)):
        raise Unwritable(f"the arguments of a call must be a dict whose keys are texts, got {brief_text(repr(values))}")
    return values or {}
