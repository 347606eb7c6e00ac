"""Figures of a result: the common parts of all panels, half a page wide, which are size, colours, style, axes and SVG.

Importing matplotlib takes half a second, so only functions that draw import it.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


WIDTH = 6.69  # inches: the text width of an A4 page with margins of 20 mm
PANEL = 3.25  # inches: half the text width minus half the gap between two panels

# The palette of Okabe and Ito, which colour-blind readers can distinguish; curves also differ by line style or marker.
CLAIM, ATTACK, WITNESS = "#000000", "#0072b2", "#d55e00"
WITNESS_WORD = "#a84a00"  # letters need more contrast than lines
FORBIDDEN, CHANCE, PAPER = "#e3e3e3", "#9a9a9a", "#ffffff"

# For each name, the colours on a light and on a dark background.  The frame uses the last three.
COLORS = {
    "claim": (CLAIM, "#f4f4f4"),
    "attack": (ATTACK, "#56b4e9"),
    "witness": (WITNESS, "#e69f00"),
    "witness-word": (WITNESS_WORD, "#f0a818"),
    "forbidden": (FORBIDDEN, "#3a404a"),
    "chance": (CHANCE, "#8c94a0"),
    "paper": (PAPER, "#14181e"),
    "label": ("#222222", "#dde2e8"),
    "axis": ("#555555", "#a7afba"),
    "grid": ("#e4e4e4", "#2b313a"),
}

# Margins are fixed, so that the panels of a page line up.  Measuring every label would take as long as drawing.
_LEFT, _RIGHT = 0.17 * PANEL, 0.055 * PANEL  # inches: space left of the axes for labels, and right of the axes
_BELOW, _ABOVE = 0.42, 0.09  # inches: space for the labels of the horizontal axis, and for half a vertical label
_LABEL = 0.145 * (PANEL - _LEFT - _RIGHT)  # inches between the axes and the label of the vertical axis
_LEGEND = 0.17  # inches: height of the legend above the axes

# A number with more than two decimals.  Two suffice, because no screen or printer resolves a hundredth of a point.
_LONG_NUMBER = re.compile(r"(?<![\w.])(-?\d+\.\d\d)\d+\b")
_TAG = re.compile(r"<[^>]*>")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


# It is applied to matplotlib's defaults, so that a user's own settings cannot change a report.
_STYLE = {
    "font.family": "DejaVu Serif",  # gives the widths of letters; `_svg` names the font of documents
    "mathtext.fontset": "stix",
    "font.size": 9,
    "axes.labelsize": 9,
    **dict.fromkeys(["xtick.labelsize", "ytick.labelsize"], 8),
    "legend.fontsize": 8.5,
    **dict.fromkeys(["text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"], COLORS["label"][0]),
    **dict.fromkeys(["axes.edgecolor", "xtick.color", "ytick.color"], COLORS["axis"][0]),
    "grid.color": COLORS["grid"][0],
    "grid.linewidth": 0.5,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.grid": True,
    # the grid shows the positions of ticks
    **dict.fromkeys(["axes.spines.top", "axes.spines.right", "xtick.bottom", "ytick.left", "legend.frameon"], False),
    "lines.linewidth": 1.3,
    "lines.solid_capstyle": "round",
    "lines.markersize": 5,
    "legend.handlelength": 1.9,
    "legend.borderaxespad": 0.2,
    "legend.labelspacing": 0.3,
    **dict.fromkeys(["savefig.facecolor", "savefig.edgecolor"], "none"),
    # With these settings, the same figure gives the same bytes, even on machines with other fonts.
    "svg.fonttype": "none",
    "svg.hashsalt": "dpaudit",
}


class _Axes(threading.local):
    """Empty axes for panels, separate for each thread.  Axes are reused, because creating ticks is slow."""

    def __init__(self) -> None:
        self.made: dict[tuple[float, int, str], tuple[Figure, Axes]] = {}

    def of(self, height: float, legend: int, logarithmic: str) -> tuple[Figure, Axes]:
        from matplotlib.figure import Figure

        key = height, min(legend, 1), logarithmic
        if key not in self.made:
            figure = Figure(figsize=(PANEL, height))
            bottom, top = _BELOW / height, 1 - (_ABOVE + (_LEGEND if legend else 0)) / height
            left, right = _LEFT / PANEL, 1 - _RIGHT / PANEL
            ax = figure.add_axes((left, bottom, right - left, top - bottom))
            for direction in logarithmic:
                ax.set(**{f"{direction}scale": "log"})
            # The positions of axis labels are fixed; otherwise matplotlib would measure all tick labels to place them.
            ax.xaxis.set_label_coords(0.5, -0.27 / height / (top - bottom))
            ax.yaxis.set_label_coords(-_LABEL / PANEL / (right - left), 0.5)
            self.made[key] = figure, ax
        return self.made[key]


_axes = _Axes()


def panel_svg(draw: Callable[[Axes], object], *, height: float, legend: int = 0, logarithmic: str = "") -> str:
    """Return one panel as SVG.  Equal drawings give equal bytes."""
    with style():
        figure, ax = _axes.of(height, legend, logarithmic)
        try:
            draw(ax)
            if legend:
                ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=legend, columnspacing=0.9, borderaxespad=0.1)
            return _svg(figure)
        finally:
            for artist in [*ax.lines, *ax.collections, *ax.patches, *ax.texts, *filter(None, [ax.get_legend()])]:
                artist.remove()


def place(x: float, y: float, *, height: float) -> tuple[float, float]:
    """Return a place inside the axes of a panel without a legend, as fractions from its upper left corner."""
    across = (_LEFT + x * (PANEL - _LEFT - _RIGHT)) / PANEL
    return across, (_ABOVE + (1 - y) * (height - _ABOVE - _BELOW)) / height


def decades(axis: Axis, low: int, high: int, *, most: int = 7) -> None:
    """Set at most `most` ticks at powers of ten from 10^low to 10^high, with labels in plain text."""
    step = max(1, -(-(high - low) // (most - 1)))
    exponents = range(high, low - 1, -step)
    ticks(axis, [10.0**e for e in exponents], [power_of_ten(e) for e in exponents])


def ticks(axis: Axis, places: list[float], labels: list[str]) -> None:
    """Set exactly the given ticks, and no minor ticks."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FixedFormatter(labels))
    axis.set_minor_locator(FixedLocator([]))


