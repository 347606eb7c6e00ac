"""Illustrates the verdict with two panels: the errors of the attack, and counts or bounds."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpaudit.result.model import AuditResult, allowed_rate
from dpaudit.text.rounding import lower
from dpaudit_reports.blocks import Block, Figure, Heading, Panel, Span, with_mathematics
from dpaudit_reports.claimed import label
from dpaudit_reports.figures.hints import tradeoff_hints
from dpaudit_reports.figures.tradeoff import observed, point_name, tradeoff_svg
from dpaudit_reports.numbers import number
from dpaudit_reports.rates import RegionStatus, accounted, intervals, region_status
from dpaudit_reports.reasons import why_void
from dpaudit_reports.second_picture import beside


def pictures(result: AuditResult) -> tuple[Block, ...]:
    """Return the figure of the first page."""
    first = tradeoff_panel(result, _title(result))
    second, meaning = beside(result)
    panels = (first,) if second is None else (first, second)
    return Heading("What the attack achieved"), Figure(panels, caption=(*_errors(result), f" {meaning}".rstrip()))


def tradeoff_panel(result: AuditResult, title: str = "") -> Panel:
    """Return the plot of the claim and of the attack's errors, which marks the witness."""
    hints = partial(tradeoff_hints, result)
    return Panel(partial(tradeoff_svg, result), alt=_errors_in_words(result), title=title, hints=hints)


def _title(result: AuditResult) -> str:
    return "How well the attack tells the datasets apart" if result.evidence.of_pairs else "Errors of the attack"


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
    """Return the meaning of the diamond and its rectangle."""
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
    """Return the point of the attack's observed curve that is farthest from blind guessing."""
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
