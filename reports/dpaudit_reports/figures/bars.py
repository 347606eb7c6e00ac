"""Drawings without axes: the strips of several audits, and the map of a sweep.

Writing their SVG directly is faster than drawing with matplotlib.  Ranges and cells differ by brightness, hatching and
signs, so they can be read without colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

from dpaudit_reports.blocks import Tone
from dpaudit_reports.claimed import Ranges
from dpaudit_reports.figures.canvas import ATTACK, CLAIM, COLORS, FORBIDDEN, PAPER, WITNESS

_LABEL = COLORS["label"][0]


def text_of(x: object, y: object, words: str, size: float, more: str = "", style: str = "", fill: str = _LABEL) -> str:
    """Return a line of text as SVG."""
    font = f"font-family: 'Libertinus Serif', 'STIX Two Text', serif; font-size: {size:g}px{style}"
    return f'<text x="{x}" y="{y}"{more} fill="{fill}" style="{font}">{escape(words)}</text>'


def svg_of(parts: Iterable[str], width: str, height: str) -> str:
    """Return a drawing of some parts, whose sizes are in points."""
    box = f'viewBox="0 0 {width} {height}" width="{width}pt" height="{height}pt"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts)}</svg>'


# --- the ranges of the privacy loss of one audit as a strip; the strips of several audits have one scale

_WIDTH = 150.0  # width of a strip and of a map
_HEIGHT = 15.0
_LEFT, _RIGHT = 6.0, 138.0  # places of the loss 0 and of the end of the scale
_BAR = 6.0  # height of a bar
_HATCH = 3.2  # distance between the lines of a hatched bar

Key: TypeAlias = Literal["certified", "unproven", "blind", "found"]


def scale_end(shown: Sequence[Ranges | None]) -> float:
    """Return the end of the scale, as a multiple of the claimed value; larger values are drawn at the end."""
    values = [value for r in shown if r for value in (r.certified, r.blind_until) if math.isfinite(value)]
    return 2.0 if max(values, default=0.0) <= 1.9 else 3.0


def strip_svg(shown: Ranges, tone: Tone, end: float) -> str:
    """Return the certified, the unproven and the blind range, on a scale from 0 to `end`."""
    return _strip_svg(_strip(shown, tone, end))


def axis_svg(end: float) -> str:
    """Return the numbers of the scale."""
    halves = [n / 2 for n in range(round(2 * end) + 1)]
    words = {0.0: "0", 0.5: "½", 1.0: "claim", 1.5: "1½", 2.0: "2", 2.5: "2½", 3.0: "3"}
    middle, strong = ' text-anchor="middle"', {1.0: "; font-weight: 600;"}
    labels = [
        text_of(f"{_place(value, end):.1f}", 8.5, words[value], 8.5, middle, strong.get(value, ";")) for value in halves
    ]
    ticks = "".join(f"M{_place(value, end):.1f} 11.5V15" for value in halves)
    return _strip_svg([*labels, f'<path d="{ticks}" stroke="{CLAIM}" stroke-width="0.7" fill="none"/>'])


def key_svg(what: Key) -> str:
    """Return a sample of one range for the legend."""
    samples = {
        "certified": [_rect(0, 9, ATTACK), _rect(9, 18, WITNESS)],
        "unproven": [_rect(0, 18, FORBIDDEN)],
        "blind": [_hatched(0, 18)],
        "found": [_tick(9)],
    }
    return _strip_svg(samples[what], width=18)


def _strip(shown: Ranges, tone: Tone, end: float) -> Iterator[str]:
    bad = tone == "bad"
    certified, claim = _place(shown.certified, end), _place(1.0, end)
    color = WITNESS if bad else ATTACK
    yield _rect(_LEFT, certified, color)
    if bad:
        yield _rect(certified, _RIGHT, FORBIDDEN)
    else:
        yield _rect(certified, claim, FORBIDDEN)
        yield _hatched(max(claim, certified), _place(shown.blind_until, end))
    if shown.blind_until > end:
        arrow = f"M{_RIGHT} {_HEIGHT / 2 - 5}L{_RIGHT + 8} {_HEIGHT / 2}L{_RIGHT} {_HEIGHT / 2 + 5}z"
        yield f'<path d="{arrow}" fill="{FORBIDDEN if bad else CLAIM}"/>'
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


def _mark(x: float, tone: Tone, color: str) -> str:
    y = _HEIGHT / 2
    if tone == "clear":
        return f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{PAPER}" stroke="{color}" stroke-width="1.4"/>'
    if tone == "bad":
        shape, face, edge = f"M{x:.1f} {y - 5}l5 9.3h-10z", color, PAPER
    else:
        shape, face, edge = f"M{x:.1f} {y - 5}l5 5l-5 5l-5-5z", PAPER, CLAIM
    return f'<path d="{shape}" fill="{face}" stroke="{edge}" stroke-width="{0.6 if tone == "bad" else 1.2}"/>'


def _strip_svg(parts: Iterable[str], width: float = _WIDTH) -> str:
    return svg_of(parts, f"{width:g}", f"{_HEIGHT:g}")


# --- the cells of one constructor of a sweep as squares, which are darker if more of the claim is certified

State = Literal["violation", "no violation found", "inconclusive", "not audited"]

_SIDE, _GAP = 11.0, 2.0  # side of a square, and distance of two squares
PER_LINE = int(_WIDTH // (_SIDE + _GAP))  # squares in a line


@dataclass(frozen=True, slots=True)
class Square:
    """One cell of the map."""

    state: State
    share: float = 0.0


def map_svg(lines: Sequence[Sequence[Square]]) -> str:
    """Return the squares, line by line, with a margin so that the squares of two constructors do not touch."""
    parts = [
        part
        for y, line in enumerate(lines)
        for x, square in enumerate(line)
        for part in _square(square, x * (_SIDE + _GAP) + 0.5, y * (_SIDE + _GAP) + 0.5 + _GAP)
    ]
    return svg_of(parts, f"{_WIDTH:g}", f"{max(len(lines), 1) * (_SIDE + _GAP) + 2 * _GAP:g}")


def sample_svg(square: Square) -> str:
    """Return a sample of one square for the legend."""
    return svg_of(_square(square, 0.5, 0.5), f"{_SIDE + 1:g}", f"{_SIDE + 1:g}")


def _square(square: Square, x: float, y: float) -> Iterator[str]:
    if square.state == "not audited":
        yield _frame(x, y, PAPER, ' stroke-dasharray="1.5 1.5"')
        return
    yield _frame(x, y, FORBIDDEN if square.state == "inconclusive" else PAPER)
    if square.state != "inconclusive":
        height = (_SIDE - 1) * min(max(square.share, 0.0), 1.0)
        color = WITNESS if square.state == "violation" else ATTACK
        top = y + _SIDE - 0.5 - height
        yield f'<rect x="{x + 0.5:.1f}" y="{top:.1f}" width="{_SIDE - 1:.1f}" height="{height:.1f}" fill="{color}"/>'
    middle_x, middle_y = x + _SIDE / 2, y + _SIDE / 2
    if square.state == "violation":
        shape = f"M{middle_x:.1f} {middle_y - 4.2:.1f}l4.4 7.6h-8.8z"
        yield f'<path d="{shape}" fill="{PAPER}" stroke="{CLAIM}" stroke-width="1"/>'
    elif square.state == "inconclusive":
        shape = f"M{middle_x:.1f} {middle_y - 3.4:.1f}l3.4 3.4l-3.4 3.4l-3.4-3.4z"
        yield f'<path d="{shape}" fill="{PAPER}" stroke="{CLAIM}" stroke-width="0.8"/>'


def _frame(x: float, y: float, color: str, dashes: str = "") -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{_SIDE:.1f}" height="{_SIDE:.1f}"'
    return f'<rect {box} fill="{color}" stroke="{CLAIM}" stroke-width="0.5"{dashes}/>'
