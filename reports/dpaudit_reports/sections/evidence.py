"""Shows the growth of the evidence against the claim."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from dpaudit.result.evidence import given_scores
from dpaudit.result.model import AuditResult, p_value_words
from dpaudit.text.rounding import at_least, at_most, count, number, percent_at_least, percent_beyond, upper
from dpaudit_reports.blocks import Block, Column, Figure, Heading, KeyValues, Math, Panel, Paragraph, Span, Table
from dpaudit_reports.figures.evidence import distributions_svg, evidence_svg, witness_scores
from dpaudit_reports.numbers import bare
from dpaudit_reports.rates import RegionStatus, region_status
from dpaudit_reports.verdicts import why_void


def scores(result: AuditResult) -> tuple[Block, ...]:
    """Return what given scores prove under each assumption."""
    guessed, words = given_scores(result.evidence), result.evidence.words
    if guessed is None:
        return ()
    rows = [
        (words.unit, f"{count(guessed.scores)}, {words.each}"),
        ("right guesses", f"{guessed.outcome}"),
    ]
    if result.p_value < 1:
        rows.append(("p-value", p_value_words(result, at_most)))
    found: list[Block] = [Heading("The scores"), KeyValues(tuple(rows))]
    if result.bounds:
        columns = (Column("Assumption", grow=1), Column("Proven", align="right"), Column("Could prove", align="right"))
        table = tuple(
            (
                f"{row.assumption}{' (the verdict)' if row.verdict else ''}",
                f"ε\u00a0{at_least(row.epsilon)}",
                upper(row.most, 3),
            )
            for row in result.bounds
        )
        needed = "" if result.violated else result.detectable.needed
        explained = (
            f"Lower bounds on ε at δ = {number(result.bounds[0].delta)}, each with "
            f"{percent_at_least(result.confidence)} confidence if its own assumption is true. Could prove: the "
            "largest bound of this number of scores. Members and non-members from different sources prove "
            f"nothing, whatever their scores.{f' {needed[:1].upper()}{needed[1:]}.' if needed else ''}"
        )
        found += [Table(columns, table), Paragraph(explained, quiet=True)]
    return tuple(found)


def evidence(result: AuditResult) -> tuple[Block, ...]:
    """Return plots of the wealth and of the witness's scores; nothing for an audit without pairs."""
    if not result.evidence.of_pairs:
        return ()
    heading, void = Heading("Evidence against the claim"), why_void(result)
    scores = _scores(result)
    if result.evidence.anytime and result.history.trials.size:
        wealth = _wealth(result, void)
        panels = (*wealth.panels, *(panel for figure in scores for panel in figure.panels))
        caption = (*wealth.caption, *(span for figure in scores for span in (" ", *figure.caption)))
        return heading, Figure(panels, caption)
    if result.evidence.anytime:
        words = Paragraph("The growth of the evidence was not recorded.", quiet=True)
    else:
        words = Paragraph(f"There is no valid evidence: {void}." if void else _by_p_value(result))
    return heading, words, *scores


def _wealth(result: AuditResult, void: str) -> Figure:
    missed = 1 - result.confidence
    threshold = number(1 / missed if missed > 0 else math.inf)
    words = f"The wealth is not valid evidence: {void}." if void else _in_words(result, threshold)
    caption = _void(void) if void else _caption(threshold, result.confidence)
    return Figure((Panel(partial(evidence_svg, result), alt=words, title="Wealth"),), caption=caption)


def _scores(result: AuditResult) -> tuple[Figure, ...]:
    if region_status(result) in (RegionStatus.NONE, RegionStatus.VOID, RegionStatus.FAR):
        return ()
    if (scores := witness_scores(result)) is None:
        return ()
    cut = number(scores.cut)
    alt = f"The plot shows the scores of the outputs of d0 and of d1, and the region above {cut}."
    panel = Panel(partial(distributions_svg, scores), alt=alt, title="Scores")
    caption = (
        f"Score: the estimated log-likelihood ratio of d1 to d0; it exceeds {cut} in the shaded region. If the outputs "
        "revealed nothing, the two distributions would be equal. The last bars include more extreme outputs."
    )
    return (Figure((panel,), caption=(caption,)),)


def _caption(threshold: str, confidence: float) -> tuple[Span, ...]:
    return (
        "The wealth ",
        Math("E"),
        " of a gambler who bets against the claim and starts with 1. If the claim is true, the wealth ever reaches "
        f"{threshold} with probability at most {percent_beyond(confidence)}, so the audit may then stop. A small "
        "wealth does not prove the claim.",
    )


def _void(reason: str) -> tuple[Span, ...]:
    return (
        "Not valid: ",
        f"{reason}. The grey line is the wealth that bets against the claim would have had. This wealth is no "
        "evidence, however large it is.",
    )


def _by_p_value(result: AuditResult) -> str:
    limit = bare(at_least(float(1 - Fraction(repr(result.confidence))), 3))
    p_value = p_value_words(result, at_most)
    return (
        "This audit tested the claim once, after a number of runs that was fixed beforehand. So its evidence did not "
        f"grow step by step. The p-value of the claim is {p_value}; a p-value of at most {limit} refutes the claim."
    )


def _in_words(result: AuditResult, threshold: str) -> str:
    return (
        f"The plot shows the wealth of bets against the claim over {count(result.trials_used)} runs per dataset. The "
        f"final e-value is {number(result.e_value)}; a wealth of {threshold} refutes the claim."
    )
