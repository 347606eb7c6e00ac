"""Draws counts as squares and values as bars, in labelled rows.

These drawings need no axes.  Writing their SVG directly is faster than drawing with matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dpaudit_reports.figures.canvas import PANEL
from dpaudit_reports.figures.palette import FORBIDDEN

_WIDTH, _HEIGHT = 72 * PANEL, 72 * 2.4  # size in points, as large as the trade-off plot
_LABEL = "#222222"  # the palette's colour of labels
_MOST = 120  # maximum number of squares for one count
_COLUMNS, _CELL, _SIDE = 30, 7.6, 6.0  # squares in a line, their spacing in points, and their side in points
_TOP, _TEXT, _GAP = 12.0, 6.0, 24.0  # distances in points: top to text, text to drawing, drawing to the next text
_BAR = 9.0  # height of a bar in points


@dataclass(frozen=True, slots=True)
class Units:
    """A row of squares, some of which are filled."""

    label: str
    filled: int
    total: int
    color: str
    up: bool  # whether a partly filled square is drawn as filled


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from `start` to `end`, which are fractions of the width."""

    label: str
    start: float
    end: float
    color: str


def each(total: int) -> int:
    """Return the number of runs that one square represents: 1, 2, 5, 10, 20, ..."""
    least = max(1, math.ceil(total / _MOST))
    size: int = 10 ** (len(str(least)) - 1)
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= least)


def units_svg(rows: Sequence[Units]) -> str:
    """Return rows of squares as SVG.  One square represents `each(total)` runs, for the largest total of all rows."""
    size, y, parts = each(max(row.total for row in rows)), _TOP, []
    for row in rows:
        filled = math.ceil(row.filled / size) if row.up else row.filled // size
        squares = math.ceil(row.total / size)
        parts.append(_text(y, row.label))
        y += _TEXT
        paths = {True: "", False: ""}
        for i in range(squares):
            paths[i < filled] += (
                f"M{_CELL * (i % _COLUMNS):.1f} {y + _CELL * (i // _COLUMNS):.1f}h{_SIDE}v{_SIDE}h-{_SIDE}z"
            )
        for full, color in ((False, FORBIDDEN), (True, row.color)):
            if paths[full]:
                parts.append(f'<path d="{paths[full]}" fill="{color}"/>')
        y += _CELL * math.ceil(squares / _COLUMNS) + _GAP - _TEXT - 2
    return _svg(parts)


def bars_svg(rows: Sequence[Bar]) -> str:
    """Return labelled bars on a common scale as SVG."""
    y, parts = _TOP, []
    for row in rows:
        start, end = (min(max(share, 0.0), 1.0) * _WIDTH for share in (row.start, row.end))
        parts.append(_text(y, row.label))
        y += _TEXT
        parts.append(f'<rect x="0" y="{y:.1f}" width="{_WIDTH:.1f}" height="{_BAR}" fill="{FORBIDDEN}"/>')
        wide = max(end - start, 1.0)
        parts.append(f'<rect x="{start:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{_BAR}" fill="{row.color}"/>')
        y += _BAR + _GAP - _TEXT + 16
    return _svg(parts)


def _text(y: float, words: str) -> str:
    font = "font-family: 'Libertinus Serif', 'STIX Two Text', serif; font-size: 9.5px"
    return f'<text x="0" y="{y:.1f}" fill="{_LABEL}" style="{font}">{escape(words)}</text>'


def _svg(parts: Sequence[str]) -> str:
    box = f'viewBox="0 0 {_WIDTH:.1f} {_HEIGHT:.1f}" width="{_WIDTH:.1f}pt" height="{_HEIGHT:.1f}pt"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts)}</svg>'
