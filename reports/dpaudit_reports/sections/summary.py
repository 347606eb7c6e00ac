"""Several audits at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.result import AuditResult, Verdict
from dpaudit.suite import named_together
from dpaudit_reports.blocks import Block, Code, Column, Paragraph, Reference, Strong, Table
from dpaudit_reports.claimed import certified_of_claimed, label
from dpaudit_reports.marks import MARKS
from dpaudit_reports.numbers import at_most, count, percent


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
                Column("Certified / claimed", align="right", grow=2),
            ),
            tuple(
                (
                    (Strong(f"{MARKS[result.verdict].sign} {MARKS[result.verdict].word}"),),
                    (Reference(result.name, i),),
                    (Code(label(result.claim)),),
                    percent(result.confidence),
                    count(result.trials_used),
                    p_value(result),
                    certified_of_claimed(result),
                )
                for i, result in enumerate(results)
            ),
        ),
        *_caveat(results),
    )


def p_value(result: AuditResult) -> str:
    """The p-value where it says something."""
    return at_most(result.p_value) if result.certified and (result.violated or result.p_value < 1) else "–"


def _caveat(results: Sequence[AuditResult]) -> tuple[Block, ...]:
    together, notes = of_one_command(results), []
    if not together:
        notes.append("Each verdict holds at its own confidence, not all of them at once.")
        if together := named_together(results):
            notes.append(
                "What is called false together holds if every audit that was made is in this list, whatever it found."
            )
    if any(result.verdict is Verdict.NO_VIOLATION for result in results):
        notes.append("Where none was found, the audit's own part says how small a one would have been found.")
    if any(result.violated for result in results):
        notes.append("Certified: a lower bound, beside the most that the claim allows.")
    return (
        *((Paragraph(together),) if together else ()),
        *((Paragraph(" ".join(notes), quiet=True),) if notes else ()),
    )


_AUDITS, _CONFIDENCE = "audits of this command", "confidence of the command"


def of_one_command(results: Sequence[AuditResult]) -> str:
    """What one command promises of all its audits together; "" if these are not audits of one command."""
    promises = {(r.environment.get(_AUDITS), r.environment.get(_CONFIDENCE)) for r in results}
    commands = {str(r.environment.get("command")) for r in results}
    if len(promises) != 1 or len(commands) != 1:
        return ""
    ((audits, confidence),) = promises
    if not isinstance(audits, int) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        return ""
    if not audits > 1 or len(results) > audits:
        return ""
    return (
        f"If all {count(audits)} claims were true, the command would have said violation with probability at most "
        f"{percent(1 - confidence)}."
    )
