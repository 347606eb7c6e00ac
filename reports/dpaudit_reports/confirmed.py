"""What the fresh runs after a refutation say about a violation and its size."""

from __future__ import annotations

from dataclasses import replace

from dpaudit.result.confirmation import Confirmation, confirmation_words
from dpaudit.result.model import AuditResult
from dpaudit.result.words import quotation
from dpaudit.text.rounding import upper
from dpaudit_reports.numbers import at_most


def fresh(result: AuditResult) -> Confirmation | None:
    """Return the fresh runs that counted the region of a violation; None if there are none."""
    found = result.confirmation
    return found if result.violated and found is not None and found.counts is not None else None


def outcome(result: AuditResult) -> str:
    """Return what the fresh runs say about a violation in a word, after a semicolon; "" if there is no violation."""
    found = result.confirmation
    return f"; {found.outcome}" if result.violated and found is not None else ""


def confirmation(result: AuditResult) -> str:
    """Return what the fresh runs say about a violation, as part of a sentence; "" if the result does not record it."""
    found = result.confirmation
    if not result.violated or found is None:
        return ""
    words = confirmation_words(replace(found, reason=quotation(found.reason)))
    return words.replace(f"p <= {upper(found.p_value)}", f"p\u00a0{at_most(found.p_value)}")


def shows_size(result: AuditResult) -> bool:
    """Return whether the bounds come from fresh runs and exceed the claim."""
    return fresh(result) is not None and result.runs_for_size is None
