"""Drawings as SVG, without matplotlib: strips of several audits, the map of a sweep, and the picture of page 1.

All sizes are in points.  Parts differ by shape, brightness, hatching, place and words, not only by colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

from dpaudit.rounding import at_most, number
from dpaudit_reports.blocks import Tone
from dpaudit_reports.claimed import Ranges
from dpaudit_reports.figures import ATTACK, CLAIM, COLORS, FORBIDDEN, PANEL, PAPER, WIDTH, WITNESS

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
    return _box(start, (_HEIGHT - _BAR) / 2, stop - start, _BAR, color)


def _box(x: float, y: float, width: float, height: float, color: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" fill="{color}"/>'


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
        yield _box(x + 0.5, top, _SIDE - 1, height, color)
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


_NARROW, _WIDE = 72 * PANEL, 72 * WIDTH
_SIZE = 9.5
_LETTER = 4.9  # mean width of a letter
_GRID = COLORS["grid"][0]


@dataclass(frozen=True, slots=True)
class Rate:
    """How often an output was in the region, with the exact interval of its probability."""

    label: str
    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Line:
    """The ranges of a parameter of the privacy loss, with rounded numbers in words."""

    proven: tuple[float, str]  # the certified lower bound
    claimed: tuple[float, str] | None  # None without a claim
    found_from: float | None  # the smallest violation that would have been found; None if none, or after a violation
    violated: bool


def _ticks(end: float) -> list[float]:
    """Return three to six round numbers from 0 to `end`."""
    step = 10.0 ** math.floor(math.log10(end))
    step = next(step * factor for factor in (0.2, 0.5, 1.0, 2.0) if end / (step * factor) <= 5)
    return [i * step for i in range(math.floor(end / step + 1e-9) + 1)]


def _path(path: str, color: str = CLAIM, width: float = 1.0) -> str:
    return f'<path d="{path}" stroke="{color}" stroke-width="{width:g}" fill="none"/>'


def _middle(x: float, y: float, words: str, left: float, right: float, size: float = _SIZE) -> str:
    """Return words whose middle stands at x, or is moved so that they fit between left and right."""
    half = _LETTER * len(words) / 2
    middle = min(max(x, left + half), max(right - half, left + half))
    return text_of(f"{middle:.1f}", f"{y:.1f}", words, size, ' text-anchor="middle"')


def rates_svg(rates: Sequence[Rate], limit: float | None, *, wide: bool) -> str:
    """Return a bar with a whisker for each rate, and the largest rate that the claim allows."""
    width = _WIDE if wide else _NARROW
    left, right = (112.0, width - 46) if wide else (0.0, width - 46)
    row, above = (30.0, 0.0) if wide else (40.0, 13.0)
    end = min(1.0, 1.12 * max([rate.high for rate in rates] + ([] if limit is None else [limit])) or 1.0)
    top, bottom = 16.0, 16 + row * len(rates)

    def at(rate: float) -> float:
        return left + (right - left) * min(rate / end, 1.0)

    parts = [_path(f"M{at(tick):.1f} {top}V{bottom:.1f}", _GRID) for tick in _ticks(end)[1:]]
    if limit is not None:
        parts.insert(0, _box(left, top, at(limit) - left, bottom - top, FORBIDDEN))
        words = f"the claim allows at most {at_most(100 * limit, 3).lstrip('≤').strip()}\u00a0%"
        parts.append(_middle(at(limit), 10, words, 0, width))
    for i, rate in enumerate(rates):
        y = top + i * row + above + (row - above) / 2
        color = WITNESS if i else ATTACK
        if wide:
            parts.append(text_of(0, f"{y + 3:.1f}", rate.label, _SIZE))
        else:
            parts.append(text_of(2, f"{y - above / 2 - 4:.1f}", rate.label, _SIZE))
        parts.append(_box(left, y - 5, at(rate.rate) - left, 10, color))
        parts.append(_path(f"M{at(rate.low):.1f} {y:.1f}H{at(rate.high):.1f}M{at(rate.low):.1f} {y - 3:.1f}v6"))
        parts.append(_path(f"M{at(rate.high):.1f} {y - 3:.1f}v6"))
        parts.append(text_of(f"{at(rate.high) + 5:.1f}", f"{y + 3:.1f}", f"{number(100 * rate.rate, 3)}\u00a0%", _SIZE))
    if limit is not None:
        parts.append(_path(f"M{at(limit):.1f} {top - 3}V{bottom:.1f}", width=1.6))
    for tick in _ticks(end):
        parts.append(_middle(at(tick), bottom + 12, f"{number(100 * tick, 3)}\u00a0%", left, width, 8.5))
    return svg_of(parts, f"{width:.1f}", f"{bottom + 16:.1f}")


def line_svg(line: Line, name: str, *, wide: bool) -> str:
    """Return a number line: what is proven, what is claimed, and from where a violation would have been found."""
    width = _WIDE if wide else _NARROW
    left, right, top, height = 6.0, width - 6, 18.0, 15.0
    values = [line.proven[0], line.claimed[0] if line.claimed else 0.0, line.found_from or 0.0]
    end = 1.3 * max(value for value in values if math.isfinite(value)) or 1.0

    def at(value: float) -> float:
        return left + (right - left) * min(value / end, 1.0)

    color = WITNESS if line.violated else ATTACK
    parts = [_box(left, top, right - left, height, FORBIDDEN)]
    parts.append(_box(left, top, at(line.proven[0]) - left, height, color))
    if line.found_from is not None:  # a box that is open to the right
        start = at(line.found_from)
        box = f"M{right:.1f} {top}H{start:.1f}V{top + height}H{right:.1f}"
        parts.append(_box(start, top, right - start, height, PAPER))
        parts.append(f'<path d="{box}" stroke="{CLAIM}" stroke-width="0.8" stroke-dasharray="2.5 2" fill="none"/>')
        for words in ("would have been found (90\u00a0%, best case)", "found (90\u00a0%, best case)"):
            if right - start > _LETTER * (len(words) - 1):
                parts.append(_middle((start + right) / 2, top + 10.5, words, start, right, 8.5))
                break
    if line.claimed is not None:
        claimed, words = line.claimed
        parts.append(_path(f"M{at(claimed):.1f} {top - 5}V{top + height + 6}", width=1.6))
        parts.append(_middle(at(claimed), top - 8, f"claimed: at most {words}", 0, width))
    axis = top + height + 6
    parts.append(_path(f"M{left} {axis}H{right}", width=0.7))
    for tick in _ticks(end):
        parts.append(_path(f"M{at(tick):.1f} {axis}v3", width=0.7))
        parts.append(_middle(at(tick), axis + 13, number(tick, 3), 0, width, 8.5))
    words = f"privacy loss {name}; proven: at least {line.proven[1]}"
    parts.append(_middle((left + right) / 2, axis + 26, words, 0, width, 8.5))
    return svg_of(parts, f"{width:.1f}", f"{axis + 30:.1f}")
