"""Makes text safe where it is written: on a terminal, in a stream that lacks some characters, and in HTML."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

_PLAIN = str.maketrans(
    {
        "▲": "X", "○": "o", "◇": "?",  # signs of verdicts
        "≥": ">=", "≤": "<=", "≈": "~", "−": "-", "×": "x", "∞": "inf", "⁄": "/",
        "ε": "epsilon", "δ": "delta", "μ": "mu", "ρ": "rho", "α": "alpha", "β": "beta",
        "·": "-", "…": "...", "–": "-", "—": "-", "─": "-", "━": "-", "\u00a0": " ",
    }
)  # fmt: skip
_RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
_LOWERED = str.maketrans(_RAISED, "-0123456789")


def printable(text: str) -> str:
    """Escape invisible characters and changes of the text direction, e.g. \\x00 and \\u202e; keep line breaks."""
    return "".join(c if _visible(c) else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """Escape line breaks as well as the characters that `printable` escapes, so that text cannot add a line."""
    return printable(text).replace("\n", "\\n")


def joined(text: str) -> str:
    """Join the indented lines of a message of dpaudit with spaces, and escape all else like `one_line`."""
    return one_line(re.sub(r"\n +", " ", text))


def shortened(text: str, most: int = 300) -> str:
    """Return the text; if it has more than `most` characters, cut the rest and append an ellipsis."""
    return text if len(text) <= most else f"{text[:most]}…"


def quoted_lines(text: str) -> str:
    """Escape characters like `printable`, and indent every line after the first, so that text cannot forge a line."""
    first, *others = printable(text).split("\n")
    return "\n".join([first, *(line if line.startswith("  ") or not line else f"  {line}" for line in others)])


def encodable(text: str, encoding: str | None) -> str:
    """Return the text in ASCII if the encoding cannot write it."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeError, LookupError):
        powers = re.sub(f"[{_RAISED}]+", lambda found: f"^{found[0].translate(_LOWERED)}", text)
        return powers.translate(_PLAIN).encode("ascii", "backslashreplace").decode("ascii")
    return text


def facts_html(title: str, rows: Sequence[tuple[str, ...]], sentences: Iterable[str] = ()) -> str:
    """Return HTML that a notebook displays in its own colours."""
    body = "".join(
        f'<tr><th scope="row" style="text-align: left">{_text(name)}</th>'
        f"{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    )
    words = "".join(f"<p>{_text(sentence)}</p>" for sentence in sentences)
    return f"<div><p><strong>{_text(title)}</strong></p><table><tbody>{body}</tbody></table>{words}</div>"


def _text(words: str) -> str:
    return escape(one_line(words), quote=True)


def _visible(character: str) -> bool:
    joins = character in "\n\u200c\u200d"  # line break, and the joiners that Persian and emoji need
    return character.isprintable() or joins or unicodedata.category(character) == "Zs"