def power_of_ten(exponent: int) -> str:
    """Return 10 to the exponent as text, such as 1, 10 or 10⁻³."""
    return {0: "1", 1: "10"}.get(exponent, f"10{str(exponent).translate(_SUPERSCRIPT)}")


def amounts(axis: Axis, low: float, high: float, *, most: int = 6) -> None:
    """Set at most `most` ticks at round numbers from low to high, with commas between thousands."""
    from matplotlib.ticker import MaxNLocator

    found = MaxNLocator(most - 1, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    places = [float(place) for place in found if low <= place <= high]
    plain = (f"{place:,.0f}" if abs(place) >= 1000 else f"{place:.9f}".rstrip("0").rstrip(".") for place in places)
    ticks(axis, places, [text.replace("-", "−") for text in plain])


_styled = threading.local()  # whether this thread already draws in this style, because setting a style is slow


@contextmanager
def style() -> Iterator[None]:
    """Set the style of all figures inside a `with` block.  One block for many figures is faster than many blocks."""
    if getattr(_styled, "now", False):
        yield
        return
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]):
        _styled.now = True
        try:
            yield
        finally:
            _styled.now = False


def _svg(figure: Figure) -> str:
    target = io.StringIO()
    figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    svg = target.getvalue().replace("'DejaVu Serif'", "'Libertinus Serif', 'STIX Two Text', serif")
    # Only numbers inside tags are shortened, so that numbers in the text of the drawing keep all digits.
    return _TAG.sub(lambda tag: _LONG_NUMBER.sub(r"\1", tag[0]), svg)
