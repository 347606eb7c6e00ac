"""Wraps text to a width in character cells, of which wide letters take two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len


def wrapped(text: str, width: int | None) -> list[str]:
    """Break text after spaces; if that does not suffice, after a hyphen, a comma or another sign; otherwise anywhere.

    Args:
        text: One line of text.
        width: Largest number of cells of a line; None for one line.

    Returns:
        At least one line.  Joined, they hold all characters of the text except spaces at the ends of lines.
    """
    if width is None or cell_len(text) <= width:
        return [text]
    lines, line = [], ""
    for word in re.findall(r"[^ ]+ *| +", text):
        for piece in _pieces(word, width):
            if line and cell_len(line + piece.rstrip(" ")) > width:
                lines.append(line.rstrip(" "))
                line = ""
            line += piece
    return [*lines, line.rstrip(" ")]


def packed(items: Sequence[str], separator: str, width: int | None) -> list[str]:
    """Join items, with as many on each line as fit; an item that is too long by itself is broken."""
    lines: list[str] = []
    for item in items:
        if lines and (width is None or cell_len(lines[-1] + separator + item) <= width):
            lines[-1] += separator + item
        else:
            lines += wrapped(item, width)
    return lines


def _pieces(word: str, width: int) -> Iterator[str]:
    """Yield the word if it fits on a line, otherwise parts of it that fit."""
    if cell_len(word.rstrip(" ")) <= width:
        yield word
        return
    for part in re.findall(r"[^-_./,;:=(]*[-_./,;:=(]+ *|[^-_./,;:=(]+", word):
        while cell_len(part.rstrip(" ")) > width:
            cut = max(1, _fitting(part, width))
            yield part[:cut]
            part = part[cut:]
        yield part


def _fitting(text: str, width: int) -> int:
    """Return how many characters of the text fit."""
    used = 0
    for number, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return number
    return len(text)
