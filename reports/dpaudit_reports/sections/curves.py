"""Shows small errors of the attack, and the claim's privacy profile with the certified bound."""

from __future__ import annotations

from functools import partial

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Figure, Heading, Math, Panel, Span
from dpaudit_reports.bounds import certified_profile, has_band
from dpaudit_reports.claimed import headline, label
from dpaudit_reports.confirmed import shows_size
from dpaudit_reports.figures.hints import tradeoff_hints
from dpaudit_reports.figures.profile import profile_svg
from dpaudit_reports.figures.tradeoff import small_errors_svg, smallest_error
from dpaudit_reports.numbers import at_least, number, percent_at_least


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
