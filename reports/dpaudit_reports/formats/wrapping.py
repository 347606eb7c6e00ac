"""Wraps text to a width in character cells.  Wide letters occupy two cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len


def wrapped(text: str, width: int | None) -> list[str]:
    """Break text into lines of a maximum width.

    Text is broken after spaces.  A word that is too long is broken after punctuation such as a hyphen or a comma, and
    if necessary anywhere.

    Returns:
        At least one line.  Together, the lines hold all characters of the text except spaces at the ends of lines.
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
    """Join as many items on each line as fit; an item that is longer than a line is wrapped."""
    lines: list[str] = []
    for item in items:
        if lines and (width is None or cell_len(lines[-1] + separator + item) <= width):
            lines[-1] += separator + item
        else:
            lines += wrapped(item, width)
    return lines


def _pieces(word: str, width: int) -> Iterator[str]:
    """Yield the word if it fits on a line; otherwise, yield parts of the word that fit."""
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
    """Return the number of characters at the start of the text that fit."""
    used = 0
    for number, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return number
    return len(text)
