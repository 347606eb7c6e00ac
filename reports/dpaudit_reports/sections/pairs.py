"""Shows the pairs of neighbouring datasets, and the number of runs on each pair."""

from __future__ import annotations

import math

from dpaudit.result.model import AuditResult
from dpaudit.result.values import PairRow
from dpaudit.result.words import quotation
from dpaudit_reports.blocks import Block, Code, Column, Heading, Paragraph, Span, Table
from dpaudit_reports.numbers import count, first, number
from dpaudit_reports.reasons import why_void
from dpaudit_reports.sides import MAX_SHOWN


def pairs(result: AuditResult) -> tuple[Block, ...]:
    """Return a row for each pair, with its evidence if the evidence is valid; nothing if page 1 shows all pairs."""
    if not result.evidence.of_pairs or _on_the_first_page(result):
        return ()
    heading = Heading("Pairs of neighbouring datasets")
    if not result.pairs:
        return heading, Paragraph("No pair was tried.", quiet=True)
    valid = result.bounds_valid and result.evidence.anytime
    shown, left_out = first(result.pairs, "pairs")
    return (
        heading,
        Table(
            (
                Column("Pair", grow=2),
                Column("Relation"),
                Column("d0", grow=2),
                Column("d1", grow=2),
                Column("Runs", align="right"),
                *((Column("e-value", align="right"),) if valid else ()),
            ),
            tuple(
                (
                    row.label or "–",
                    row.relation.replace("_", " "),
                    (Code(row.d0),),
                    _second(row),
                    count(row.trials),
                    *((number(_exp(row.log_e)),) if valid else ()),
                )
                for row in shown
            ),
        ),
        *left_out,
        Paragraph(_meaning(result, valid=valid), quiet=True),
    )


def _second(row: PairRow) -> tuple[Span, ...]:
    """Return the second dataset, or the difference if the texts of the datasets do not show it."""
    return (f"d0 with a difference: {quotation(row.difference)}",) if row.difference else (Code(row.d1),)


def _on_the_first_page(result: AuditResult) -> bool:
    """Return whether the result has only one pair, with datasets that are short enough for the answers."""
    return len(result.pairs) == 1 and max(len(result.pairs[0].d0), len(result.pairs[0].d1)) <= MAX_SHOWN


def _meaning(result: AuditResult, *, valid: bool) -> str:
    """Return the meaning of the columns."""
    spent = "Runs: number of runs on each dataset."
    if void := why_void(result):
        return f"{spent} No evidence is shown for a pair: {void}."
    if not valid:
        return spent if len(result.pairs) < 2 else f"{spent} The first runs chose the pair for all other runs."
    own = "e-value: the evidence of this pair alone against the claim; 1 is no evidence."
    if len(result.pairs) < 2:
        return f"{spent} {own}"
    return f"{spent} Pairs with growing evidence received more runs. {own} The verdict rests on all pairs together."


def _exp(log_e: float) -> float:
    return math.exp(log_e) if log_e < 700 else math.inf
