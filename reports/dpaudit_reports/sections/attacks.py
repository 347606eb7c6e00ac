"""Shows how well each attack distinguished the datasets."""

from __future__ import annotations

import math

from dpaudit.result.model import AuditResult
from dpaudit.result.values import AttackRow
from dpaudit_reports.blocks import Block, Column, Heading, Paragraph, Table
from dpaudit_reports.numbers import first, number, percent

_UNUSED = "not used: "  # prefix of the note of an unused attack, before the reason


def attacks(result: AuditResult) -> tuple[Block, ...]:
    """Return a table of the used attacks, sorted by weight, and a line with the unused attacks.

    Audits without pairs have no such section.
    """
    if not result.evidence.of_pairs:
        return ()
    heading = Heading("Attacks")
    if not result.attacks:
        return heading, Paragraph("No attack was tried.", quiet=True)
    shown, left_out = first(result.attacks, "attacks")
    used = sorted((row for row in shown if not row.note.startswith(_UNUSED)), key=lambda row: -row.weight)
    unused = [row for row in shown if row.note.startswith(_UNUSED)]
    noted = any(row.note for row in used)
    table = Table(
        (
            Column("Attack", grow=2),
            Column("Weight", align="right"),
            Column("Log loss", align="right"),
            Column("Seconds", align="right"),
            *((Column("Note", grow=3),) if noted else ()),
        ),
        tuple(
            (
                row.name,
                percent(round(row.weight, 3), 2),
                _loss(row.log_loss),
                _seconds(result, row.name),
                *((row.note or "–",) if noted else ()),
            )
            for row in used
        ),
    )
    return (
        heading,
        *((table,) if used else ()),
        *((Paragraph(f"Not used: {_by_reason(unused)}."),) if unused else ()),
        *left_out,
        *((Paragraph(_MEANING, quiet=True),) if used else ()),
    )


_MEANING = (
    "All attacks learned from the same runs, so no attack costs additional runs. Weight: final weight in the combined "
    "score. Log loss: mean loss on outputs not seen before, in nats; blind guessing has ln 2 = 0.693, and less is "
    "better. Seconds: time for fitting and scoring."
)


def _by_reason(rows: list[AttackRow]) -> str:
    """Return the names of attacks, grouped by reason."""
    reasons = dict.fromkeys(_reason(row) for row in rows)
    named = {reason: [row.name for row in rows if _reason(row) == reason] for reason in reasons}
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in named.items())


def _reason(row: AttackRow) -> str:
    """Return the reasons in a note.  With several pairs, a note has several parts that each begin with `_UNUSED`."""
    return " or ".join(part.removeprefix(_UNUSED) for part in row.note.split("; "))


def _seconds(result: AuditResult, attack: str) -> str:
    spent = (result.provenance.attack_seconds or {}).get(attack)
    return "–" if spent is None else f"{spent:.2f}"


def _loss(nats: float) -> str:
    return "–" if math.isnan(nats) else number(nats)
