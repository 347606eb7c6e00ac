"""The claim's privacy profile, and the certified bound of the mechanism's own profile."""

from __future__ import annotations

from functools import partial

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Figure, Heading, Math, Panel, Span
from dpaudit_reports.bounds import certified_profile
from dpaudit_reports.claimed import label
from dpaudit_reports.figures.profile import profile_svg
from dpaudit_reports.numbers import at_least, number, percent


def profile(result: AuditResult) -> tuple[Block, ...]:
    """Return the plot of delta against epsilon: the claim's curve, and the staircase of the certified bounds."""
    return (
        Heading("Privacy profile"),
        Figure(
            (Panel(partial(profile_svg, result), alt=_in_words(result)),),
            caption=(
                "At each ",
                Math("ε"),
                " the least ",
                Math("δ"),
                " for which the mechanism is ",
                Math("(ε, δ)"),
                "-differentially private. The claim promises that this curve stays out of the grey. ",
                *_certified(result),
            ),
        ),
    )


def _certified(result: AuditResult) -> tuple[Span, ...]:
    if not certified_profile(result):
        return ("Nothing could be certified about the mechanism's own profile. It may still be large.",)
    hold = "everywhere at once" if result.evidence.joint else "at each of its steps alone"
    return (
        f"With {percent(result.confidence)} confidence, {hold}, the mechanism's own profile lies above the dashed "
        "staircase. Where the staircase reaches into the grey, the claim is exceeded. The staircase is drawn from the "
        "bounds at a few ",
        Math("δ"),
        ", which are listed below.",
    )


def _in_words(result: AuditResult) -> str:
    words = f"The plot shows delta against epsilon. The claim {label(result.claim)} forbids the region above its curve."
    steps = certified_profile(result)
    if not steps:
        return f"{words} Nothing is certified."
    corners = ", ".join(f"epsilon {at_least(epsilon)} at delta {number(delta)}" for epsilon, delta in steps)
    return f"{words} Certified: {corners}."
