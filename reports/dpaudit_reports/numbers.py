"""Re-exports functions of `dpaudit.text.rounding`, so that terminal and documents print the same digits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from dpaudit.result.model import AuditResult
from dpaudit.text.rounding import (
    NOT_KNOWN,
    at_least,
    at_most,
    count,
    number,
    percent,
    percent_at_least,
    percent_at_most,
    percent_beyond,
    runs,
    seconds,
)
from dpaudit_reports.blocks import Paragraph

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


@lru_cache(maxsize=16)
def least_right(result: AuditResult) -> int | None:
    """Return the least number of right guesses that refutes the claim.

    None if no number refutes the claim, or if the audit made no guesses.
    """
    guessed = result.evidence.guessed
    return None if guessed is None else guessed.least_right(result.claim, confidence=result.confidence)


__all__ = [
    "NOT_KNOWN",
    "at_least",
    "at_most",
    "count",
    "number",
    "percent",
    "percent_at_least",
    "percent_at_most",
    "percent_beyond",
    "runs",
    "seconds",
]
