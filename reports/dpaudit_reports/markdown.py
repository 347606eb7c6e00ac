"""Writes a document as short Markdown of GitHub without figures, for a comment on a pull request.

`_text` escapes foreign text, so that it cannot end a table, open a tag, mention a person or start a formula.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpaudit.text import printable
from dpaudit_reports import blocks as b

MAX_CHARACTERS = 60_000  # maximum length of the text; GitHub allows 65,536 characters in a comment
_MAX_ROWS = 50  # maximum number of rows in a table, and of items in a list
_NOTHING = "<!-- -->"  # an invisible separator of two characters that GitHub would read as a name or a link


def markdown(document: b.Document) -> str:
    """Return the document as Markdown."""
    text = f"## {_text(document.title)}\n\n{blocks_markdown(document.front)}"
    left_out = 0
    for part in document.parts:
        body = blocks_markdown(part.blocks)
        if len(document.parts) > 1:
            body = _folded(part.title, body)
        if len(text) + len(body) > MAX_CHARACTERS - 200 and len(document.parts) > 1:
            left_out += 1
        else:
            text = f"{text.rstrip()}\n\n{body}"
    back = f"\n\n{blocks_markdown(document.back)}"
    if not left_out and len(text) + len(back) <= MAX_CHARACTERS:
        text += back
    if left_out:
        text += f"\n\n{left_out} more audits do not fit into a comment; the full report has them."
    return text.strip() + "\n"


def blocks_markdown(blocks: Sequence[b.Block]) -> str:
    """Return blocks in order, separated by empty lines."""
    shown: list[tuple[b.Block, str]] = []
    for block in blocks:
        if text := _block(block):
            shown.append((block, text))
    ends = [isinstance(block, b.Heading) for block, _ in shown[1:]] + [True]
    # A section that consists of figures has no text here, so its heading is omitted.
    return "\n\n".join(
        text for (block, text), end in zip(shown, ends, strict=False) if not (end and isinstance(block, b.Heading))
    )


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{_text(title)}</summary>\n\n{body}\n\n</details>"


def _block(block: b.Block) -> str:
    match block:
        case b.Heading(text, level):
            return f"{'#' * min(6, level + 2)} {_text(text)}"
        case b.Paragraph(text):
            return _line(text)
        case b.Items(items, _, numbered):
            more = (f"{len(items) - _MAX_ROWS} more are in the full report.",) if len(items) > _MAX_ROWS else ()
            mark = "1." if numbered else "-"
            return "\n".join(f"{mark} {_line(item)}" for item in (*items[:_MAX_ROWS], *more))
        case b.Verdict(mark, title, text):
            return f"{_strong(f'{mark} {b.flat(title)}')}\n\n{_line(text)}"
        case b.Numbers(numbers):
            return "\n".join(f"- {_strong(b.flat(one.value))} {_prose(one.meaning)}" for one in numbers)
        case b.Facts(rows) | b.KeyValues(rows):
            return _table(("", ""), [(_text(name), _prose(value)) for name, value in rows], ("left", "left"))
        case b.Table(columns, rows):
            titles = [_prose(column.title) for column in columns]
            cells = [tuple(_prose(cell) for cell in row) for row in rows]
            return _table(titles, cells, [column.align for column in columns])
        case b.Figure() | b.NewPage():
            return ""
        case b.Columns(left, right):
            return blocks_markdown((*left, *right))
        case b.Listing(text):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return f"{fence}\n{printable(text)}\n{fence}"
    raise TypeError(f"{type(block).__name__} is not a block of dpaudit_reports.blocks")


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str]) -> str:
    rule = ["--:" if side == "right" else ":--" for side in align]
    shown = rows[:_MAX_ROWS]
    lines = [f"| {' | '.join(cells)} |" for cells in (titles, rule, *shown)]
    more = len(rows) - len(shown)
    return "\n".join([*lines, *(["", f"{more} more rows are in the full report."] if more else [])])


def _line(text: b.Text) -> str:
    """Return text for the beginning of a line, escaped so that it begins no list, heading or quotation."""
    return re.sub(r"^(\d{1,9})?([-+=#.)])", r"\1\\\2", _prose(text))


def _prose(text: b.Text) -> str:
    return _span(text) if isinstance(text, str) else "".join(map(_span, text))


def _span(span: b.Span) -> str:
    match span:
        case str():
            return _text(span)
        case b.Strong(text):
            return _strong(text)
        case b.Code(text):
            words = " ".join(printable(text).split())
            if "|" in words or "\\" in words:  # a bar ends a table cell even in backticks
                return f"<code>{_text(words)}</code>"
            fence = "`" * (1 + max(map(len, re.findall("`+", words)), default=0)) if words else ""
            space = " " if words.startswith("`") or words.endswith("`") else ""
            return f"{fence}{space}{words}{space}{fence}"
        case b.Math(text) | b.Reference(text):
            return _text(text)
        case b.Picture(_, text, wide):
            return _text(text) if wide else ""
    raise TypeError(f"text must be a string or a span of dpaudit_reports.blocks, got {span!r}")


def _strong(text: str) -> str:
    """Return bold text.  Stars next to a sign or a space may not make text bold, but a tag always does."""
    words = text.strip()
    if not words:
        return text
    before, after = text[: text.index(words)], text[text.index(words) + len(words) :]
    plain = words[0].isalnum() and words[-1].isalnum()
    return f"{before}{f'**{_text(words)}**' if plain else f'<b>{_text(words)}</b>'}{after}"


_MARKUP = {
    **{sign: f"\\{sign}" for sign in "\\`*_[]|~"},
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "$": "<span>$</span>",  # GitHub reads formulas before it reads escapes
    "@": f"@{_NOTHING}",
    "#": f"#{_NOTHING}",
    ":": f":{_NOTHING}",  # a colon begins emoji and occurs in links
}


def _text(text: str) -> str:
    """Return text that is shown unchanged on one line, without markup, mentions, references, links or formulas."""
    line = re.sub(r"[ \t]*\n\s*", " ", printable(text))
    return re.sub(
        r"[\\`*_\[\]|~&<>$]|[@#](?=[\w])|:(?=[\w/+-])|(?<=\b[wW]{3})\.|(?<=\b[gG][hH])-",
        lambda sign: _MARKUP.get(sign[0], f"{sign[0]}{_NOTHING}"),
        line,
    )
