"""Results in, a document out: which sections, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block
from dpaudit_reports.sections import SECTIONS
from dpaudit_reports.sections.summary import summary


@dataclass(frozen=True, slots=True)
class Part:
    """Everything about one audit."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A title, what comes before the parts, and the parts.  A single part carries no title of its own."""

    title: str
    subtitle: str
    date: datetime | None  # of the newest result, UTC; never the time of writing
    front: tuple[Block, ...]
    parts: tuple[Part, ...]


def document(results: Sequence[AuditResult]) -> Document:
    """The report of one or many audits.  ValueError if there are none."""
    if not results:
        raise ValueError("a report needs at least one result, got none")
    dates = [date for result in results if (date := _date(result)) is not None]
    date = max(dates, default=None)
    day = f", {date.day} {date:%B %Y}" if date else ""
    parts = tuple(Part(result.name, _blocks(result)) for result in results)
    if len(results) == 1:
        return Document(results[0].name, f"Audit of a differential-privacy claim{day}", date, (), parts)
    subtitle = f"Audits of differential-privacy claims{day}"
    return Document(f"{len(results)} privacy audits", subtitle, date, summary(results), parts)


def _blocks(result: AuditResult) -> tuple[Block, ...]:
    return tuple(block for section in SECTIONS for block in section(result))


def _date(result: AuditResult) -> datetime | None:
    """When the audit ran, if its environment says so in ISO 8601; without a zone, UTC is meant."""
    try:
        date = datetime.fromisoformat(str(result.environment.get("date")))
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
