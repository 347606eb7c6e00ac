"""Pictures of the errors of the attack, of counts and bounds, and the certified bounds on the privacy loss."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpaudit.result.evidence import given_scores
from dpaudit.result.model import AuditResult, allowed_rate
from dpaudit.result.values import Verdict
from dpaudit.result.words import words_of
from dpaudit.rounding import at_least, count, lower, number, percent_at_least
from dpaudit_reports.blocks import (
    Block,
    Column,
    Figure,
    Heading,
    Math,
    Panel,
    Paragraph,
    Span,
    Strong,
    Table,
    Text,
    with_mathematics,
)
from dpaudit_reports.claimed import (
    ABOVE_ALONE,
    DELTAS,
    Bound,
    certified_profile,
    epsilon_bound,
    found_from,
    has_band,
    headline,
    label,
    least_found,
    mu_bound,
)
from dpaudit_reports.figures.bars import Bar, bars_svg
from dpaudit_reports.figures.canvas import ATTACK, CLAIM, WITNESS
from dpaudit_reports.figures.residual import tradeoff_hints
from dpaudit_reports.figures.tradeoff import (
    observed,
    point_name,
    profile_svg,
    small_errors_svg,
    smallest_error,
    tradeoff_svg,
)
from dpaudit_reports.rates import Frequencies, RegionStatus, frequencies, intervals, region_status
from dpaudit_reports.verdicts import shows_size, why_void

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
    title = f"The witness: {result.witness.region}"
    title = "The witness" if found.moving or len(title) > 48 else title
    return Panel(partial(bars_svg, rows), alt=alt, title=title), "Bars: the share of runs with an output in the region."


def _guesses(result: AuditResult) -> tuple[Panel, str]:
    guessed, words = given_scores(result.evidence), words_of(result.evidence)
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
    first = tradeoff_panel(result, apart if result.evidence.kind.of_pairs else "Errors of the attack")
    second, meaning = beside(result)
    panels = (first,) if second is None else (first, second)
    return Heading("What the attack achieved"), Figure(panels, caption=(*_errors(result), f" {meaning}".rstrip()))


def tradeoff_panel(result: AuditResult, title: str = "") -> Panel:
    """Return the plot of the claim and of the attack's errors, which marks the witness."""
    hints = partial(tradeoff_hints, result)
    return Panel(partial(tradeoff_svg, result), alt=_errors_in_words(result), title=title, hints=hints)


def _errors(result: AuditResult) -> tuple[Span, ...]:
    words = with_mathematics(words_of(result.evidence).errors)
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
    return f"{box}, which hold whenever the audit stops." if found.counted == "later" else f"{box}."


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


def bounds(result: AuditResult) -> tuple[Block, ...]:
    """Return certified lower bounds and the values that the claim allows, with the claim's own parameter first."""
    heading = Heading("Certified bounds")
    if void := why_void(result):
        return heading, Paragraph((Strong(f"Nothing is certified: {void}."),))
    shown = _all_bounds(result)
    numbers = (Column(title, align="right") for title in ("Certified", "Claim allows"))
    curve = "The claim is false as a curve, although no single bound exceeds the claimed value. "
    exceeding = any(bound.exceeds for bound in shown)
    alone = curve if result.violated and not exceeding else ""
    if exceeding and not (result.violated or result.measurement):
        alone = f"{ABOVE_ALONE} "
    assumption = words_of(result.evidence).assumption
    assumed = f"The bounds rest on an assumption that was not tested: {assumption}. " if assumption else ""
    return (
        heading,
        Table((Column("Privacy parameter", grow=1), *numbers), tuple(map(_row, shown))),
        Paragraph(
            f"{alone}{_together(result)} with {percent_at_least(result.confidence)} confidence. {assumed}"
            "These are lower bounds on the privacy loss: 0 means that nothing could be certified, not that it is 0. "
            "The bound on μ refers to Gaussian curves and is not a bound on ε."
            f"{' ▲ marks a bound above the claimed value.' if exceeding else ''}",
            quiet=True,
        ),
    )


def _all_bounds(result: AuditResult) -> tuple[Bound, ...]:
    everywhere = (mu_bound(result), *(epsilon_bound(result, delta) for delta in DELTAS))
    if (first := headline(result)) is None:
        return everywhere
    return (first, *(b for b in everywhere if (b.symbol, b.delta) != (first.symbol, first.delta)))


def _together(result: AuditResult) -> str:
    if not result.evidence.kind.anytime:
        return "Each bound holds separately"
    decided = result.verdict is not Verdict.INCONCLUSIVE and not result.measurement
    return f"All bounds{' and the verdict' if decided else ''} hold together"


def _row(bound: Bound) -> tuple[Text, ...]:
    allowed = "no limit" if math.isinf(bound.claimed) else f"≤\u00a0{bound.claimed_text()}"
    certified = bound.certified_text()
    return bound.name(), (Strong(f"▲ {certified}"),) if bound.exceeds else certified, allowed


def curves(result: AuditResult) -> tuple[Block, ...]:
    """Return the trade-off plot on logarithmic axes, which show small errors, and the privacy profile."""
    return (
        Heading("Small errors and privacy profile"),
        Figure(
            (
                Panel(
                    partial(small_errors_svg, result),
                    alt="The errors on logarithmic axes.",
                    title="Small errors",
                    hints=partial(tradeoff_hints, result, smallest_error(result)),
                ),
                Panel(partial(profile_svg, result), alt=_in_words(result), title="Privacy profile"),
            ),
            caption=(
                f"Left: the same errors as on the first page, on logarithmic axes. {_band(result)}Right: at each ",
                Math("ε"),
                " the least ",
                Math("δ"),
                " for which the mechanism is ",
                Math("(ε, δ)"),
                "-differentially private. The claim promises that this curve stays outside the grey area. ",
                *_certified(result),
            ),
        ),
    )


def _band(result: AuditResult) -> str:
    if not result.bounds_valid or result.curve.alpha.size == 0:
        return ""
    if not has_band(result):
        return f"{words_of(result.evidence).no_band} "
    words = " This bound is weaker than the test of the claim, so it may lie above the claim's curve."
    weaker = words if result.violated and not shows_size(result) else ""
    return (
        f"With {percent_at_least(result.confidence)} confidence, the mechanism's own curve lies nowhere above the "
        f"dashed line.{weaker} "
    )


def _certified(result: AuditResult) -> tuple[Span, ...]:
    if not certified_profile(result):
        return ("Nothing could be certified about the mechanism's own profile, which may still be large.",)
    hold = "all its steps jointly" if result.evidence.kind.anytime else "each of its steps, taken alone"
    return (
        "The dashed staircase shows certified bounds at a few ",
        Math("δ"),
        f". With {percent_at_least(result.confidence)} confidence, the mechanism's own profile lies above {hold}.",
    )


def _in_words(result: AuditResult) -> str:
    words = f"The plot shows delta against epsilon. The claim {label(result.claim)} forbids the region above its curve."
    steps = certified_profile(result)
    if not steps:
        return f"{words} Nothing is certified."
    bound = headline(result)
    digits = 4 if bound is None else bound.digits
    corners = ", ".join(f"epsilon {at_least(epsilon, digits)} at delta {number(delta)}" for epsilon, delta in steps)
    return f"{words} Certified: {corners}."
