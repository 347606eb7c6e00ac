"""Summarizes several audits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial

from dpaudit.result.model import AuditResult
from dpaudit.result.suite import named_together, promised_together
from dpaudit.result.summary import p_value_words
from dpaudit.result.values import Verdict
from dpaudit.result.words import words_of
from dpaudit.rounding import at_most, count, lower, percent_at_least, upper
from dpaudit_reports.blocks import (
    Block,
    Code,
    Column,
    Paragraph,
    Picture,
    Reference,
    Span,
    Strong,
    Table,
    Text,
    spans_of,
)
from dpaudit_reports.claimed import (
    Ranges,
    certified_of_claimed,
    found_from,
    headline,
    label,
    least_found,
    ranges,
    tells,
)
from dpaudit_reports.figures.bars import Key, axis_svg, key_svg, scale_end, strip_svg
from dpaudit_reports.verdicts import MARKS, WORST_FIRST, outcome, title_of

_KEYS: tuple[tuple[Key, str], ...] = (
    ("certified", "certified: the loss is at least this large"),
    ("unproven", "unproven: nothing is known about the loss here"),
    ("blind", "blind: a violation here may have been missed"),
    (
        "found",
        "found: from here, a violation would have been found with 90\u00a0% probability, if its trade-off curve is the "
        "one that the part about the audit names",
    ),
)


def overview(results: Sequence[AuditResult]) -> tuple[Block, ...]:
    """Return a table with a line for each audit, and its legend."""
    places = [ranges(result) for result in results]
    end = scale_end(places)
    one = len({result.confidence for result in results}) == 1
    columns = (
        Column("Audit", grow=2.9),
        Column(("Loss, as a multiple of the claim ", Picture(partial(axis_svg, end), "")), grow=3.3),
        Column("Certified / claimed", grow=2.3),
        Column("Claim", grow=2.3),
        *(() if one else (Column("Confidence", align="right"),)),
        Column("Runs", align="right"),
    )
    rows = tuple(
        (
            (Strong(f"{MARKS[result.verdict].sign} "), Reference(title_of(result), i)),
            _strip(result, place, end),
            _certified(result),
            (Code(label(result.claim)),),
            *(() if one else (percent_at_least(result.confidence),)),
            count(result.trials_used),
        )
        for i, (result, place) in enumerate(zip(results, places, strict=True))
    )
    drawn = [(result, place) for result, place in zip(results, places, strict=True) if place is not None]
    return Table(columns, rows), *_legend(drawn, end)


def _certified(result: AuditResult) -> Text:
    bound = headline(result) if result.measurement and result.bounds_valid else None
    if bound is not None and not math.isnan(bound.certified):
        return bound.shown(bound.certified_text())
    least = None if result.violated else least_found(result)
    after = outcome(result) if least is None else f"; found from {found_from(least)}"
    return *spans_of(certified_of_claimed(result)), after


def _legend(drawn: Sequence[tuple[AuditResult, Ranges]], end: float) -> tuple[Block, ...]:
    keys: set[Key] = {"certified", "unproven"} if drawn else set()
    for result, place in drawn:
        if not result.violated:
            keys |= {"blind", "found"} if place.blind_until <= end else {"blind"}
    spans: list[Span] = []
    for key, meaning in _KEYS:
        if key in keys:
            spans += ["; " if spans else "", Picture(partial(key_svg, key), f"sample: {key}", wide=False), meaning]
    return (Paragraph((*spans, "."), quiet=True),) if spans else ()


def _strip(result: AuditResult, place: Ranges | None, end: float) -> Text:
    mark = MARKS[result.verdict]
    if place is None:
        return "no claim" if result.measurement else "this claim has no place on the scale"
    return (Picture(partial(strip_svg, place, mark.tone, end), _in_words(result, place)),)


def _in_words(result: AuditResult, place: Ranges) -> str:
    if not result.bounds_valid:
        return "nothing certified"
    if result.violated and not place.certified > 1:
        return "certified more than the claim"
    certified = f"certified {lower(place.certified, 3, over=1.0)} times the claim"
    if result.violated:
        return certified
    if math.isinf(place.blind_until):
        return f"{certified}; no violation would have been found"
    return f"{certified}; blind up to {upper(place.blind_until, 3)} times the claim"


def summary(results: Sequence[AuditResult]) -> tuple[Block, ...]:
    """Return a tally of the verdicts, and an overview with one line for each audit in the given order."""
    return Paragraph((Strong(tally(results)),)), *overview(results), *caveat(results)


def tally(results: Sequence[AuditResult]) -> str:
    """Return how many results have each verdict, worst first, such as "▲ Violation: 2." """
    words = []
    for verdict, many in sorted(
        Counter(one.verdict for one in results).items(), key=lambda one: WORST_FIRST.index(one[0])
    ):
        words.append(f"{MARKS[verdict].sign} {MARKS[verdict].title}: {many}.")
    return " ".join(words)


def p_value(result: AuditResult) -> str:
    """Return the p-value as text; "–" if it is not evidence against the claim."""
    return p_value_words(result, at_most) if tells(result) else "–"


def caveat(results: Sequence[AuditResult], where: str = "the part about the audit") -> tuple[Block, ...]:
    """Return what holds for all results together, and what their numbers mean."""
    together, notes = promised_together(results), []
    if len({result.confidence for result in results}) == 1:
        notes.append(f"Confidence of each audit: {percent_at_least(results[0].confidence)}.")
    if not together:
        notes.append("Each verdict holds at its own confidence, but the verdicts do not hold jointly.")
        if together := named_together(results):
            notes.append("The correction for several audits is valid if this list contains every audit that was made.")
    if any(result.verdict is Verdict.NO_VIOLATION for result in results):
        notes.append(
            "That no violation was found does not prove a claim. Found from: the smallest violation that would have "
            f"been found with 90\u00a0% probability in the best case, see {where}."
        )
    notes += dict.fromkeys(
        f"Audits with the method {result.method} assume, without a test: {words}."
        for result in results
        if (words := words_of(result.evidence).assumption)
    )
    if any(result.violated for result in results):
        notes.append("Certified / claimed: a lower bound, and the maximum that the claim allows.")
    return (
        *((Paragraph(together),) if together else ()),
        *((Paragraph(" ".join(notes), quiet=True),) if notes else ()),
    )
