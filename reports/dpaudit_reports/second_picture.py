"""The panel next to the trade-off plot.

It shows the counts of a violation or of guesses if a result has them, and otherwise bounds on one scale.
"""

from __future__ import annotations

import math
from functools import partial

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Panel
from dpaudit_reports.claim_words import found_from, least_found
from dpaudit_reports.claimed import Bound, headline
from dpaudit_reports.figures.palette import ATTACK, CLAIM, WITNESS
from dpaudit_reports.figures.rows import Bar, bars_svg
from dpaudit_reports.frequencies import Frequencies, frequencies
from dpaudit_reports.numbers import count, least_right, number
from dpaudit_reports.rates import RegionStatus, region, region_status

_ABOVE = "Nothing is known above the proven bound."
_WOULD = (
    "The last bar shows the violations that an optimal attack would have found with 90\u00a0% probability if the "
    "mechanism has exactly their trade-off curve. Smaller violations may have been missed, and larger ones with "
    "another curve."
)
_MAX_TITLE = 48  # maximum number of characters in a panel's title


def beside(result: AuditResult) -> tuple[Panel | None, str]:
    """Return the second panel and a description of its meaning; None and "" if the result has no second panel."""
    if not result.bounds_valid:
        return None, ""
    if result.evidence.guessed is not None:
        return _guesses(result)
    found = frequencies(result) if region_status(result) is RegionStatus.WITNESS else None
    return _bounds(result) if found is None else _counts(result, found)


def _counts(result: AuditResult, found: Frequencies) -> tuple[Panel, str]:
    assert result.witness is not None
    sides = found.sides
    rows = [
        _share(sides.name0, found.hits0, found.n0, ATTACK),
        _share(sides.name1, found.hits1, found.n1, WITNESS),
    ]
    if found.most is not None:
        rows.append(_share(f"the claim allows at most {sides.name1}", found.most, found.n1, CLAIM))
    alt = f"Outputs in the region: {_joined(rows)}."
    title = f"The witness: {region(result.witness)}"
    title = "The witness" if found.moving or len(title) > _MAX_TITLE else title
    return Panel(partial(bars_svg, rows), alt=alt, title=title), "Bars: the share of runs with an output in the region."


def _guesses(result: AuditResult) -> tuple[Panel, str]:
    guessed, words = result.evidence.guessed, result.evidence.words
    assert guessed is not None
    least, total = least_right(result), guessed.guesses
    rows = [
        _share(f"right {words.guesses}", guessed.right, total, WITNESS),
        Bar(f"by chance: about {number(guessed.by_chance, 6)}", 0.0, guessed.by_chance / max(1, total), ATTACK),
    ]
    if least is not None:
        rows.append(Bar(f"would refute: {count(least)} or more", 0.0, least / max(1, total), CLAIM))
    title = f"Guesses about the {words.unit}"
    return Panel(partial(bars_svg, rows), alt=f"Guesses: {_joined(rows)}.", title=title), ""


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
    name = _name(bound)
    panel = Panel(partial(bars_svg, rows), alt=f"{name}: {_joined(rows)}.", title=f"The privacy loss {name}")
    return panel, _ABOVE + ("" if least is None else f" {_WOULD}")


def _name(bound: Bound) -> str:
    return bound.symbol if bound.delta is None else f"{bound.symbol} at δ = {number(bound.delta)}"


def _share(name: str, k: int, n: int, color: str) -> Bar:
    return Bar(f"{name}: {count(k)} of {count(n)}", 0.0, k / max(1, n), color)


def _joined(rows: list[Bar]) -> str:
    return "; ".join(row.label for row in rows)
