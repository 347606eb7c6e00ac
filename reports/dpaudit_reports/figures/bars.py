"""Drawings as SVG, without matplotlib: strips of several audits and of the cells of a sweep, the picture of page 1.

All sizes are in points.  Parts differ by shape, brightness, hatching, place and words, not only by colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

from dpaudit.rounding import at_most, lower, number
from dpaudit_reports.blocks import Tone
from dpaudit_reports.claimed import Ranges
from dpaudit_reports.figures import (
    ATTACK,
    CLAIM,
    COLORS,
    FORBIDDEN,
    PANEL,
    PAPER,
    WIDTH,
    WITNESS,
    WITNESS_WORD,
)

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

_WIDTH = 130.0  # width of a strip and of a map
_HEIGHT = 15.0
_LEFT, _RIGHT = 6.0, 119.0  # places of the loss 0 and of the end of the scale
_BAR = 6.0  # height of a bar
_HATCH = 3.2  # distance between the lines of a hatched bar
_STACKED, _TALLEST = 7.5, 26.0  # distance between stacked marks, and the height of a stack

Key: TypeAlias = Literal["certified", "unproven", "blind", "found"]


def scale_end(values: Sequence[float]) -> float:
    """Return the end of the scale, as a multiple of the claimed value; larger values are in digits."""
    return 2.0 if max(filter(math.isfinite, values), default=0.0) <= 1.9 else 3.0


def strip_svg(shown: Ranges, tone: Tone, end: float) -> str:
    """Return the certified, the unproven and the blind range, on a scale from 0 to `end`."""
    bad, beyond = tone == "bad", shown.certified > end
    certified, claim, color = _place(shown.certified, end), _place(1.0, end), WITNESS if bad else ATTACK
    parts = [_rect(_LEFT, certified, color), _rect(certified, _RIGHT if bad else claim, FORBIDDEN)]
    if not bad:
        parts.append(_hatched(max(claim, certified), _place(shown.blind_until, end)))
    if shown.blind_until > end:
        arrow = f"M{_RIGHT} {_HEIGHT / 2 - 5}L{_RIGHT + 8} {_HEIGHT / 2}L{_RIGHT} {_HEIGHT / 2 + 5}z"
        parts.append(f'<path d="{arrow}" fill="{color if beyond else FORBIDDEN if bad else CLAIM}"/>')
    elif shown.blind_until > max(1.0, shown.certified):
        parts.append(_tick(_place(shown.blind_until, end)))
    parts.append(_path(f"M{claim:.1f} 0V{_HEIGHT}", width=0.9))
    return _strip_svg([*parts, _beyond(shown.certified) if beyond else _mark(certified, tone)])


def axis_svg(end: float) -> str:
    """Return the numbers of the scale."""
    halves = [n / 2 for n in range(round(2 * end) + 1)]
    labels = [
        text_of(f"{_place(value, end):.1f}", 8.5, words, 10.5, ' text-anchor="middle"', f"; font-weight: {weight};")
        for value, words, weight in ((0, "0", 400), (1, "claim", 600), (2, "2", 400), (3, "3", 400))
        if value <= end
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


def cells_svg(cells: Sequence[tuple[float, Tone]], end: float) -> str:
    """Return a mark for each cell at its proven loss, a multiple of the claim; marks that would overlap are stacked."""
    levels: list[float] = []  # the place of the last mark of each
    placed: list[tuple[float, int, Tone]] = []
    for value, tone in sorted(cells):
        x = _place(value, end) if value <= end else _RIGHT + 6
        level = next((i for i, last in enumerate(levels) if x - last >= _STACKED), len(levels))
        levels[level : level + 1] = [x]
        placed.append((x, level, tone))
    step = min(_STACKED, _TALLEST / max(1, len(levels) - 1))  # marks of a very tall stack overlap
    height = _HEIGHT + step * max(0, len(levels) - 1)
    y, claim = height - _HEIGHT / 2, _place(1.0, end)
    parts = [_path(f"M{_LEFT} {y:.1f}H{_RIGHT}", FORBIDDEN, 2.0), _path(f"M{claim:.1f} 0V{height:.1f}", width=0.9)]
    parts += [_beyond(most, y)] if (most := max((value for value, _ in cells), default=0.0)) > end else []
    parts += [_mark(x, tone, y - step * level) for x, level, tone in placed]
    return _strip_svg(parts, height=height)


def mark_svg(tone: Tone) -> str:
    """Return the mark of a cell for the legend."""
    return _strip_svg([_mark(6, tone)], width=12)


def _beyond(value: float, y: float = _HEIGHT / 2) -> str:
    """Return a break of the scale, with a value that has no place on it."""
    words = text_of(_RIGHT - 16, f"{y + 3:.1f}", lower(value, 3), 9.5, ' text-anchor="middle"', "; font-weight: 600;")
    return _box(_RIGHT - 31, y - 6, 30, 12, PAPER) + words


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
    return f'<path d="{path}" stroke="{CLAIM}" stroke-width="0.4" fill="none"/>' if stop > start else ""


def _tick(x: float) -> str:
    return f'<path d="M{x:.1f} 2V{_HEIGHT - 2}" stroke="{CLAIM}" stroke-width="1.3"/>'


def _mark(x: float, tone: Tone, y: float = _HEIGHT / 2) -> str:
    if tone == "clear":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.9" fill="{PAPER}" stroke="{ATTACK}" stroke-width="1.2"/>'
    shape, face, edge = ("4 7h-8z", WITNESS, PAPER) if tone == "bad" else ("3.8 3.8l-3.8 3.8l-3.8-3.8z", PAPER, CLAIM)
    edge += f'" stroke-width="{0.6 if tone == "bad" else 1.1}'
    return f'<path d="M{x:.1f} {y - 3.8:.1f}l{shape}" fill="{face}" stroke="{edge}"/>'


def _strip_svg(parts: Iterable[str], width: float = _WIDTH, height: float = _HEIGHT) -> str:
    return svg_of(parts, f"{width:g}", f"{height:g}")


# --- the picture of page 1: rates beside the claim's limit, or a number line

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

    proven: tuple[float, str]  # the certified lower bound; 0 if nothing is proven
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
    row, above = (36.0, 0.0) if wide else (40.0, 13.0)
    end = min(1.0, 1.12 * max([rate.high for rate in rates] + ([] if limit is None else [limit])) or 1.0)
    top, bottom = 16.0, 16 + row * len(rates)

    def at(rate: float) -> float:
        return left + (right - left) * min(rate / end, 1.0)

    bars = [(top + above + i * row, row - above) for i in range(len(rates))]  # without the words above narrow bars
    parts = []
    if limit is not None:
        parts += [_box(left, y, at(limit) - left, height, FORBIDDEN) for y, height in bars]
        words = f"the claim allows at most {at_most(100 * limit, 3).lstrip('≤').strip()}\u00a0%"
        parts.append(_middle(at(limit), 10, words, 0, width))
    for i, rate in enumerate(rates):
        y = bars[i][0] + bars[i][1] / 2
        parts += [_path(f"M{at(tick):.1f} {bars[i][0]}v{bars[i][1]}", _GRID) for tick in _ticks(end)[1:]]
        color = WITNESS if i else ATTACK
        x, foot = (0, y + 3) if wide else (2, bars[i][0] - 3)
        parts.append(text_of(x, f"{foot:.1f}", rate.label, _SIZE))
        parts.append(_box(left, y - 6, at(rate.rate) - left, 12, color))
        feet = "".join(f"M{at(end):.1f} {y - 3:.1f}v6" for end in (rate.low, rate.high))
        parts.append(_path(f"M{at(rate.low):.1f} {y:.1f}H{at(rate.high):.1f}{feet}"))
        words, after = f"{number(100 * rate.rate, 3)}\u00a0%", at(rate.high) + 5
        if limit is not None and after - 5 <= at(limit) <= after + _LETTER * (len(words) + 1):
            after = at(limit) + 5  # beyond the line of the limit
        parts.append(text_of(f"{after:.1f}", f"{y + 3:.1f}", words, _SIZE))
    if limit is not None:
        lines = "".join(f"M{at(limit):.1f} {y - 3 * (not i)}V{y + height}" for i, (y, height) in enumerate(bars))
        parts.append(_path(lines, width=1.6))
    for tick in _ticks(end):
        unit = "\u00a0%" if tick == _ticks(end)[-1] else ""
        parts.append(_middle(at(tick), bottom + 12, f"{number(100 * tick, 3)}{unit}", max(left - 12, 0), width, 8.5))
    return svg_of(parts, f"{width:.1f}", f"{bottom + 16:.1f}")


def line_svg(line: Line, name: str, *, wide: bool) -> str:
    """Return a number line: what is proven, what is claimed, and from where a violation would have been found."""
    width = _WIDE if wide else _NARROW
    left, right, top, height = 6.0, width - 6, 6.0 if line.claimed is None else 18.0, 21.0 if wide else 15.0
    values = [line.proven[0], line.claimed[0] if line.claimed else 0.0, line.found_from or 0.0]
    end = 1.5 * max(value for value in values if math.isfinite(value)) or 1.0

    def at(value: float) -> float:
        return left + (right - left) * min(value / end, 1.0)

    parts = [_box(left, top, right - left, height, FORBIDDEN)]
    bound, proven = line.proven
    parts.append(_box(left, top, at(bound) - left, height, WITNESS_WORD if line.violated else ATTACK))
    inside = at(bound or values[1]) - left > _LETTER * (len(proven) + 2)
    if inside:
        fill = PAPER if bound else CLAIM
        parts.append(text_of(f"{left + 6:.1f}", f"{top + height / 2 + 3.2:.1f}", proven, _SIZE, fill=fill))
    if line.found_from is not None:  # a box that is open to the right
        start = at(line.found_from)
        box = f"M{right:.1f} {top}H{start:.1f}V{top + height}H{right:.1f}"
        parts.append(_box(start, top, right - start, height, PAPER))
        parts.append(f'<path d="{box}" stroke="{CLAIM}" stroke-width="0.8" stroke-dasharray="2.5 2" fill="none"/>')
        for words in ("would have been found (90\u00a0%, best case)", "would have been found", "found"):
            if right - start > _LETTER * (len(words) - 1):
                parts.append(_middle((start + right) / 2, top + height / 2 + 3, words, start, right, 8.5))
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
    words = f"privacy loss {name}{'' if inside or not bound else f'; {proven}'}"
    parts.append(_middle((left + right) / 2, axis + 26, words, 0, width, 8.5))
    return svg_of(parts, f"{width:.1f}", f"{axis + 30:.1f}")
