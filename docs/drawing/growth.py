"""The figure of processor time and memory of audits, with measured data."""

from __future__ import annotations

import math
from collections.abc import Sequence

from drawing.canvas import Canvas, Plot

Row = tuple[int, float, float]  # size, processor seconds of inference, megabytes

# The output of `python benchmarks/growth.py`; the table in docs/measurements.md has the same numbers.
GROWTH: dict[str, tuple[Row, ...]] = {
    "trials": ((10_000, 0.5, 87), (100_000, 0.8, 116), (1_000_000, 1.2, 116), (10_000_000, 3.3, 130)),
    "columns": ((1, 0.5, 87), (3, 1.2, 242), (10, 2.1, 301), (30, 1.8, 338), (100, 3.5, 448)),
    "pairs": ((1, 0.5, 87), (4, 1.1, 86), (16, 2.9, 88), (64, 7.9, 95)),
    "claims": ((1, 0.5, 87), (4, 2.0, 93), (16, 7.6, 101)),
}
_SECONDS = (0.3, 1, 3, 10, 30, 100)
_MEGABYTES = (100, 200, 500, 1_000)
_LEFT, _WIDTH, _GAP = 66, 152, 22
_ROWS = ((30, 190, _SECONDS, "processor seconds"), (222, 382, _MEGABYTES, "memory in MB"))


def growth() -> str:
    """Draw processor seconds above and megabytes below, for each of the four sizes, on logarithmic scales."""
    canvas = Canvas(_LEFT + 4 * _WIDTH + 3 * _GAP + 18, 440)
    for i, (what, rows) in enumerate(GROWTH.items()):
        left = _LEFT + i * (_WIDTH + _GAP)
        sizes = [size for size, *_ in rows]
        across = (math.log10(sizes[0]) - 0.1 * _span(sizes), math.log10(sizes[-1]) + 0.1 * _span(sizes))
        canvas.words((left + _WIDTH / 2, 18), what, "attack", anchor="middle", style="bold")
        for j, (top, bottom, ticks, words) in enumerate(_ROWS):
            plot = Plot(canvas, (left, top, left + _WIDTH, bottom), across, _range(ticks))
            _axes(plot, sizes if j else (), sizes, ticks, words if i == 0 else "")
            points = [(math.log10(row[0]), math.log10(row[1 + j])) for row in rows]
            plot.line([x for x, _ in points], [y for _, y in points], "attack", width=2.2)
            for point in points:
                plot.dot(*point, "attack", radius=4)
    canvas.words(
        (_LEFT + 2 * _WIDTH + 1.5 * _GAP, 432), "size of the audit (all scales are logarithmic)", anchor="middle"
    )
    return canvas.svg("Processor time and memory of an audit, by trials, columns, pairs and claims")


def _span(sizes: Sequence[int]) -> float:
    return math.log10(sizes[-1] / sizes[0])


def _range(ticks: Sequence[float]) -> tuple[float, float]:
    return math.log10(ticks[0]) - 0.04, math.log10(ticks[-1]) + 0.04


def _axes(plot: Plot, labels: Sequence[int], sizes: Sequence[int], ticks: Sequence[float], upright: str) -> None:
    """Draw logarithmic axes; only the plots with a label on the vertical axis have numbers there."""
    left, top, right, bottom = plot.box
    for size in sizes:
        x, _ = plot.at(math.log10(size), 0)
        plot.canvas.line([(x, top), (x, bottom)], "grid", width=1)
        if size in labels:
            plot.canvas.words((x, bottom + 19), _short(size), anchor="middle", style="small")
    for tick in ticks:
        _, y = plot.at(0, math.log10(tick))
        plot.canvas.line([(left, y), (right, y)], "grid", width=1)
        if upright:
            plot.canvas.words((left - 8, y + 4.5), f"{tick:,g}", anchor="end", style="small")
    plot.canvas.line([(left, bottom), (right, bottom)], "axis", width=1.2)
    if upright:
        plot.canvas.line([(left, top), (left, bottom)], "axis", width=1.2)
        plot.canvas.upright((left - 48, (top + bottom) / 2), upright)


def _short(size: int) -> str:
    """Return a number such as 100k or 10M."""
    for unit, word in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit:
            return f"{size // unit}{word}"
    return str(size)
