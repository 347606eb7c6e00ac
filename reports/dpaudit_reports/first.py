"""Limits the number of entries that a report shows, because anybody may have written the result file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from dpaudit_reports.blocks import Paragraph
from dpaudit_reports.numbers import count

T = TypeVar("T")

MAX_ENTRIES = 500  # pairs, attacks or warnings; an audit has a few, and a PDF of 20,000 rows takes minutes


def first(entries: Sequence[T], what: str) -> tuple[Sequence[T], tuple[Paragraph, ...]]:
    """Return the entries to show, and a sentence about the others.

    Args:
        entries: All entries.
        what: Their name in the plural, such as "pairs".
    """
    if len(entries) <= MAX_ENTRIES:
        return entries, ()
    words = f"These are the first {count(MAX_ENTRIES)} of {count(len(entries))} {what}; the result file has them all."
    return entries[:MAX_ENTRIES], (Paragraph(words),)
