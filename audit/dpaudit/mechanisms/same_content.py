"""Compares two values by their fingerprints."""

from __future__ import annotations

from dpaudit.mechanisms.fingerprint import Unknowable, fingerprint
from dpaudit.values import Foreign


def same_content(a: object, b: object) -> bool:
    """Whether two values certainly have the same type and content."""
    try:
        return type(a) is type(b) and not _differ(a, b) and fingerprint(a) == fingerprint(b)
    except Unknowable:
        return False


def _differ(a: Foreign, b: Foreign) -> bool:
    """Whether two lists differ in length or in a record that they do not share, which is found without the others."""
    if type(a) is not list:
        return False
    others = ((x, y) for x, y in zip(a, b, strict=False) if x is not y and type(x) in (dict, list, tuple))
    return len(a) != len(b) or any(fingerprint(x) != fingerprint(y) for x, y in others)
