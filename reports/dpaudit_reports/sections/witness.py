"""The rejection region that shows the violation, or came closest."""

from __future__ import annotations

from functools import partial

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block, Column, Figure, Heading, Panel, Paragraph, Strong, Table
from dpaudit_reports.figures.distributions import distributions_svg
from dpaudit_reports.numbers import NOT_KNOWN, count, number, percent
from dpaudit_reports.scores import EDGES, witness_scores


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
        *_distributions(result),
        Paragraph(_standing(result), quiet=True),
    )


def _standing(result: AuditResult) -> str:
    """What the region may be taken for."""
    match result.method:
        case "fixed":
            return (
                "Region and attack were frozen before these outputs were drawn: the verdict rests on these counts. In "
                "words the region is given as nearly as they allow."
            )
        case "one_run":
            return "Counted over the canaries for which a guess was made, as many as had been fixed beforehand."
        case _:
            return (
                "Counted on outputs that the attack had not learned from. The region was chosen by these counts, "
                "and is put into words as the attack last knew it: it explains the verdict, which rests on the "
                "evidence above."
            )


def _distributions(result: AuditResult) -> tuple[Block, ...]:
    """The attack's score under both datasets; nothing if the evidence holds no scores."""
    scores = witness_scores(result)
    if scores is None:
        return ()
    cut = number(float(EDGES[scores.threshold]))
    sides = "The score of the outputs of d0 and of d1, and the region above"
    return (
        Figure(
            (Panel(partial(distributions_svg, scores), alt=f"{sides} {cut}. Its counts are in the table."),),
            caption=(
                "The attack gives each output a score, its estimate of how much likelier the output is under d1 than "
                f"under d0 (natural logarithm of the ratio). The region, shaded, is where the score exceeds {cut}. If "
                "the mechanism gave nothing away, the two distributions would be the same. What lies beyond the ends "
                "is counted in the last bars."
            ),
        ),
    )


def _rate(rate: float) -> str:
    return percent(rate) if 0 <= rate <= 1 else NOT_KNOWN
