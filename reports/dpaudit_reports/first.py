"""Limits the number of entries that a report shows, because anybody may have written the result file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from dpaudit_reports.blocks import Paragraph
from dpaudit_reports.numbers import count

T = TypeVar("T")

# Maximum number of pairs, attacks or warnings in a report.  Audits have far fewer, and a PDF of 20,000 rows would take
# minutes.
MAX_ENTRIES = 500


def first(entries: Sequence[T], what: str) -> tuple[Sequence[T], tuple[Paragraph, ...]]:
    """Return the entries to show, and a sentence about the omitted entries."""
    if len(entries) <= MAX_ENTRIES:
        return entries, ()
    words = (
        f"These are the first {count(MAX_ENTRIES)} of {count(len(entries))} {what}; the result file has all of them."
    )
    return entries[:MAX_ENTRIES], (Paragraph(words),)
