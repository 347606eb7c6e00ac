"""The claim's trade-off function beside what the attack reached."""

from __future__ import annotations

from functools import partial

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block, Figure, Heading, Math, Panel
from dpaudit_reports.figures.tradeoff import small_errors_svg, tradeoff_svg
from dpaudit_reports.numbers import number, percent


def tradeoff(result: AuditResult) -> tuple[Block, ...]:
    """The figure, linear and log-log; small errors decide about privacy, and only show on the latter."""
    return (
        Heading("Trade-off between the two errors"),
        Figure(
            (
                Panel(partial(tradeoff_svg, result), alt=_in_words(result)),
                Panel(partial(small_errors_svg, result), alt="The same on logarithmic axes."),
            ),
            caption=(
                "An attack that tells the two datasets apart by one output errs in two ways: ",
                Math("α"),
                " is how often it says d1 on an output of d0, ",
                Math("β"),
                " how often it says d0 on one of d1. The claim promises that no attack gets into the grey. ",
                _band(result),
                " Then the same on logarithmic axes, since small errors decide.",
            ),
        ),
    )


def _band(result: AuditResult) -> str:
    if result.curve.alpha.size == 0:
        return "The attack's own curve was not recorded."
    if result.method == "one_run":
        return "One run bounds no curve; the attack's errors over all canaries are an observation."
    return (
        f"With {percent(result.confidence)} confidence the mechanism's own curve lies below the dashed line, "
        "everywhere at once; the verdict rests on the evidence, which is sharper than this band."
    )


def _in_words(result: AuditResult) -> str:
    words = f"Type II against type I error. The claim {result.claim.label} forbids the region below its curve."
    if result.witness is None:
        return f"{words} No witness is marked."
    at = f"type I error {number(result.witness.alpha)} and type II error {number(result.witness.beta)}"
    return f"{words} The witness has {at}; the claim promises at least {number(result.witness.claimed_beta)}."
