"""Draws values as bars in labelled rows.

These drawings need no axes.  Writing their SVG directly is faster than drawing with matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.result.training import TrainingRecord
from dpaudit_reports.figures.canvas import PANEL, amounts, panel_svg
from dpaudit_reports.figures.palette import ATTACK, FORBIDDEN, WITNESS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def scores_svg(record: TrainingRecord, without: str, included: str) -> str:
    """Return a panel that shows the share of scores in each bar."""
    return panel_svg(lambda ax: _draw(ax, record, without, included), height=2.75, legend=2)


def _draw(ax: Axes, record: TrainingRecord, without: str, included: str) -> None:
    edges = np.array(record.edges)
    shares = [np.array(side) / max(1, sum(side)) for side in (record.out, record.into)]
    top = 1.08 * max(1e-9, *(share.max() for share in shares))
    ax.stairs(shares[0], edges, fill=True, color=ATTACK, alpha=0.25)
    ax.stairs(shares[0], edges, color=ATTACK, linewidth=1.3, label=without)
    ax.stairs(shares[1], edges, color=WITNESS, linewidth=1.3, linestyle=(0, (3, 1.2)), label=included)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(0, top)
    amounts(ax.xaxis, edges[0], edges[-1])
    amounts(ax.yaxis, 0, top, most=5)
    ax.set_xlabel("score")
    ax.set_ylabel("share of scores")


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
