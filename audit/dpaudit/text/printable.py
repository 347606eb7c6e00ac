"""Text from outside, made safe to print: control characters cannot forge what a terminal shows."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Escape every character that has no shape or turns the direction of text: \\x00, \\u202e.  Lines stay lines."""
    return "".join(c if _has_shape(c) else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """As `printable`, with line breaks escaped too: text from a file cannot add a line of its own."""
    return printable(text).replace("\n", "\\n")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _has_shape(character: str) -> bool:
    joins = character in "\n\u200c\u200d"  # line break; joiners, part of how Persian and emoji are spelt
    return character.isprintable() or joins or unicodedata.category(character) == "Zs"
