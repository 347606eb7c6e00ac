"""Shortens lists and numbers for sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from dpaudit.text.rounding import count
from dpaudit_reports.blocks import Paragraph

T = TypeVar("T")

MAX_ENTRIES = 500  # of a list or table in a report; audits have far fewer, and a PDF of 20,000 rows would take minutes


def first(entries: Sequence[T], what: str) -> tuple[Sequence[T], tuple[Paragraph, ...]]:
    """Return the entries to show, and a sentence about the omitted entries."""
    if len(entries) <= MAX_ENTRIES:
        return entries, ()
    of = f"{count(MAX_ENTRIES)} of {count(len(entries))}"
    return entries[:MAX_ENTRIES], (Paragraph(f"These are the first {of} {what}; the result file has all of them."),)


def bare(words: str) -> str:
    """Return a number without its sign "at least" or "at most"."""
    return words.lstrip("≥≤\u00a0")


def some_of(names: Sequence[str], most: int = 5, more: str = "more") -> str:
    """Return the first names, and the number of the others, for a sentence."""
    others = f" and {len(names) - most} {more}" if len(names) > most else ""
    return ", ".join(names[:most]) + others
