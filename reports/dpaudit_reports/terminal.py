"""Shows audits on at most two lines each, and documents with a description in place of each figure, in a terminal."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, cast

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text
from rich.text import Text as Words

from dpaudit.result.summary import weakness
from dpaudit.result.values import Verdict
from dpaudit.text import NO_RESULT, SIGNS, encodable, one_line, printable, shortened
from dpaudit_reports import blocks as b
from dpaudit_reports.blocks import flat, spans_of
from dpaudit_reports.claimed import claim_in_words, detectable_claim, enlarged, found_from, headline, least_found
from dpaudit_reports.formats import Audited, Run, Screen, why
from dpaudit_reports.verdicts import outcome, shows_size

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
            grid = Grid.grid(padding=(0, 2))
            grid.add_column()
            grid.add_column(overflow="fold")  # a truncated fingerprint cannot be compared
            for name, value in rows:
                grid.add_row(Words(name, style="dim"), _prose(value))
            yield Padding(grid, (1, 0, 0, 0), expand=False)
        case b.Table(columns, rows):
            table = Grid(box=box.SIMPLE, pad_edge=False)
            for column in columns:
                table.add_column(_prose(column.title), justify=column.align, overflow="fold")
            for row in rows:
                table.add_row(*map(_prose, row))
            yield table
        case b.Figure(panels):
            for panel in panels:
                yield Words(panel.alt)
        case b.Columns(left, right):
            yield from _blocks((*left, *right))
        case b.NewPage():
            yield Words()
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


_GAP = "  "
_INDENT = "    "
_SHORT = {Verdict.NO_VIOLATION.value: "no violation"}
_ROOM = 44  # characters for what is proven, if names leave them on a line


def wrapped(text: str, width: int | None) -> list[str]:
    """Break text into lines of a maximum width, after spaces, or else anywhere."""
    if width is None or cell_len(text) <= width:
        return [text]
    return [line.plain.rstrip(" ") for line in Text(text).wrap(Console(), width)]


def table_text(run: Run, screen: Screen) -> str:
    """Return the lines of all audits, and the sentence about all of them together; terminals also get colours."""
    reported = [audited for audited in run.audits if audited.result is not None or audited.failed]
    if not reported:
        return ""
    signs = max(cell_len(_sign(audited, screen)) for audited in reported)
    names = max(cell_len(_name(audited, screen)) for audited in reported)
    lines = [Text()] if screen.terminal else []
    for audited in reported:
        lines += _audit(audited, signs, names, screen)
    missing = [one_line(audited.name) for audited in run.audits if audited not in reported]
    notes = [f"Not run: {', '.join(missing)}."] if missing else []
    notes += [one_line(run.together)] if run.together else []
    return drawn([*lines, *(Text(encodable(f"\n{note}", screen.encoding)) for note in notes)], screen)


def _sign(audited: Audited, screen: Screen) -> str:
    sign = audited.sign
    return encodable(f"{sign.sign} {_SHORT.get(sign.word, sign.word)}", screen.encoding)


def _name(audited: Audited, screen: Screen) -> str:
    return encodable(one_line(audited.name), screen.encoding)


def _audit(audited: Audited, signs: int, names: int, screen: Screen) -> list[Text]:
    """Return the lines of an audit: on a screen at most two, in a file one."""
    sign, name = _sign(audited, screen), _name(audited, screen)
    words = encodable(brief(audited), screen.encoding)
    unexpected = "  NOT AS EXPECTED" if audited.as_expected is False else ""
    beside = screen.width is None or signs + names + 2 * len(_GAP) + _ROOM <= screen.width
    name += " " * (names - cell_len(name)) if beside else ""
    line = Text.assemble((sign + " " * (signs - cell_len(sign)), audited.sign.style), _GAP, name)
    first = None if screen.width is None else screen.width - line.cell_len - len(_GAP)
    if beside and (first is None or cell_len(words + unexpected) <= first):
        return [Text.assemble(line, _GAP, words, (unexpected, "bold red"))]
    assert screen.width is not None
    room = max(screen.width - len(_INDENT) - len(unexpected), 1)
    if audited.result is None:  # no file has the reason
        return [line, *(Text(_INDENT + part) for part in wrapped(words, room))]
    if cell_len(words) > room:
        words = wrapped(words, max(room - 1, 1))[0] + encodable("…", screen.encoding)
    line.rstrip()
    return [line, Text.assemble(_INDENT, words, (unexpected, "bold red"))]


def brief(audited: Audited) -> str:
    """Return what is proven and what would have been found, or why nothing is known, on one printable line."""
    result = audited.result
    if result is None or (result.verdict is Verdict.INCONCLUSIVE and not result.measurement):
        return why(audited) or "the result does not record the reason"
    if not result.bounds_valid:
        return f"nothing is proven: {why(audited)}"
    bound = headline(result)
    if not result.bounded:
        return f"more is lost than reported{outcome(result)}" if result.violated else "reports were not refuted"
    if bound is None:
        return f"the curve is refuted, but no single parameter{outcome(result)}"
    named = bound.shown_alone() if bound.delta == 0 else bound.shown(bound.certified_text())
    proven = f"{flat(named)} proven"
    if result.measurement:
        return f"{proven}, no claim"
    claimed = f"{proven}, claimed {bound.claimed_text()}"
    if result.violated:
        size = "" if shows_size(result) or not bound.refuted or bound.certified > bound.claimed else "; size not known"
        pair = result.witness.pair if result.witness is not None and len(result.pairs) > 1 else ""
        return one_line(f"{claimed}{size}{outcome(result)}{f'; pair: {shortened(pair)}' if pair else ''}")
    if why_weak := weakness(result):
        return one_line(f"{claimed}; could not see much: {why_weak}")
    least = least_found(result)
    if least is not None:
        return f"{claimed}; would have seen {found_from(least)}"
    seen = detectable_claim(result)
    words = flat(claim_in_words(seen)[-1:]) if seen is not None else enlarged(result.detectable.claim)
    return one_line(f"{claimed}; would have seen {words or 'no violation of any size'}")


def drawn(items: Iterable[RenderableType], screen: Screen) -> str:
    """Return objects of rich as text for a screen, with colours as escape codes."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=screen.terminal,
        color_system="auto" if screen.terminal else None,
        width=screen.width or 1_000_000,
        markup=False,
        highlight=False,
        emoji=False,
    )
    for item in items:
        console.print(item)
    return encodable(re.sub(" +\n", "\n", stream.getvalue()), screen.encoding)
