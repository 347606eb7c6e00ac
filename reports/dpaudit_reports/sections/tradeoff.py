"""The claim's trade-off function, and the errors that the attack reached."""

from __future__ import annotations

from functools import partial

from dpaudit.result.model import AuditResult, p_value_words
from dpaudit_reports.blocks import Block, Figure, Heading, Panel, with_mathematics
from dpaudit_reports.bounds import has_band
from dpaudit_reports.claimed import label
from dpaudit_reports.figures.tradeoff import point_name, small_errors_svg, tradeoff_svg
from dpaudit_reports.numbers import at_most, number, percent
from dpaudit_reports.rates import accounted, allowed, intervals
from dpaudit_reports.reasons import why_void


def tradeoff(result: AuditResult) -> tuple[Block, ...]:
    """Return the figure, linear and log-log.  Small errors decide about privacy, and only log-log axes show them."""
    return (
        Heading("Trade-off between the two errors"),
        Figure(
            (
                Panel(partial(tradeoff_svg, result), alt=_in_words(result)),
                Panel(partial(small_errors_svg, result), alt="The same on logarithmic axes."),
            ),
            caption=(
                *with_mathematics(result.evidence.words.errors),
                " The claim promises that no attack gets into the grey. ",
                _curve(result),
                f"{_evidence(result)} The second panel shows the same on logarithmic axes, since small errors decide.",
            ),
        ),
    )


def _curve(result: AuditResult) -> str:
    """Return the meaning of the drawn curves."""
    if result.curve.alpha.size == 0:
        return "The attack's own curve was not recorded."
    if void := why_void(result):
        return f"Grey line: the observed errors. They bound nothing: {void}."
    if not has_band(result):
        return result.evidence.words.no_band
    return (
        "Blue line: the attack's observed errors, which chance can carry into the grey. With "
        f"{percent(result.confidence)} confidence the mechanism's own curve lies below the dashed line, everywhere at "
        "once."
    )


def _evidence(result: AuditResult) -> str:
    """Return the meaning of the diamond and, after a violation, the evidence on which the verdict rests."""
    found = result.witness
    lines = "its lines are 95\u00a0% intervals of the two errors"
    if found is not None and intervals(found) is None:
        lines = "without intervals, since its score changed while the attack learned"
    elif found is not None and accounted(found):
        lines += ", which hold whenever the audit stops"
    elif not result.evidence.frozen:
        lines += ", which do not account for the choice of the region"
    if getattr(found, "counted", "") in ("named", "later") or len(result.pairs) > 1:
        lines += "; it was counted on other outputs than the blue line, and need not lie on it"
    if not result.violated:
        return f" The hollow diamond is a region that shows no violation, {lines}." if point_name(result) else ""
    proof = f"{result.evidence.words.proof} (p-value {p_value_words(result, at_most)})"
    band = "The dashed line is weaker and may lie above the claim's curve. " if has_band(result) else ""
    band += f"The diamond is the witness, {lines}. " if point_name(result) else ""
    return f" {band}The verdict rests on {proof}."


def _in_words(result: AuditResult) -> str:
    claim = label(result.claim)
    words = f"The plot shows type II against type I error. The claim {claim} forbids the region below its curve."
    if void := why_void(result):
        return f"{words} Observed errors are drawn in grey. They bound nothing: {void}."
    name, found = point_name(result), result.witness
    if not name or found is None:
        return f"{words} No region is marked."
    shown = "The witness" if result.violated else "The marked region, no violation,"
    at = f"type I error {number(found.alpha)} and type II error {number(found.beta)}"
    least = f"The claim promises at least {number(1 - allowed(result, found))}"
    end = "at the upper end of its 95 % interval" if intervals(found) else "what was observed"
    return f"{words} {shown} has {at}. {least} if the type I error is {end}."
