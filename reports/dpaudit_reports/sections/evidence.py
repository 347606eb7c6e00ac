"""The growth of the evidence against the claim."""

from __future__ import annotations

import math
from functools import partial

from dpaudit.result.model import AuditResult, p_value_words
from dpaudit_reports.blocks import Block, Figure, Heading, Math, Panel, Paragraph, Text
from dpaudit_reports.figures.evidence import evidence_svg
from dpaudit_reports.numbers import at_most, count, number, percent
from dpaudit_reports.reasons import why_void


def evidence(result: AuditResult) -> tuple[Block, ...]:
    """Return the wealth over the trials, with the threshold that refutes the claim; nothing without pairs."""
    if not result.evidence.of_pairs:
        return ()
    heading, void = Heading("Evidence against the claim"), why_void(result)
    if not result.evidence.anytime:
        return heading, Paragraph(f"There is no valid evidence: {void}." if void else _by_p_value(result))
    if result.history.trials.size == 0:
        return heading, Paragraph("The growth of the evidence was not recorded.", quiet=True)
    significance = 1 - result.confidence
    threshold = number(1 / significance if significance > 0 else math.inf)
    words = f"The wealth is not valid: {void}. It is no evidence." if void else _in_words(result, threshold)
    caption = _void(void) if void else _caption(threshold, significance)
    return heading, Figure((Panel(partial(evidence_svg, result), alt=words),), caption=caption)


def _caption(threshold: str, significance: float) -> Text:
    return (
        "The wealth ",
        Math("E"),
        " of someone who bets against the claim and starts with 1. If the claim is true, the wealth ever "
        f"reaches {threshold} with probability at most {percent(significance)}. So the audit may stop as soon as the "
        "wealth reaches it. A small wealth does not prove the claim.",
    )


def _void(reason: str) -> Text:
    return (
        "Not valid: ",
        f"{reason}. The grey line is the wealth that bets against the claim would have had. It is no evidence, "
        "whatever its value.",
    )


def _by_p_value(result: AuditResult) -> str:
    """Return the evidence of a test that looks once, and so has no growing wealth."""
    limit = number(1 - result.confidence)
    p_value = p_value_words(result, at_most)
    return (
        "This audit looked once, after a number of runs that was fixed beforehand. So its evidence did not grow step "
        f"by step. The p-value of the claim is {p_value}; the claim is refuted at {limit} and below."
    )


def _in_words(result: AuditResult, threshold: str) -> str:
    return (
        f"Evidence against the claim over {count(result.trials_used)} runs per dataset. At the end it is "
        f"{number(result.e_value)}; {threshold} refutes the claim."
    )
