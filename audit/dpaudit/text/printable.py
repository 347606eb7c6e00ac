"""Makes untrusted text safe to print: control characters cannot forge the contents of a terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Escape invisible characters and those that change the text direction, e.g. \\x00, \\u202e; keep line breaks."""
    return "".join(c if _visible(c) else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """Escape line breaks as well as the characters that `printable` escapes, so that text cannot add a line."""
    return printable(text).replace("\n", "\\n")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _visible(character: str) -> bool:
    joins = character in "\n\u200c\u200d"  # line break, and the joiners that Persian and emoji need
    return character.isprintable() or joins or unicodedata.category(character) == "Zs"
