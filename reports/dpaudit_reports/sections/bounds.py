"""The certified bounds on the mechanism's privacy loss, which do not depend on the claim."""

from __future__ import annotations

import math

from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit_reports.blocks import Block, Column, Heading, Paragraph, Strong, Table, Text
from dpaudit_reports.bounds import DELTAS, allowed_epsilon
from dpaudit_reports.claimed import ABOVE_ALONE, Bound, headline
from dpaudit_reports.numbers import NOT_KNOWN, percent_at_least
from dpaudit_reports.reasons import why_void


def bounds(result: AuditResult) -> tuple[Block, ...]:
    """Return certified lower bounds and the values that the claim allows, with the claim's own parameter first."""
    heading = Heading("Certified bounds")
    if void := why_void(result):
        return heading, Paragraph((Strong(f"Nothing is certified: {void}."),))
    shown = _bounds(result)
    curve = "The claim is false as a curve, although no single bound exceeds the claimed value. "
    exceeding = any(bound.exceeds for bound in shown)
    alone = curve if result.violated and not exceeding else ""
    if exceeding and not (result.violated or result.measurement):
        alone = f"{ABOVE_ALONE} "
    assumption = result.evidence.words.assumption
    assumed = f"The bounds rest on an assumption that was not tested: {assumption}. " if assumption else ""
    return (
        heading,
        Table(
            (
                Column("Privacy parameter", grow=1),
                Column("Certified", align="right"),
                Column("Claim allows", align="right"),
            ),
            tuple(map(_row, shown)),
        ),
        Paragraph(
            f"{alone}{_together(result)} with {percent_at_least(result.confidence)} confidence. {assumed}Nothing is "
            "assumed about the noise. These are lower bounds on the privacy loss: 0 means that nothing could be "
            "certified, not that the loss is 0. The bound on μ refers to Gaussian curves and is not a bound on ε."
            f"{' ▲ marks a bound above the claimed value.' if exceeding else ''}",
            quiet=True,
        ),
    )


def _bounds(result: AuditResult) -> tuple[Bound, ...]:
    """Return one bound for each parameter, with the bound of the headline first."""
    known = bool(result.evidence.trials)
    everywhere = (
        Bound("μ", None, result.mu_lower, result.claim.mu()),
        *(
            Bound(
                "ε",
                delta,
                result.epsilon_lower(delta) if known else math.nan,
                allowed_epsilon(result.claim, delta),
            )
            for delta in DELTAS
        ),
    )
    first = headline(result)
    if first is None:
        return everywhere
    return (first, *(b for b in everywhere if (b.symbol, b.delta) != (first.symbol, first.delta)))


def _together(result: AuditResult) -> str:
    if not result.evidence.joint:
        return "Each bound holds separately"
    decided = result.verdict is not Verdict.INCONCLUSIVE and not result.measurement
    return f"All bounds{' and the verdict' if decided else ''} hold together"


def _row(bound: Bound) -> tuple[Text, ...]:
    allowed = "no limit" if math.isinf(bound.claimed) else f"≤\u00a0{bound.claimed_text()}"
    if math.isnan(bound.certified):
        return bound.name(), NOT_KNOWN, allowed
    if not bound.exceeds:
        return bound.name(), bound.certified_text(), allowed
    return bound.name(), (Strong(f"▲ {bound.certified_text()}"),), allowed
