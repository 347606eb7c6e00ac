"""Axes for the two errors of an attack, and curves on them."""

from __future__ import annotations

import numpy as np

from dpaudit import TradeoffFunction
from dpaudit.numerics import Array
from drawing.canvas import Canvas, Plot

SIZE = 480, 450
BOX = (64, 16, 464, 392)


def errors() -> Plot:
    """Return empty axes from 0 to 1 for both errors, with the line of blind guessing."""
    plot = Plot(Canvas(*SIZE), BOX, (0, 1), (0, 1))
    plot.axes("type I error α (false alarms)", "type II error β (misses)", (0, 0.5, 1), (0, 0.5, 1))
    plot.line((0, 1), (1, 0), "chance", width=1.6, dashes="1 6")
    return plot


def grid(*corners: float) -> Array:
    """Return the type I errors at which a curve is drawn, dense near 0 and 1, and with the given corners."""
    ends = np.geomspace(1e-5, 0.05, 24)
    places = np.concatenate([[0.0], ends, np.linspace(0.05, 0.95, 61), 1 - ends, [1.0], corners])
    return np.unique(places.round(9))  # the last digits depend on the version of SciPy


def draw_claim(plot: Plot, claim: TradeoffFunction, color: str, *corners: float, dashes: str = "") -> None:
    """Draw the curve of a claim; `corners` are type I errors at which it bends."""
    alpha = grid(*corners)
    plot.line(alpha, claim.beta(alpha), color, width=2.2, dashes=dashes)


def forbid(plot: Plot, claim: TradeoffFunction) -> None:
    """Shade the errors that the claim excludes, and draw its curve."""
    alpha = grid()
    plot.area(alpha, 0 * alpha, claim.beta(alpha), "forbidden")
    plot.line(alpha, claim.beta(alpha), "claim", width=2.2)
