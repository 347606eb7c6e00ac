"""Draws the cells of one constructor as squares, which are darker if more of the claim is certified.

A violation, an inconclusive audit and a cell without a result differ by signs, so the squares can be read without
colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dpaudit_reports.figures.palette import ATTACK, CLAIM, FORBIDDEN, PAPER, WITNESS

State = Literal["violation", "no violation found", "inconclusive", "not audited"]

_WIDTH = 150.0  # width of a map in points
_SIDE, _GAP = 11.0, 2.0  # side of a square, and distance of two squares, in points
_MARGIN = 2.0  # points above and below the squares, so that the squares of two constructors do not touch
PER_LINE = int(_WIDTH // (_SIDE + _GAP))
"""Maximum number of squares in a line."""


@dataclass(frozen=True, slots=True)
class Square:
    """One cell of the map."""

    state: State
    share: float = 0.0


def map_svg(lines: Sequence[Sequence[Square]]) -> str:
    """Return the squares, line by line."""
    parts = [
        part
        for y, line in enumerate(lines)
        for x, square in enumerate(line)
        for part in _square(square, x * (_SIDE + _GAP) + 0.5, y * (_SIDE + _GAP) + 0.5 + _MARGIN)
    ]
    return _svg(parts, _WIDTH, max(len(lines), 1) * (_SIDE + _GAP) + 2 * _MARGIN)


def sample_svg(square: Square) -> str:
    """Return a sample of one square for the legend."""
    return _svg(list(_square(square, 0.5, 0.5)), _SIDE + 1, _SIDE + 1)


def _square(square: Square, x: float, y: float) -> Iterator[str]:
    """Yield the frame, the shade and the sign of a square whose upper left corner is (x, y)."""
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


def _svg(parts: Sequence[str], width: float, height: float) -> str:
    box = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}pt" height="{height:g}pt"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts)}</svg>'
