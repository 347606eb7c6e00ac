"""The certified bounds on the privacy loss, and the curves of small errors and of the privacy profile."""

from __future__ import annotations

import math
from functools import partial

from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.text.rounding import NOT_KNOWN, at_least, number, percent_at_least
from dpaudit_reports.blocks import Block, Column, Figure, Heading, Math, Panel, Paragraph, Span, Strong, Table, Text
from dpaudit_reports.claimed import (
    ABOVE_ALONE,
    DELTAS,
    Bound,
    allowed_epsilon,
    certified_profile,
    has_band,
    headline,
    label,
)
from dpaudit_reports.figures.residual import tradeoff_hints
from dpaudit_reports.figures.tradeoff import profile_svg, small_errors_svg, smallest_error
from dpaudit_reports.verdicts import shows_size, why_void


def bounds(result: AuditResult) -> tuple[Block, ...]:
    """Return certified lower bounds and the values that the claim allows, with the claim's own parameter first."""
    heading = Heading("Certified bounds")
    if void := why_void(result):
        return heading, Paragraph((Strong(f"Nothing is certified: {void}."),))
    shown = _bounds(result)
    numbers = (Column(title, align="right") for title in ("Certified", "Claim allows"))
    curve = "The claim is false as a curve, although no single bound exceeds the claimed value. "
    exceeding = any(bound.exceeds for bound in shown)
    alone = curve if result.violated and not exceeding else ""
    if exceeding and not (result.violated or result.measurement):
        alone = f"{ABOVE_ALONE} "
    assumption = result.evidence.words.assumption
    assumed = f"The bounds rest on an assumption that was not tested: {assumption}. " if assumption else ""
    return (
        heading,
        Table((Column("Privacy parameter", grow=1), *numbers), tuple(map(_row, shown))),
        Paragraph(
            f"{alone}{_together(result)} with {percent_at_least(result.confidence)} confidence. {assumed}Nothing is "
            "assumed about the noise. These are lower bounds on the privacy loss: 0 means that nothing could be "
            "certified, not that the loss is 0. The bound on μ refers to Gaussian curves and is not a bound on ε."
            f"{' ▲ marks a bound above the claimed value.' if exceeding else ''}",
            quiet=True,
        ),
    )


def _bounds(result: AuditResult) -> tuple[Bound, ...]:
    known = bool(result.evidence.trials)
    certified = [result.epsilon_lower(delta) if known else math.nan for delta in DELTAS]
    epsilons = (
        Bound("ε", delta, least, allowed_epsilon(result.claim, delta))
        for delta, least in zip(DELTAS, certified, strict=True)
    )
    everywhere = (Bound("μ", None, result.mu_lower, result.claim.mu()), *epsilons)
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


def curves(result: AuditResult) -> tuple[Block, ...]:
    """Return the trade-off plot on logarithmic axes, which show small errors, and the privacy profile."""
    return (
        Heading("Small errors and privacy profile"),
        Figure(
            (
                Panel(
                    partial(small_errors_svg, result),
                    alt="The errors on logarithmic axes.",
                    title="Small errors",
                    hints=partial(tradeoff_hints, result, smallest_error(result)),
                ),
                Panel(partial(profile_svg, result), alt=_in_words(result), title="Privacy profile"),
            ),
            caption=(
                f"Left: the same errors as on the first page, on logarithmic axes. {_band(result)}Right: at each ",
                Math("ε"),
                " the least ",
                Math("δ"),
                " for which the mechanism is ",
                Math("(ε, δ)"),
                "-differentially private. The claim promises that this curve stays outside the grey area. ",
                *_certified(result),
            ),
        ),
    )


def _band(result: AuditResult) -> str:
    if not result.bounds_valid or result.curve.alpha.size == 0:
        return ""
    if not has_band(result):
        return f"{result.evidence.words.no_band} "
    words = " This bound is weaker than the test of the claim, so it may lie above the claim's curve."
    weaker = words if result.violated and not shows_size(result) else ""
    return (
        f"With {percent_at_least(result.confidence)} confidence, the mechanism's own curve lies nowhere above the "
        f"dashed line.{weaker} "
    )


def _certified(result: AuditResult) -> tuple[Span, ...]:
    if not certified_profile(result):
        return ("Nothing could be certified about the mechanism's own profile, which may still be large.",)
    hold = "all its steps jointly" if result.evidence.joint else "each of its steps, taken alone"
    return (
        "The dashed staircase shows certified bounds at a few ",
        Math("δ"),
        f". With {percent_at_least(result.confidence)} confidence, the mechanism's own profile lies above {hold}.",
    )


def _in_words(result: AuditResult) -> str:
    words = f"The plot shows delta against epsilon. The claim {label(result.claim)} forbids the region above its curve."
    steps = certified_profile(result)
    if not steps:
        return f"{words} Nothing is certified."
    bound = headline(result)
    digits = 4 if bound is None else bound.digits
    corners = ", ".join(f"epsilon {at_least(epsilon, digits)} at delta {number(delta)}" for epsilon, delta in steps)
    return f"{words} Certified: {corners}."
