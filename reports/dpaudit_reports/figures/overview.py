"""Draws the ranges of the privacy loss of one audit as a strip; the strips of several audits have one scale.

The ranges differ by brightness and hatching, and the marks by shape, so the strips can be read without colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Literal, TypeAlias

from dpaudit_reports.blocks import Tone
from dpaudit_reports.figures.palette import ATTACK, CLAIM, FORBIDDEN, PAPER, WITNESS
from dpaudit_reports.ranges import Ranges

_WIDTH, _HEIGHT = 150.0, 15.0  # size of a strip in points
_LEFT, _RIGHT = 6.0, 138.0  # places of the loss 0 and of the end of the scale
_BAR = 6.0  # height of a bar
_HATCH = 3.2  # distance between the lines of a hatched bar
_LABEL = "#222222"  # the palette's colour of labels
_SHORT, _LONG = 2.0, 3.0  # ends of the scale

Key: TypeAlias = Literal["certified", "unproven", "blind", "found"]


def scale_end(shown: Sequence[Ranges | None]) -> float:
    """Return the end of the scale, as a multiple of the claimed value; larger values are drawn at the end."""
    values = [value for r in shown if r for value in (r.certified, r.blind_until) if math.isfinite(value)]
    return _SHORT if max(values, default=0.0) <= 0.95 * _SHORT else _LONG


def strip_svg(shown: Ranges, tone: Tone, end: float) -> str:
    """Return the certified, the unproven and the blind range, on a scale from 0 to `end`."""
    return _svg(_strip(shown, tone, end))


def axis_svg(end: float) -> str:
    """Return the numbers of the scale."""
    halves = [n / 2 for n in range(round(2 * end) + 1)]
    words = {0.0: "0", 0.5: "½", 1.0: "claim", 1.5: "1½", 2.0: "2", 2.5: "2½", 3.0: "3"}
    labels = [_text(_place(value, end), words[value], strong=value == 1) for value in halves]
    ticks = "".join(f"M{_place(value, end):.1f} 11.5V15" for value in halves)
    return _svg([*labels, f'<path d="{ticks}" stroke="{CLAIM}" stroke-width="0.7" fill="none"/>'])


def key_svg(what: Key) -> str:
    """Return a sample of one range for the legend."""
    samples = {
        "certified": [_rect(0, 9, ATTACK), _rect(9, 18, WITNESS)],
        "unproven": [_rect(0, 18, FORBIDDEN)],
        "blind": [_hatched(0, 18)],
        "found": [_tick(9)],
    }
    return _svg(samples[what], width=18)


def _strip(shown: Ranges, tone: Tone, end: float) -> Iterator[str]:
    bad = tone == "bad"
    certified, claim = _place(shown.certified, end), _place(1.0, end)
    blind = max(claim, certified)
    color = WITNESS if bad else ATTACK
    yield _rect(_LEFT, certified, color)
    if bad:
        yield _rect(certified, _RIGHT, FORBIDDEN)
    else:
        yield _rect(certified, claim, FORBIDDEN)
        yield _hatched(blind, _place(shown.blind_until, end))
    if shown.blind_until > end:
        yield _arrow(FORBIDDEN if bad else CLAIM)
    elif shown.blind_until > max(1.0, shown.certified):
        yield _tick(_place(shown.blind_until, end))
    yield f'<path d="M{claim:.1f} 0V{_HEIGHT}" stroke="{CLAIM}" stroke-width="0.9"/>'
    yield _mark(certified, tone, color)


def _place(value: float, end: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * min(max(value, 0.0), end) / end


def _rect(start: float, stop: float, color: str) -> str:
    y = (_HEIGHT - _BAR) / 2
    return f'<rect x="{start:.1f}" y="{y}" width="{max(stop - start, 0):.1f}" height="{_BAR}" fill="{color}"/>'


def _hatched(start: float, stop: float) -> str:
    """Return an outlined bar with oblique lines that end at its sides."""
    low, high = (_HEIGHT + _BAR) / 2, (_HEIGHT - _BAR) / 2
    path = f"M{start:.1f} {high}H{stop:.1f}V{low}H{start:.1f}z"
    for i in range(math.ceil((stop - start + _BAR) / _HATCH)):
        foot = start - _BAR + i * _HATCH
        left, right = max(foot, start), min(foot + _BAR, stop)
        if right > left:
            path += f"M{left:.1f} {low - (left - foot):.1f}L{right:.1f} {low - (right - foot):.1f}"
    return f'<path d="{path}" stroke="{CLAIM}" stroke-width="0.6" fill="none"/>' if stop > start else ""


def _tick(x: float) -> str:
    return f'<path d="M{x:.1f} 2V{_HEIGHT - 2}" stroke="{CLAIM}" stroke-width="1.8"/>'


def _arrow(color: str) -> str:
    """Return an arrowhead at the end of the scale."""
    middle = _HEIGHT / 2
    return f'<path d="M{_RIGHT} {middle - 5}L{_RIGHT + 8} {middle}L{_RIGHT} {middle + 5}z" fill="{color}"/>'


def _mark(x: float, tone: Tone, color: str) -> str:
    """Return the sign of the verdict: a triangle, a diamond or a circle."""
    y = _HEIGHT / 2
    if tone == "clear":
        return f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{PAPER}" stroke="{color}" stroke-width="1.4"/>'
    if tone == "bad":
        shape, face, edge = f"M{x:.1f} {y - 5}l5 9.3h-10z", color, PAPER
    else:
        shape, face, edge = f"M{x:.1f} {y - 5}l5 5l-5 5l-5-5z", PAPER, CLAIM
    return f'<path d="{shape}" fill="{face}" stroke="{edge}" stroke-width="{0.6 if tone == "bad" else 1.2}"/>'


def _text(x: float, words: str, *, strong: bool) -> str:
    weight = " font-weight: 600;" if strong else ""
    font = f"font-family: 'Libertinus Serif', 'STIX Two Text', serif; font-size: 8.5px;{weight}"
    return f'<text x="{x:.1f}" y="8.5" text-anchor="middle" fill="{_LABEL}" style="{font}">{escape(words)}</text>'


def _svg(parts: Sequence[str] | Iterator[str], width: float = _WIDTH) -> str:
    box = f'viewBox="0 0 {width:g} {_HEIGHT:g}" width="{width:g}pt" height="{_HEIGHT:g}pt"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts)}</svg>'
