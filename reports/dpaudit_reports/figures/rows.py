"""Draws values as bars in labelled rows.

These drawings need no axes.  Writing their SVG directly is faster than drawing with matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dpaudit_reports.figures.canvas import PANEL
from dpaudit_reports.figures.palette import FORBIDDEN

_WIDTH, _HEIGHT = 72 * PANEL, 72 * 2.4  # size in points, as large as the trade-off plot
_LABEL = "#222222"  # the palette's colour of labels
_TOP, _TEXT, _GAP = 12.0, 6.0, 24.0  # distances in points: top to text, text to drawing, drawing to the next text
_BAR = 9.0  # height of a bar in points


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from `start` to `end`, which are fractions of the width."""

    label: str
    start: float
    end: float
    color: str


def bars_svg(rows: Sequence[Bar]) -> str:
    """Return labelled bars on a common scale as SVG."""
    y, parts = _TOP, []
    for row in rows:
        start, end = (min(max(share, 0.0), 1.0) * _WIDTH for share in (row.start, row.end))
        parts.append(_text(y, row.label))
        y += _TEXT
        parts.append(f'<rect x="0" y="{y:.1f}" width="{_WIDTH:.1f}" height="{_BAR}" fill="{FORBIDDEN}"/>')
        wide = max(end - start, 1.0) if end > start else 0.0
        parts.append(f'<rect x="{start:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{_BAR}" fill="{row.color}"/>')
        y += _BAR + _GAP - _TEXT + 16
    return _svg(parts)


def _text(y: float, words: str) -> str:
    font = "font-family: 'Libertinus Serif', 'STIX Two Text', serif; font-size: 9.5px"
    return f'<text x="0" y="{y:.1f}" fill="{_LABEL}" style="{font}">{escape(words)}</text>'


def _svg(parts: Sequence[str]) -> str:
    box = f'viewBox="0 0 {_WIDTH:.1f} {_HEIGHT:.1f}" width="{_WIDTH:.1f}pt" height="{_HEIGHT:.1f}pt"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts)}</svg>'
