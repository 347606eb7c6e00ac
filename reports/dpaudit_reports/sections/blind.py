"""What could not have been seen."""

from __future__ import annotations

import math

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block, Code, Heading, Items, Math, Text
from dpaudit_reports.numbers import number


def blind(result: AuditResult) -> tuple[Block, ...]:
    """The limits of this audit, whatever its verdict."""
    items = (
        _size(result),
        *_rate(result.detectable.smallest_rate),
        *_loss(result.detectable.largest_epsilon),
        "Other datasets and other attacks: a claim is about all neighbours, and only the pairs and attacks "
        "of this audit were tried.",
    )
    return Heading("What could not have been seen"), Items(items)


def _size(result: AuditResult) -> Text:
    if not result.detectable.claim:
        return "Violations of any size: none would have been found with 90\u00a0% probability by so few runs."
    assumption = f" ({result.detectable.assumption})" if result.detectable.assumption else ""
    return (
        "Smaller violations: the smallest that would have been found with 90\u00a0% probability is ",
        Code(result.detectable.claim),
        f"{assumption}.",
    )


def _rate(rate: float) -> tuple[Text, ...]:
    if math.isnan(rate):
        return ()
    odds = f", 1 in {number(1 / rate, 2)}" if 0 < rate < 0.1 else ""
    return (f"Rare events: what happens with a probability below {number(rate, 2)}{odds}.",)


def _loss(epsilon: float) -> tuple[Text, ...]:
    if not math.isfinite(epsilon):
        return ()
    certain = Math("δ = 0")
    limit = f" above {number(epsilon)} could have been certified at "
    return (("Larger losses: no ", Math("ε"), limit, certain, ", however large it is."),)
