"""What is certified about the mechanism, whatever was claimed."""

from __future__ import annotations

import math

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block, Column, Heading, Math, Paragraph, Strong, Table, Text
from dpaudit_reports.bounds import DELTAS, allowed_epsilon
from dpaudit_reports.numbers import NOT_KNOWN, at_least, number, percent


def bounds(result: AuditResult) -> tuple[Block, ...]:
    """Certified lower bounds beside the values that the claim allows."""
    rows = [
        _row(
            (Math("μ"),),
            result.mu_lower,
            result.claim.mu(),
            ("none on the noise; speaks of Gaussian curves only, not of ", Math("ε")),
        )
    ]
    for delta in DELTAS:
        certified = result.epsilon_lower(delta) if result.evidence.trials else None
        rows.append(
            _row(
                (Math("ε"), " at ", Math(f"δ = {number(delta)}")),
                certified,
                allowed_epsilon(result.claim, delta),
                ("none on the noise; certified directly at this ", Math("δ")),
            )
        )
    return (
        Heading("Certified bounds"),
        Table(
            (
                Column("Privacy parameter"),
                Column("Certified", align="right"),
                Column("Claim allows", align="right"),
                Column("Assumption", grow=1),
            ),
            tuple(rows),
        ),
        *_void(result),
        Paragraph(
            f"{_together(result)} with {percent(result.confidence)} confidence. They "
            "are lower bounds on the privacy loss: 0 means that nothing could be certified, not that "
            "nothing is lost. ▲ marks a bound above what the claim allows.",
            quiet=True,
        ),
    )


def _void(result: AuditResult) -> tuple[Block, ...]:
    if result.certified:
        return ()
    words = "Nothing is certified: the runs were not independent, or were not as many as had been fixed beforehand."
    return (Paragraph((Strong(words),)),)


def _together(result: AuditResult) -> str:
    return "All bounds and the verdict hold together" if result.method == "sequential" else "Each bound holds by itself"


def _row(name: Text, certified: float | None, claimed: float, assumption: Text) -> tuple[Text, ...]:
    allowed = f"≤\u00a0{number(claimed, 4)}"
    if certified is None:
        return name, NOT_KNOWN, allowed, assumption
    if not certified > claimed:
        return name, at_least(certified), allowed, assumption
    margin = (certified - claimed) / certified
    digits = max(4, 2 - math.floor(math.log10(margin)))  # enough to see that it is above
    return name, (Strong(f"▲ {at_least(certified, digits)}"),), allowed, assumption
