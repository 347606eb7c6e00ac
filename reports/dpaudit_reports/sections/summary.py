"""Several audits at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.claims import rounded
from dpaudit.result import AuditResult, Verdict
from dpaudit.suite import named_together, promised_together
from dpaudit_reports.blocks import Block, Code, Column, Math, Paragraph, Reference, Strong, Table
from dpaudit_reports.marks import MARKS
from dpaudit_reports.numbers import at_least, at_most, count, percent


def summary(results: Sequence[AuditResult]) -> tuple[Block, ...]:
    """One row an audit, in the order given.  Stands under the title, like a verdict."""
    tally = ". ".join(
        f"{mark.word}: {sum(result.verdict is verdict for result in results)}"
        for verdict, mark in MARKS.items()
        if any(result.verdict is verdict for result in results)
    )
    return (
        Paragraph((Strong(f"{tally}."),)),
        Table(
            (
                Column("Verdict"),
                Column("Audit", grow=3),
                Column("Claim", grow=3),
                Column("Confidence", align="right"),
                Column("Runs", align="right"),
                Column("p-value", align="right"),
                Column(("Certified ", Math("μ")), align="right"),
            ),
            tuple(
                (
                    (Strong(f"{MARKS[result.verdict].sign} {MARKS[result.verdict].word}"),),
                    (Reference(result.name, i),),
                    (Code(rounded(result.claim.label)),),
                    percent(result.confidence),
                    count(result.trials_used),
                    at_most(result.p_value),
                    at_least(result.mu_lower),
                )
                for i, result in enumerate(results)
            ),
        ),
        *_caveat(results),
    )


def _caveat(results: Sequence[AuditResult]) -> tuple[Block, ...]:
    promise = promised_together(results)
    notes = [] if promise else ["Each verdict holds at its own confidence, not all of them at once."]
    if any(result.verdict is not Verdict.VIOLATION for result in results):
        notes.append("Where none was found, the audit's own part says how small a one would have been found.")
    together = named_together(results)
    if together:
        notes.append(
            "What is called false together holds if every audit that was made is in this list, whatever it found."
        )
    words = promise or together
    quiet = (Paragraph(" ".join(notes), quiet=True),) if notes else ()
    return (*((Paragraph(words),) if words else ()), *quiet)
