"""The violations that the audit could not have detected."""

from __future__ import annotations

import math

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Code, Heading, Items, Math, Paragraph, Text
from dpaudit_reports.claimed import enlarged
from dpaudit_reports.numbers import at_most, number
from dpaudit_reports.reasons import why_void

_AT_MOST = "≤\u00a0"


def detection_limits(result: AuditResult) -> tuple[Block, ...]:
    """Return the limits of the audit."""
    heading = Heading("What could not have been seen")
    if void := why_void(result):
        words = f"It is unknown which violations this audit would have found: {void}."
        return heading, Paragraph(words)
    if result.measurement:
        items = (*_rate(result.detectable.rule_of_three_rate), *_loss(result), result.evidence.words.untried)
        return heading, Items(items)
    if result.violated:
        return heading, Items((_stopped(result), *_loss(result)))
    items = (_size(result), *_rate(result.detectable.rule_of_three_rate), *_loss(result), result.evidence.words.untried)
    return heading, Items(items)


def _stopped(result: AuditResult) -> str:
    """Return a reminder that a violation proves something only about what was tried."""
    others = result.evidence.words.others
    if result.stopped_by == "evidence":
        return f"The audit stopped at its proof; it says nothing about {others}."
    return f"The proof says nothing about {others}."


def _size(result: AuditResult) -> Text:
    if not result.detectable.claim:
        few = "one run" if result.evidence.once else "this number of runs"
        return f"Violations of any size: none would have been found with 90\u00a0% probability by {few}."
    return (
        "Smaller violations: the smallest that would have been found with 90\u00a0% probability is ",
        Code(enlarged(result.detectable.claim)),
        f"{assumption(result)}.",
    )


def assumption(result: AuditResult) -> str:
    """Return the assumption behind the size of the smallest detectable violation, in brackets; may be ""."""
    words = result.detectable.assumption.replace("e^epsilon", "e^ε")
    return f" ({words})" if words else ""


def _rate(rate: float) -> tuple[Text, ...]:
    if math.isnan(rate):
        return ()
    odds = f", 1 in {number(1 / rate, 2)}" if 0 < rate < 0.1 else ""
    return (f"Rare events: those with a probability below {number(rate, 2)}{odds}.",)


def _loss(result: AuditResult) -> tuple[Text, ...]:
    """Return a sentence about the largest epsilon that could have been certified; () if an older result exceeds it."""
    epsilon = result.detectable.largest_epsilon
    if not math.isfinite(epsilon) or (result.evidence.trials and result.epsilon_lower(0.0) > epsilon):
        return ()
    certain = Math("δ = 0")
    limit = f" above {at_most(epsilon, 4).removeprefix(_AT_MOST)} could have been certified at "
    return (("Larger losses: no ", Math("ε"), limit, certain, ", however large it is."),)
