"""Text that a reader sees as it is, whatever is in it."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """The text with all that has no shape, or turns its direction, as Python writes it: \\x00, \\u202e."""
    return "".join(c if _has_shape(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def _has_shape(character: str) -> bool:
    joins = character in "\n\u200c\u200d"  # line break; joiners, part of how Persian and emoji are spelt
    return character.isprintable() or joins or unicodedata.category(character) == "Zs"
