"""Turns results into a document: selects the sections and puts them in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import entry_points
from xml.etree import ElementTree

from dpaudit.result.evidence import fingerprint
from dpaudit.result.model import AuditResult
from dpaudit.text import shortened
from dpaudit_reports.blocks import Block, Document, Figure, Heading, Paragraph, Part
from dpaudit_reports.html import blocks_html
from dpaudit_reports.sections import SECTIONS, Section
from dpaudit_reports.sections.advice import mechanism_named
from dpaudit_reports.sections.several_audits import appendix, changes, entry, side_by_side, summary
from dpaudit_reports.verdicts import MARKS, WORST_FIRST, title_of


def document(results: Sequence[AuditResult], sections: Sequence[Section] = SECTIONS, *, full: bool = False) -> Document:
    """Return the report of one or many audits."""
    if not results:
        raise ValueError("a report needs at least one result, got none")
    results = sorted(results, key=lambda result: WORST_FIRST.index(result.verdict))
    date = newest(results)
    titles = [title_of(result) for result in results]
    short = len(results) > 1 and not full
    more = foreign_blocks if sections is SECTIONS else lambda _: ()
    blocks = ((*entry(result), *more(result)) if short else _blocks(result, sections) for result in results)
    parts = tuple(_part(title, own, result) for title, own, result in zip(titles, blocks, results, strict=True))
    if len(results) == 1:
        subtitle = " · ".join(filter(None, [mechanism_named(results[0]), day(date).removeprefix(", ")]))
        version = (results[0].provenance.packages or {}).get("dpaudit")
        counts = f"counts sha256:{fingerprint(results[0].evidence)[:12]}"  # assigns a loose page to its result
        footer = f"{shortened(titles[0], 160)} · {counts} · dpaudit{f' {version}' if version else ''}"
        return Document(titles[0], subtitle, date, (), parts, footer)
    title, subtitle = f"{len(results)} privacy audits", f"Audits of differential-privacy claims{day(date)}"
    back = appendix(results, titles) if short and sections is SECTIONS else ()
    return Document(title, subtitle, date, summary(results), parts, back=back, dense=short)


def comparison(
    audits: Mapping[str, Mapping[str, AuditResult]], missing: Mapping[tuple[str, str], str], *, full: bool = False
) -> Document:
    """Return a document that shows audits of several versions side by side."""
    named = [(f"{audit} – {version}", r) for audit, versions in audits.items() for version, r in versions.items()]
    if not named:
        raise ValueError("a comparison needs at least one result, got none")
    date = newest([result for _, result in named])
    parts = tuple(_part(title, _blocks(result, SECTIONS), result) for title, result in named) if full else ()
    subtitle = f"The same audits on several versions{day(date)}"
    front = (*side_by_side(audits, missing, full=full), *changes(audits))
    return Document("Comparison of versions", subtitle, date, front, parts)


def _part(title: str, blocks: tuple[Block, ...], result: AuditResult) -> Part:
    mark = MARKS[result.verdict]
    return Part(title, blocks, f"{mark.sign} {'Measurement' if result.measurement else mark.title}", mark.tone)


def newest(results: Sequence[AuditResult]) -> datetime | None:
    """Return the latest date of the audits, in UTC; None if no result records a date."""
    return max((date for result in results if (date := date_of(result)) is not None), default=None)


def day(date: datetime | None) -> str:
    """Return a comma and the day; "" if the day is not known."""
    return f", {date.day} {date:%B %Y}" if date else ""


def _blocks(result: AuditResult, sections: Sequence[Section]) -> tuple[Block, ...]:
    own = tuple(block for section in sections for block in section(result))
    return own + foreign_blocks(result) if sections is SECTIONS else own


def foreign_blocks(result: AuditResult) -> tuple[Block, ...]:
    """Return the blocks of other packages' sections (entry points `dpaudit.sections`) by name, or why one failed."""
    found: list[Block] = []
    for point in sorted(entry_points(group="dpaudit.sections"), key=lambda point: (point.name, point.value)):
        try:
            blocks = tuple(map(_drawn, point.load()(result)))
            if blocks and not isinstance(blocks[0], Heading):
                blocks = (Heading(point.name), *blocks)
            blocks_html(blocks)  # an invalid block fails here and not in the middle of a page
        except Exception as error:  # foreign code may raise anything
            words = f"The section {point.name} ({point.value}) failed: {type(error).__name__}: {error}"
            blocks = (Heading(point.name), Paragraph(words))
        found += blocks
    return tuple(found)


def _drawn(block: Block) -> Block:
    """Return the block with finished drawings, so that a faulty drawing fails here."""
    if not isinstance(block, Figure):
        return block
    drawings = [panel.svg() for panel in block.panels]
    if any(not ElementTree.fromstring(svg).tag.endswith("svg") for svg in drawings):
        raise ValueError("a panel must be drawn as SVG, with <svg> as its outermost element")
    panels = (replace(panel, svg=partial(str, svg)) for panel, svg in zip(block.panels, drawings, strict=True))
    return replace(block, panels=tuple(panels))


def date_of(result: AuditResult) -> datetime | None:
    """Return the date of the audit in UTC; None if the provenance has no date in ISO 8601."""
    try:
        date = datetime.fromisoformat(result.provenance.date or "")
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # the year 1 in a zone east of Greenwich raises OverflowError
        return None
