"""Illustrates the verdict with two panels: the errors of the attack, and counts or bounds."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpaudit.result.evidence import given_scores
from dpaudit.result.model import AuditResult, allowed_rate
from dpaudit.text.rounding import count, lower, number
from dpaudit_reports.blocks import Block, Figure, Heading, Panel, Span, with_mathematics
from dpaudit_reports.claimed import found_from, headline, label, least_found
from dpaudit_reports.figures.bars import Bar, bars_svg
from dpaudit_reports.figures.canvas import ATTACK, CLAIM, WITNESS
from dpaudit_reports.figures.residual import tradeoff_hints
from dpaudit_reports.figures.tradeoff import observed, point_name, tradeoff_svg
from dpaudit_reports.rates import Frequencies, RegionStatus, accounted, frequencies, intervals, region, region_status
from dpaudit_reports.verdicts import why_void

_ABOVE = "Nothing is known above the proven bound."
_WOULD = (
    "The last bar shows the violations that an optimal attack would have found with 90\u00a0% probability if the "
    "mechanism has exactly their trade-off curve. Smaller violations may have been missed, and larger ones with "
    "another curve."
)


def beside(result: AuditResult) -> tuple[Panel | None, str]:
    """Return the second panel and a description of its meaning; None and "" if the result has no second panel."""
    if not result.bounds_valid:
        return None, ""
    if given_scores(result.evidence) is not None:
        return _guesses(result)
    found = frequencies(result) if region_status(result) is RegionStatus.WITNESS else None
    return _bounds(result) if found is None else _counts(result, found)


def _counts(result: AuditResult, found: Frequencies) -> tuple[Panel, str]:
    assert result.witness is not None
    sides = found.sides
    rows = [_share(sides.name0, found.hits0, found.n0, ATTACK), _share(sides.name1, found.hits1, found.n1, WITNESS)]
    if found.most is not None:
        rows.append(_share(f"the claim allows at most {sides.name1}", found.most, found.n1, CLAIM))
    alt = f"Outputs in the region: {_joined(rows)}."
    title = f"The witness: {region(result.witness)}"
    title = "The witness" if found.moving or len(title) > 48 else title
    return Panel(partial(bars_svg, rows), alt=alt, title=title), "Bars: the share of runs with an output in the region."


def _guesses(result: AuditResult) -> tuple[Panel, str]:
    guessed, words = given_scores(result.evidence), result.evidence.words
    assert guessed is not None
    rows = [
        _share("right guesses", guessed.right, guessed.n1, WITNESS),
        Bar(f"by chance: about {count(round(guessed.by_chance))}", 0.0, guessed.by_chance / guessed.n1, ATTACK),
    ]
    alt = f"Guesses: {_joined(rows)}."
    return Panel(partial(bars_svg, rows), alt=alt, title=f"The {count(guessed.n1)} highest scores"), words.guessing


def _bounds(result: AuditResult) -> tuple[Panel | None, str]:
    bound, least = headline(result), None if result.violated else least_found(result)
    if bound is None or not (math.isfinite(bound.certified) and 0 < bound.claimed < math.inf):
        return None, ""
    reach = 1.25 * max(bound.claimed, bound.certified, 0.0 if least is None else least.certified)
    rows = [Bar(f"proven: {bound.certified_text()}", 0.0, bound.certified / reach, ATTACK)]
    if not result.measurement:
        rows.append(Bar(f"claim allows: ≤\u00a0{bound.claimed_text()}", 0.0, bound.claimed / reach, CLAIM))
    if least is not None:
        words = f"would have been found (90\u00a0%, best case): from {found_from(least)}"
        rows.append(Bar(words, least.certified / reach, 1.0, WITNESS))
    name = bound.symbol if bound.delta is None else f"{bound.symbol} at δ = {number(bound.delta)}"
    panel = Panel(partial(bars_svg, rows), alt=f"{name}: {_joined(rows)}.", title=f"The privacy loss {name}")
    return panel, _ABOVE + ("" if least is None else f" {_WOULD}")


def _share(name: str, k: int, n: int, color: str) -> Bar:
    return Bar(f"{name}: {count(k)} of {count(n)}", 0.0, k / max(1, n), color)


def _joined(rows: list[Bar]) -> str:
    return "; ".join(row.label for row in rows)


def pictures(result: AuditResult) -> tuple[Block, ...]:
    """Return the figure of the first page."""
    apart = "How well the attack tells the datasets apart"
    first = tradeoff_panel(result, apart if result.evidence.of_pairs else "Errors of the attack")
    second, meaning = beside(result)
    panels = (first,) if second is None else (first, second)
    return Heading("What the attack achieved"), Figure(panels, caption=(*_errors(result), f" {meaning}".rstrip()))


def tradeoff_panel(result: AuditResult, title: str = "") -> Panel:
    """Return the plot of the claim and of the attack's errors, which marks the witness."""
    hints = partial(tradeoff_hints, result)
    return Panel(partial(tradeoff_svg, result), alt=_errors_in_words(result), title=title, hints=hints)


def _errors(result: AuditResult) -> tuple[Span, ...]:
    words = with_mathematics(result.evidence.words.errors)
    return (
        *words,
        f" If the claim is true, the true errors of no attack lie in the grey area. {_curve(result)}{_point(result)}",
    )


def _curve(result: AuditResult) -> str:
    if result.curve.alpha.size == 0:
        return "The attack's own curve was not recorded."
    if void := why_void(result):
        return f"Grey line: the observed errors, which bound nothing: {void}."
    return "Blue line: the attack's observed errors, which may enter the grey area by chance."


def _point(result: AuditResult) -> str:
    found = result.witness
    if found is None:
        return ""
    if intervals(found) is None and region_status(result) in (RegionStatus.WITNESS, RegionStatus.CLOSEST):
        which = "The witness" if result.violated else "The region closest to a violation"
        return f" {which} is not drawn, since its score changed while the attack learned: its rates have no intervals."
    if not point_name(result):
        return ""
    name = " Diamond: the witness" if result.violated else " Hollow diamond: a region that shows no violation"
    box = f"{name}; the sides of the rectangle are the 95\u00a0% intervals of its two errors"
    return f"{box}, which hold whenever the audit stops." if accounted(found) else f"{box}."


def _best(result: AuditResult) -> str:
    points = observed(result)
    if not len(points):
        return ""
    alpha, beta = points[np.argmin(points[:, 0] + points[:, 1]), :2]
    errors = f"type I error {number(alpha, 3)} with type II error {number(beta, 3)}"
    return f" Over all counted outputs, the attack's errors reach {errors}."


def _errors_in_words(result: AuditResult) -> str:
    claim = label(result.claim)
    words = (
        f"The plot shows type II error β against type I error α. The claim {claim} forbids the region below its curve."
    )
    if void := why_void(result):
        return f"{words} The grey line shows the observed errors, which bound nothing: {void}."
    words = f"{words}{_best(result)}"
    name, found = point_name(result), result.witness
    if not name or found is None:
        return f"{words} No region is marked."
    shown = "The witness" if result.violated else "The marked region, which shows no violation,"
    at = f"type I error {number(found.alpha)} and type II error {number(found.beta)}"
    if math.isnan(limit := allowed_rate(result)):
        return f"{words} {shown} has {at}."
    least = f"The claim promises a type II error of at least {lower(1 - limit, 3)}"
    return f"{words} {shown} has {at}. {least} if the type I error is at the upper end of its 95 % interval."
