"""HTML for notebooks, without reports: a title, named values, and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dpaudit.text.printable import one_line


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
