"""The picture of page 1: rates with the claim's limit, or a number line of what is proven, claimed and detectable.

All sizes are in points.  A drawing of a whole page's width has its labels at the left, a narrow one above the bars.
Parts differ by shape, place and words, so that they can be told apart without colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpaudit.rounding import at_most, number
from dpaudit_reports.figures.bars import svg_of, text_of
from dpaudit_reports.figures.canvas import ATTACK, CLAIM, COLORS, FORBIDDEN, PANEL, PAPER, WIDTH, WITNESS

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


def _box(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" fill="{fill}"{more}/>'


def _path(path: str, color: str = CLAIM, width: float = 1.0) -> str:
    return f'<path d="{path}" stroke="{color}" stroke-width="{width:g}" fill="none"/>'


def _place(x: float, words: str, left: float, right: float) -> float:
    """Return the middle of words that should stand at x, moved so that they fit between left and right."""
    half = _LETTER * len(words) / 2
    return min(max(x, left + half), max(right - half, left + half))


def _middle(x: float, y: float, words: str, left: float, right: float, size: float = _SIZE) -> str:
    return text_of(f"{_place(x, words, left, right):.1f}", f"{y:.1f}", words, size, ' text-anchor="middle"')


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

    parts = list(_ranges(line, at(line.proven[0]), left, right, top, height))
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


def _ranges(line: Line, certified: float, left: float, right: float, top: float, height: float) -> Iterator[str]:
    yield _box(left, top, right - left, height, FORBIDDEN)
    yield _box(left, top, certified - left, height, WITNESS if line.violated else ATTACK)
