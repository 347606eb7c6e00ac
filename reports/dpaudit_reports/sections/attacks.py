"""The attacks, and how well each told the datasets apart."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block, Column, Heading, Paragraph, Table
from dpaudit_reports.numbers import number, percent


def attacks(result: AuditResult) -> tuple[Block, ...]:
    """One row an attack."""
    heading = Heading("Attacks")
    if not result.attacks:
        return heading, Paragraph("No attack was tried.", quiet=True)
    return (
        heading,
        Table(
            (
                Column("Attack", grow=2),
                Column("Weight", align="right"),
                Column("Log loss", align="right"),
                Column("Seconds", align="right"),
                Column("Note", grow=3),
            ),
            tuple(
                (
                    row.name,
                    percent(round(row.weight, 3), 2),
                    _loss(row.log_loss),
                    _seconds(result, row.name),
                    row.note or "–",
                )
                for row in result.attacks
            ),
        ),
        Paragraph(
            "All attacks learned from the same runs: none costs runs of its own. Weight: its final say in the combined "
            "score. Log loss on outputs not seen before, in nats; blind guessing has ln 2 = 0.693, less is better. "
            "Seconds: spent on fitting and scoring.",
            quiet=True,
        ),
    )


def _seconds(result: AuditResult, attack: str) -> str:
    spent = result.environment.get("seconds of attacks")
    value = spent.get(attack) if isinstance(spent, Mapping) else None
    return f"{value:.2f}" if isinstance(value, int | float) else "–"


def _loss(nats: float) -> str:
    return "–" if math.isnan(nats) else number(nats)
