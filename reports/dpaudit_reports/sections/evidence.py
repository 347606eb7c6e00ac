"""How the evidence against the claim grew."""

from __future__ import annotations

import math

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block, Figure, Heading, Math, Paragraph
from dpaudit_reports.figures import evidence_svg
from dpaudit_reports.numbers import number, percent


def evidence(result: AuditResult) -> tuple[Block, ...]:
    """Wealth against trials with the threshold at which the claim is refuted."""
    heading = Heading("Evidence against the claim")
    if result.method != "sequential":
        return heading, Paragraph(_by_p_value(result))
    if result.history.trials.size == 0:
        return heading, Paragraph("The growth of the evidence was not recorded.", quiet=True)
    significance = 1 - result.confidence
    threshold = number(1 / significance if significance > 0 else math.inf)
    return (
        heading,
        Figure(
            evidence_svg(result),
            alt=(
                f"Evidence against the claim over {result.trials_used} runs per dataset; at the end it "
                f"is {number(result.e_value)}, the claim is refuted from {threshold}."
            ),
            caption=(
                "The wealth ",
                Math("E"),
                " of someone who bets against the claim, starting from 1. If the claim is true it ever "
                f"reaches {threshold} with probability at most {percent(significance)}, so the audit may "
                "stop as soon as it does. A small wealth does not prove the claim.",
            ),
        ),
    )


def _by_p_value(result: AuditResult) -> str:
    """Tests that look once have no wealth that grows."""
    limit = number(1 - result.confidence)
    return f"The p-value of the claim is at most {number(result.p_value)}; the claim is refuted at {limit} and below."
