"""Summarizes several audits."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.result.model import AuditResult, p_value_words
from dpaudit.result.suite import named_together, promised_together
from dpaudit.result.values import Verdict
from dpaudit_reports.blocks import Block, Paragraph, Strong
from dpaudit_reports.claimed import tells
from dpaudit_reports.marks import MARKS, WORST_FIRST
from dpaudit_reports.numbers import at_most, percent_at_least
from dpaudit_reports.sections.overview import overview


def summary(results: Sequence[AuditResult]) -> tuple[Block, ...]:
    """Return a tally of the verdicts, and an overview with one line for each audit in the given order."""
    return Paragraph((Strong(tally(results)),)), *overview(results), *caveat(results)


def tally(results: Sequence[AuditResult], unchecked: Sequence[Verdict] = ()) -> str:
    """Return how many results have each verdict, worst first, such as "▲ Violation: 2 (1 not checked)." """
    counted = []
    for verdict in WORST_FIRST:
        if number := sum(result.verdict is verdict for result in results):
            not_checked = unchecked.count(verdict)
            note = f" ({not_checked} not checked)" if not_checked else ""
            counted.append(f"{MARKS[verdict].sign} {MARKS[verdict].word}: {number}{note}")
    return f"{'. '.join(counted)}."


def p_value(result: AuditResult) -> str:
    """Return the p-value as text; "–" if it is not evidence against the claim."""
    return p_value_words(result, at_most) if tells(result) else "–"


def caveat(results: Sequence[AuditResult], where: str = "the part about the audit") -> tuple[Block, ...]:
    """Return what holds for all results together, and what their numbers mean."""
    together, notes = promised_together(results), []
    if len({result.confidence for result in results}) == 1:
        notes.append(f"Confidence of each audit: {percent_at_least(results[0].confidence)}.")
    if not together:
        notes.append("Each verdict holds at its own confidence, but the verdicts do not hold jointly.")
        if together := named_together(results):
            notes.append("The correction for several audits is valid if this list contains every audit that was made.")
    if any(result.verdict is Verdict.NO_VIOLATION for result in results):
        notes.append(
            "That no violation was found does not prove a claim. Found from: the smallest violation that would have "
            f"been found with 90\u00a0% probability in the best case, see {where}."
        )
    notes += dict.fromkeys(
        f"Audits with the method {result.method} assume, without a test: {words}."
        for result in results
        if (words := result.evidence.words.assumption)
    )
    if any(result.violated for result in results):
        notes.append("Certified / claimed: a lower bound, and the maximum that the claim allows.")
    return (
        *((Paragraph(together),) if together else ()),
        *((Paragraph(" ".join(notes), quiet=True),) if notes else ()),
    )
