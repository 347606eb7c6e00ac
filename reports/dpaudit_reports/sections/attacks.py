"""Shows how well each attack distinguished the datasets, and the pairs of datasets."""

from __future__ import annotations

import math

from dpaudit.result.model import AuditResult
from dpaudit.result.values import AttackRow, PairRow
from dpaudit.result.words import quotation
from dpaudit.text.rounding import count, number, percent
from dpaudit_reports.blocks import Block, Code, Column, Heading, Paragraph, Span, Table
from dpaudit_reports.numbers import first
from dpaudit_reports.sides import MAX_SHOWN
from dpaudit_reports.verdicts import why_void


def attacks(result: AuditResult) -> tuple[Block, ...]:
    """Return a table of the used attacks, sorted by weight, and a line with the unused attacks."""
    if not result.evidence.of_pairs:
        return ()
    heading = Heading("Attacks")
    if not result.attacks:
        return heading, Paragraph("No attack was tried.", quiet=True)
    shown, left_out = first(result.attacks, "attacks")
    unused = [row for row in shown if row.note and not row.weight and math.isnan(row.log_loss)]
    used = sorted((row for row in shown if row not in unused), key=lambda row: -row.weight)
    noted = any(row.note for row in used)
    numbers = (Column(title, align="right") for title in ("Weight", "Log loss", "Seconds"))
    columns = Column("Attack", grow=2), *numbers, *((Column("Note", grow=3),) if noted else ())
    rows = (
        (row.name, percent(round(row.weight, 3), 2), _loss(row.log_loss), _seconds(result, row.name), row.note or "–")
        for row in used
    )
    table = Table(columns, tuple(row[: len(columns)] for row in rows))
    return (
        heading,
        *((table,) if used else ()),
        *((Paragraph(f"Never used: {_by_reason(unused)}."),) if unused else ()),
        *left_out,
        *((Paragraph(_MEANING, quiet=True),) if used else ()),
    )


_MEANING = (
    "All attacks learned from the same runs, so no attack costs additional runs. Weight: final weight in the combined "
    "score. Log loss: mean loss on outputs not seen before, in nats; blind guessing has ln 2 = 0.693, and less is "
    "better. Seconds: time for fitting and scoring."
)


def _by_reason(rows: list[AttackRow]) -> str:
    named: dict[str, list[str]] = {}
    for row in rows:
        named.setdefault(row.note, []).append(row.name)
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in named.items())


def _seconds(result: AuditResult, attack: str) -> str:
    spent = (result.provenance.attack_seconds or {}).get(attack)
    return "–" if spent is None else f"{spent:.2f}"


def _loss(nats: float) -> str:
    return "–" if math.isnan(nats) else number(nats)


def pairs(result: AuditResult) -> tuple[Block, ...]:
    """Return a row for each pair, with its evidence if the evidence is valid; nothing if page 1 shows all pairs."""
    if not result.evidence.of_pairs or _on_the_first_page(result):
        return ()
    heading = Heading("Pairs of neighbouring datasets")
    if not result.pairs:
        return heading, Paragraph("No pair was tried.", quiet=True)
    valid = result.bounds_valid and result.evidence.anytime
    shown, left_out = first(result.pairs, "pairs")
    numbers = (Column(title, align="right") for title in ("Runs", "e-value")[: 1 + valid])
    columns = Column("Pair", grow=2), Column("Relation"), Column("d0", grow=2), Column("d1", grow=2), *numbers
    rows = tuple(
        (
            *(row.label or "–", row.relation.replace("_", " "), (Code(row.d0),), _second(row), count(row.trials)),
            *((number(_exp(row.log_e)),) if valid else ()),
        )
        for row in shown
    )
    return heading, Table(columns, rows), *left_out, Paragraph(_meaning(result, valid=valid), quiet=True)


def _second(row: PairRow) -> tuple[Span, ...]:
    """Return the second dataset, or the difference if the texts of the datasets do not show it."""
    return (f"d0 with a difference: {quotation(row.difference)}",) if row.difference else (Code(row.d1),)


def _on_the_first_page(result: AuditResult) -> bool:
    """Return whether the result has only one pair, with datasets that are short enough for the answers."""
    return len(result.pairs) == 1 and max(len(result.pairs[0].d0), len(result.pairs[0].d1)) <= MAX_SHOWN


def _meaning(result: AuditResult, *, valid: bool) -> str:
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
