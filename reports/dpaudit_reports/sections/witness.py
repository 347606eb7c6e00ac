"""The rejection region that shows the violation, or came closest."""

from __future__ import annotations

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block, Column, Heading, Paragraph, Strong, Table
from dpaudit_reports.numbers import NOT_KNOWN, count, percent


def witness(result: AuditResult) -> tuple[Block, ...]:
    """The region in words, and the counts behind the words."""
    found = result.witness
    heading = Heading("Witness" if result.violated else "Closest to a violation")
    if found is None:
        return heading, Paragraph("No rejection region was examined long enough to be named.", quiet=True)
    counts = found.counts
    rest = found.describe().removeprefix(found.region).replace(" %", "\u00a0%")
    return (
        heading,
        Paragraph((Strong(found.region), f"{rest}.")),
        Table(
            (
                Column("", grow=1),
                Column("Outputs", align="right"),
                Column("In the region", align="right"),
                Column("Rate", align="right"),
                Column("Claim allows", align="right"),
            ),
            (
                (
                    "d0 (false positives)",
                    count(counts.n0),
                    count(counts.false_positives),
                    _rate(found.alpha),
                    "",
                ),
                (
                    "d1 (true positives)",
                    count(counts.n1),
                    count(counts.n1 - counts.false_negatives),
                    _rate(1 - found.beta),
                    f"at most {_rate(1 - found.claimed_beta)}",
                ),
            ),
        ),
        Paragraph(
            "Counted on outputs that the attack had not learned from. The region was chosen by these counts, "
            "and is put into words as the attack last knew it: it explains the verdict, which rests on the "
            "evidence above.",
            quiet=True,
        ),
    )


def _rate(rate: float) -> str:
    return percent(rate) if 0 <= rate <= 1 else NOT_KNOWN
