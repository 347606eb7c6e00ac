"""What was found, in one sentence, with the claim, the confidence and the trials."""

from __future__ import annotations

from dpaudit.result import AuditResult, Verdict
from dpaudit_reports.blocks import Block, Callout, Code, Facts, Math, Text
from dpaudit_reports.marks import MARKS
from dpaudit_reports.numbers import at_least, at_most, count, number, percent, runs


def verdict(result: AuditResult) -> tuple[Block, ...]:
    """The verdict and its numbers.  The only section without a heading: it stands under the title."""
    mark = MARKS[result.verdict]
    return (
        Callout(mark.sign, mark.word, _sentence(result), mark.tone),
        Facts(
            (
                ("Confidence", percent(result.confidence)),
                ("Runs per dataset", count(result.trials_used)),
                ("p-value", at_most(result.p_value)),
                ("e-value", number(result.e_value)),
                ("Certified", (Math("μ"), f" {at_least(result.mu_lower)}")),
            )
        ),
    )


def _sentence(result: AuditResult) -> Text:
    claim, confidence = Code(result.claim.label), percent(result.confidence)
    spent = "one run" if result.method == "one_run" else runs(result.trials_used)
    match result.verdict:
        case Verdict.VIOLATION:
            return (
                "The mechanism does not keep the claim ",
                claim,
                f": it is refuted at {confidence} confidence, after {spent}. Were the claim true, an audit "
                f"would end like this with probability at most {percent(1 - result.confidence)}.",
            )
        case Verdict.NO_VIOLATION:
            return (
                "No violation of the claim ",
                claim,
                f" was found at {confidence} confidence in {spent}. ",
                *_visible(result),
                " That does not prove the claim.",
            )
        case Verdict.INCONCLUSIVE:
            return (
                "This audit cannot say whether the claim ",
                claim,
                f" holds. It was not refuted at {confidence} confidence in {spent}, but the audit was too "
                "short or too limited for that to mean much: see what could not have been seen, and the "
                "warnings.",
            )


def _visible(result: AuditResult) -> tuple[str | Code, ...]:
    if not result.detectable.claim:
        return ("No violation, however large, would have been found with 90\u00a0% probability.",)
    assumption = f" ({result.detectable.assumption})" if result.detectable.assumption else ""
    return (
        "One as large as ",
        Code(result.detectable.claim),
        f" would have been found with 90\u00a0% probability{assumption}.",
    )
