"""Shows a document at the width of the terminal, with a description in place of each figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text as Words

from dpaudit.text.printable import one_line, printable
from dpaudit.text.signs import SIGNS
from dpaudit_reports.blocks import (
    Answers,
    Beside,
    Block,
    Callout,
    Code,
    Document,
    Entries,
    Figure,
    Heading,
    Items,
    KeyValues,
    Listing,
    Paragraph,
    Part,
    Picture,
    Span,
    Strong,
    Table,
    Text,
)

_TONES = {sign.tone: sign.style for sign in SIGNS.values()}


def terminal(document: Document) -> Iterator[RenderableType]:
    """Yield the objects that rich prints; each object begins on a new line."""
    yield Words(one_line(document.title), style="bold")
    yield Words(one_line(document.subtitle), style="dim")
    for block in document.front:
        yield from _block(block)
    for part in document.parts:
        yield from _part(part) if len(document.parts) > 1 else _blocks(part.blocks)
    yield from _blocks(document.back)


def _part(part: Part) -> Iterator[RenderableType]:
    yield Words(f"\n{one_line(part.title)}\n", style="bold underline")
    yield from _blocks(part.blocks)


def _blocks(blocks: Sequence[Block]) -> Iterator[RenderableType]:
    for block in blocks:
        yield from _block(block)


def _block(block: Block) -> Iterator[RenderableType]:
    match block:
        case Heading(text):
            yield Words(f"\n{one_line(text)}", style="bold")
        case Paragraph(text, quiet):
            yield _prose(text, "dim" if quiet else "")
        case Items(items, quiet, numbered):
            for number, item in enumerate(items, 1):
                yield Words.assemble(f"{number}. " if numbered else "– ", _prose(item, "dim" if quiet else ""))
        case Callout(mark, title, text, tone):
            yield Words(f"\n{one_line(mark)} {one_line(title)}", style=_TONES[tone])
            yield _prose(text)
        case Answers(rows) | KeyValues(rows):
            yield Padding(_named(rows), (1, 0, 0, 0))
        case Table():
            yield _table(block)
        case Figure(panels):
            for panel in panels:
                yield Words(one_line(panel.alt))
        case Beside(panel, blocks, after):
            yield Words(one_line(panel.alt))
            yield from _blocks((*blocks, *after))
        case Entries(parts):
            for part in parts:
                yield from _part(part)
        case Listing(text):
            yield Padding(Words(printable(text)), (0, 0, 0, 4))  # the indentation distinguishes foreign lines from ours
        case _:
            raise TypeError(f"{type(block).__name__} is not a block of dpaudit_reports.blocks")


def _named(rows: Iterable[tuple[str, Text]]) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")  # a truncated fingerprint cannot be compared
    for name, value in rows:
        grid.add_row(Words(one_line(name), style="dim"), _prose(value))
    return grid


def _table(table: Table) -> Grid:
    grid = Grid(box=box.SIMPLE, pad_edge=False)
    for column in table.columns:
        grid.add_column(_prose(column.title), justify=column.align, overflow="fold")
    for row in table.rows:
        grid.add_row(*map(_prose, row))
    return grid


def _prose(text: Text, style: str = "") -> Words:
    spans = (text,) if isinstance(text, str) else text
    return Words.assemble(*map(_span, spans), style=style)


def _span(span: Span) -> str | tuple[str, str]:
    match span:
        case str():
            return one_line(span)
        case Strong(text):
            return one_line(text), "bold"
        case Code(text):
            return one_line(text), "cyan"
        case Picture(_, text, wide):
            return one_line(text) if wide else ""
        case _:
            return one_line(span.text)
