"""A small SVG canvas with colours that follow the reader's light or dark mode.

The canvas does not use matplotlib, so equal numbers give equal bytes, whatever version of matplotlib is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dpaudit_reports import figures as palette

Point = tuple[float, float]

# Maps a name to its colours in light mode and in dark mode.  The dark "paper" is the dark background of the site.
_USED = {name: colors for name, colors in palette.COLORS.items() if name != "witness-word"}
COLORS = {**_USED, "paper": ("#ffffff", "#1e2129"), "third": ("#007a5a", "#2fc79a")}

_RULES = (
    "text{font-family:'Source Sans 3','Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:15px}"
    ".small{font-size:13px}.bold{font-weight:600}.halo{paint-order:stroke;stroke-width:5px;stroke-linejoin:round}"
    "path,line,circle,rect{stroke-linejoin:round;stroke-linecap:round}"
)


class Canvas:
    """A list of shapes, with coordinates in pixels from the top left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._shapes: list[str] = []

    def line(
        self, points: Iterable[Point], color: str, *, width: float = 2, dashes: str = "", closed: bool = False
    ) -> None:
        """Draw a line through the given points."""
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._add(f'<path class="s-{color}" fill="none" stroke-width="{width:g}"{dashed} d="{_path(points, closed)}"/>')

    def area(self, points: Iterable[Point], color: str, *, opacity: float = 1) -> None:
        """Fill the polygon with the given corners."""
        self._add(f'<path class="f-{color}" fill-opacity="{opacity:g}" d="{_path(points, closed=True)}"/>')

    def dot(self, at: Point, color: str, *, radius: float = 5) -> None:
        """Draw a filled circle."""
        self._add(f'<circle class="f-{color}" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius:g}"/>')

    def sector(self, centre: Point, radius: float, start: Point, end: Point, color: str, *, opacity: float) -> None:
        """Fill a sector of a circle, clockwise from one point of the circle to another."""
        (x, y), large = centre, 0
        if (start[0] - x) * (end[1] - y) - (start[1] - y) * (end[0] - x) < -1e-9:
            large = 1  # more than half of the circle
        arc = f"A{radius:g} {radius:g} 0 {large} 1 {end[0]:.1f} {end[1]:.1f}"
        path = f"M{x:.1f} {y:.1f}L{start[0]:.1f} {start[1]:.1f}{arc}Z"
        self._add(f'<path class="f-{color} s-paper" stroke-width="3" fill-opacity="{opacity:g}" d="{path}"/>')

    def squares(self, corners: Iterable[Point], side: float, color: str, *, filled: bool) -> None:
        """Draw squares with the given top left corners, filled or as outlines."""
        path = "".join(f"M{x:.1f} {y:.1f}h{side:g}v{side:g}h{-side:g}Z" for x, y in corners)
        look = f'class="f-{color} s-{color}"' if filled else f'class="s-{color}" fill="none"'
        self._add(f'<path {look} stroke-width="2" d="{path}"/>')

    def words(self, at: Point, words: str, color: str = "label", *, anchor: str = "start", style: str = "") -> None:
        """Write a line of text.

        Args:
            at: The anchor point of the text.
            words: The text.
            color: A name of `COLORS`.
            anchor: The part of the text at the anchor point: "start", "middle" or "end".
            style: Any of the words "small" and "bold".
        """
        place = f'x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}"'
        self._add(f'<text class="f-{color} s-paper halo {style}" {place}>{escape(words)}</text>'.replace(' "', '"'))

    def upright(self, at: Point, words: str) -> None:
        """Write a line of text upwards, centred at the given point."""
        place = f'transform="translate({at[0]:.1f} {at[1]:.1f}) rotate(-90)" text-anchor="middle"'
        self._add(f'<text class="f-label" {place}>{escape(words)}</text>')

    def svg(self, title: str) -> str:
        """Return the drawing as the text of an SVG file with the given title."""
        sheet = _RULES + _sheet(0) + f"@media(prefers-color-scheme:dark){{{_sheet(1)}}}"
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        paper = f'<rect class="f-paper" width="{self.width:g}" height="{self.height:g}"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<title>{escape(title)}</title>'
        return "\n".join([head, f"<style>{sheet}</style>", paper, *self._shapes, "</svg>\n"])

    def _add(self, shape: str) -> None:
        self._shapes.append(shape)


