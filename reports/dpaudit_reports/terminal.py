"""Shows a document at the width of the terminal, with a description in place of each figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, cast

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text as Words

from dpaudit.text import NO_RESULT, SIGNS, encodable, one_line, printable
from dpaudit_reports import blocks as b
from dpaudit_reports.blocks import spans_of
from dpaudit_reports.formats.facts import Screen
from dpaudit_reports.formats.table import drawn

_TONES = {sign.tone: sign.style for sign in SIGNS.values()}
_STYLES = {sign.sign: sign.style for sign in (*SIGNS.values(), NO_RESULT)}
T = TypeVar("T")


def document_text(document: b.Document, screen: Screen) -> str:
    """Return a document as text for a screen."""
    return drawn(terminal(document, screen.encoding), screen)


def tables_text(document: b.Document, screen: Screen) -> str:
    """Return the tables at the beginning of a document as text for a screen."""
    tables = tuple(block for block in document.front if isinstance(block, b.Table))
    return drawn(_blocks(_harmless(tables, screen.encoding)), screen)


def terminal(document: b.Document, encoding: str = "utf-8") -> Iterator[RenderableType]:
    """Yield the objects that rich prints; each object begins on a new line."""
    shown = _harmless(document, encoding)
    yield Words(shown.title, style="bold")
    yield Words(shown.subtitle, style="dim")
    yield from _blocks(shown.front)
    for part in shown.parts:
        yield from _part(part) if len(shown.parts) > 1 else _blocks(part.blocks)
    yield from _blocks(shown.back)


def _harmless(value: T, encoding: str) -> T:
    """Return blocks whose texts add no line and no control character, and can be encoded."""
    match value:
        case b.Listing(text):
            return cast("T", b.Listing(encodable(printable(text), encoding)))
        case str():
            return cast("T", encodable(one_line(value), encoding))
        case tuple():
            return cast("T", tuple(_harmless(part, encoding) for part in value))
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {one.name: _harmless(getattr(value, one.name), encoding) for one in dataclasses.fields(value)}
            return dataclasses.replace(value, **fields)
    return value


def _part(part: b.Part) -> Iterator[RenderableType]:
    yield Words(f"\n{part.title}\n", style="bold underline")
    yield from _blocks(part.blocks)


def _blocks(blocks: Sequence[b.Block]) -> Iterator[RenderableType]:
    for block in blocks:
        yield from _block(block)


def _block(block: b.Block) -> Iterator[RenderableType]:
    match block:
        case b.Facts(rows) | b.KeyValues(rows):
            yield Padding(_named(rows), (1, 0, 0, 0), expand=False)
        case b.Table():
            yield _table(block)
        case b.Figure(panels):
            for panel in panels:
                yield Words(panel.alt)
        case b.Columns(left, right):
            yield from _blocks((*left, *right))
        case b.NewPage():
            yield Words()
        case b.Entries(parts):
            for part in parts:
                yield from _part(part)
        case _:
            yield from _text_block(block)


def _text_block(block: b.Block) -> Iterator[RenderableType]:
    match block:
        case b.Heading(text):
            yield Words(f"\n{text}", style="bold")
        case b.Paragraph(text) if any(isinstance(span, b.Picture) for span in spans_of(text)):
            return  # a legend of drawings
        case b.Paragraph(text, quiet):
            yield _prose(text, "dim" if quiet else "")
        case b.Items(items, quiet, numbered):
            for number, item in enumerate(items, 1):
                yield Words.assemble(f"{number}. " if numbered else "– ", _prose(item, "dim" if quiet else ""))
        case b.Verdict(mark, title, text, tone):
            yield Words.assemble(f"\n{mark} ", _prose(title), style=_TONES[tone])
            yield _prose(text)
        case b.Numbers(cells):
            for cell in cells:
                yield Words.assemble(_prose(cell.value, "bold"), " ", _prose(cell.meaning))
        case b.Listing(text):
            yield Padding(Words(text), (0, 0, 0, 4), expand=False)  # marks foreign lines
        case _:
            raise TypeError(f"{type(block).__name__} is not a block of dpaudit_reports.blocks")


def _named(rows: Iterable[tuple[str, b.Text]]) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")  # a truncated fingerprint cannot be compared
    for name, value in rows:
        grid.add_row(Words(name, style="dim"), _prose(value))
    return grid


def _table(table: b.Table) -> Grid:
    grid = Grid(box=box.SIMPLE, pad_edge=False)
    for column in table.columns:
        grid.add_column(_prose(column.title), justify=column.align, overflow="fold")
    for row in table.rows:
        grid.add_row(*map(_prose, row))
    return grid


def _prose(text: b.Text, style: str = "") -> Words:
    return Words.assemble(*map(_span, spans_of(text)), style=style)


def _span(span: b.Span) -> str | tuple[str, str]:
    match span:
        case str():
            return span
        case b.Strong(text):
            return text, _STYLES.get(text.strip(), "bold")
        case b.Code(text):
            return text, "cyan"
        case b.Picture(_, text, wide):
            return text if wide else ""
        case _:
            return span.text