class Plot:
    """Axes on a canvas; the methods take coordinates on these axes."""

    def __init__(
        self,
        canvas: Canvas,
        box: tuple[float, float, float, float],
        across: tuple[float, float],
        along: tuple[float, float],
    ) -> None:
        """Create the axes.

        Args:
            canvas: The canvas of the plot.
            box: The left, top, right and bottom edges of the plot, in pixels.
            across: The range of the horizontal axis.
            along: The range of the vertical axis.
        """
        self.canvas, self.box, self.across, self.along = canvas, box, across, along

    def at(self, x: float, y: float) -> Point:
        """Return the position of a point in pixels."""
        left, top, right, bottom = self.box
        share = (x - self.across[0]) / (self.across[1] - self.across[0])
        height = (y - self.along[0]) / (self.along[1] - self.along[0])
        return left + share * (right - left), bottom - height * (bottom - top)

    def axes(self, label: str, upright: str, ticks: Sequence[float], rises: Sequence[float]) -> None:
        """Draw both axes, with labels and ticks; a vertical axis without a label has no line."""
        left, top, right, bottom = self.box
        for tick in ticks:
            x, _ = self.at(tick, self.along[0])
            self.canvas.line([(x, top), (x, bottom)], "grid", width=1)
            self.canvas.words((x, bottom + 19), _number(tick), anchor="middle", style="small")
        for tick in rises:
            _, y = self.at(self.across[0], tick)
            self.canvas.line([(left, y), (right, y)], "grid", width=1)
            self.canvas.words((left - 8, y + 4.5), _number(tick), anchor="end", style="small")
        self.canvas.line([(left, bottom), (right, bottom)], "axis", width=1.2)
        self.canvas.words(((left + right) / 2, bottom + 42), label, anchor="middle")
        if upright:
            self.canvas.line([(left, top), (left, bottom)], "axis", width=1.2)
            self.canvas.upright((left - 40, (top + bottom) / 2), upright)

    def line(self, x: Iterable[float], y: Iterable[float], color: str, *, width: float = 2, dashes: str = "") -> None:
        """Draw a curve."""
        self.canvas.line([self.at(*point) for point in zip(x, y, strict=True)], color, width=width, dashes=dashes)

    def area(
        self, x: Sequence[float], low: Iterable[float], high: Iterable[float], color: str, *, opacity: float = 1
    ) -> None:
        """Fill the area between two curves."""
        above = [self.at(*point) for point in zip(x, high, strict=True)]
        below = [self.at(*point) for point in zip(x, low, strict=True)]
        self.canvas.area([*above, *below[::-1]], color, opacity=opacity)

    def dot(self, x: float, y: float, color: str, *, radius: float = 5) -> None:
        """Draw a filled circle."""
        self.canvas.dot(self.at(x, y), color, radius=radius)

    def key(self, x: float, y: float, rows: Sequence[tuple[str, str, str]]) -> None:
        """Draw a legend with one row for each curve, downwards from the given point."""
        left, top = self.at(x, y)
        for i, (color, dashes, words) in enumerate(rows):
            self.canvas.line([(left, top + 21 * i), (left + 30, top + 21 * i)], color, width=2.2, dashes=dashes)
            self.canvas.words((left + 38, top + 21 * i + 5), words, color)

    def words(
        self, x: float, y: float, words: str, color: str = "label", *, anchor: str = "start", style: str = ""
    ) -> None:
        """Write a line of text."""
        self.canvas.words(self.at(x, y), words, color, anchor=anchor, style=style)


def _path(points: Iterable[Point], closed: bool) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + "Z" * closed


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _sheet(mode: int) -> str:
    rules = ((name, pair[mode]) for name, pair in COLORS.items())
    return "".join(f".f-{name}{{fill:{color}}}.s-{name}{{stroke:{color}}}" for name, color in rules)
