"""Draws by how much an attack's power exceeds the maximum that the claim allows.

Curves that lie close together on the trade-off plot are far apart on this plot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.result.model import AuditResult
from dpaudit_reports.figures.canvas import PANEL, amounts, panel_svg
from dpaudit_reports.figures.palette import ATTACK, CHANCE, CLAIM, FORBIDDEN, PAPER, WITNESS
from dpaudit_reports.figures.tradeoff import fine, observed, point_name
from dpaudit_reports.rates import intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT, _LOW = 1.95, 1.75  # heights of a panel of half a page's width, and of a narrow panel, in inches
_NARROW = 2.5  # widths below this number of inches have fewer ticks
_LEAST = 0.5  # minimum height of the scale, in percentage points
_DEEPEST = 3.0  # maximum depth of the scale below the claim, as a multiple of its height above the claim
_MOST_BOX = 2.0  # maximum height of the scale for a rectangle, as a multiple of that for the curves
_MARGIN = 1.12  # of the scale around the largest value

Scale = tuple[float, float]
"""The lowest and the highest number of percentage points on the vertical axis."""


def residual_svg(result: AuditResult, scale: Scale | None = None, *, width: float = PANEL) -> str:
    """Return a panel that shows the excess of the attack's power over the claim, against the type I error."""
    shown = scale_of([result]) if scale is None else scale
    narrow = width < _NARROW

    def draw(ax: Axes) -> None:
        draw_residual(ax, result, shown)
        amounts(ax.xaxis, 0, 1, most=3 if narrow else 6)
        amounts(ax.yaxis, *shown, most=5 if narrow else 7)

    return panel_svg(draw, height=height_of(width), width=width)


def height_of(width: float) -> float:
    """Return the height of a panel of this width, in inches."""
    return _LOW if width < _NARROW else _HEIGHT


def scale_of(results: Iterable[AuditResult]) -> Scale:
    """Return one scale for several results.

    The scale includes the highest points of all curves.  Without a violation, it also includes half of each curve, even
    if the highest points are hardly visible then.  A rectangle that is much higher, or a curve that lies far below the
    claim, is cut off.
    """
    shown = list(results)
    values = np.concatenate([[0.0], *(_heights(result) for result in shown)])
    boxes = np.concatenate([[0.0], *(_region(result)[1][:, 1] for result in shown)])
    curves = max(_LEAST, float(values.max()))
    if not any(result.violated for result in shown):
        middles = [float(np.median(_heights(result))) for result in shown if len(_heights(result))]
        curves = max(curves, -min(middles, default=0.0) / _DEEPEST)
    high = _MARGIN * max(curves, min(float(boxes.max()), _MOST_BOX * curves))
    low = _MARGIN * float(values.min())
    return max(min(low, -high), -_DEEPEST * high), high


def peak(result: AuditResult) -> tuple[float, float] | None:
    """Return the type I error and the percentage points at the highest point of the curve; None without a curve.

    The two ends of the curve are excluded, because every curve meets the claim there.
    """
    curve = curve_of(result)
    inner = curve[(curve[:, 0] > 0) & (curve[:, 0] < 1)]
    if not len(inner):
        return None
    alpha, points = inner[np.argmax(inner[:, 1])]
    return float(alpha), float(points)


def draw_residual(ax: Axes, result: AuditResult, scale: Scale) -> None:
    """Draw the excess of the attack's power, in percentage points, on linear axes.

    The claim is the line at zero, and the area above this line is forbidden by the claim.
    """
    low, high = scale
    ax.axhspan(0, high, color=FORBIDDEN, linewidth=0)
    alpha, points = curve_of(result).T
    if alpha.size:
        valid = result.bounds_valid
        ax.plot(alpha, points, color=ATTACK if valid else CHANCE, linewidth=1.5, label="attack, observed")
    _draw_region(ax, result)
    ax.axhline(0, color=CLAIM, linewidth=1.0, zorder=2.5, label="claim")
    ax.set_xlim(0, 1)
    ax.set_ylim(low, high)
    ax.set_xlabel("type I error α")
    ax.set_ylabel("points above claim")


def curve_of(result: AuditResult) -> Array:
    """Return points of the attack's curve, one row each: type I error, and percentage points above the claim."""
    points = observed(result)
    if not len(points):
        return np.empty((0, 2))
    alpha, beta, _ = fine(points).T
    return np.column_stack([alpha, excess(result, alpha, beta)])


def excess(result: AuditResult, alpha: Array, beta: Array) -> Array:
    """Return the power of the attack minus the maximum that the claim allows, in percentage points.

    The power is 1 - beta, and the claim allows at most 1 - f(alpha).
    """
    return 100 * (np.asarray(result.claim.beta(np.clip(alpha, 0, 1))) - beta)


def _region(result: AuditResult) -> tuple[Array, Array]:
    """Return the diamond, (1, 2), and the outline of its rectangle, (n, 2); empty arrays if they are not drawn."""
    found, nothing = result.witness, np.empty((0, 2))
    if not point_name(result) or found is None or not (math.isfinite(found.alpha) and math.isfinite(found.beta)):
        return nothing, nothing
    point = np.array([[found.alpha, found.beta]])
    point[:, 1] = excess(result, point[:, 0], point[:, 1])
    known = intervals(found)
    if known is None:
        return point, nothing
    (left, right), (below, above) = known
    across = np.linspace(left, right, 20)
    alpha = np.concatenate([across, across[::-1], across[:1]])
    beta = np.concatenate([np.full(20, below), np.full(20, above), [below]])
    return point, np.column_stack([alpha, excess(result, alpha, beta)])


def _draw_region(ax: Axes, result: AuditResult) -> None:
    """Draw the region as on the trade-off plot: a diamond, hollow without a violation, and the 95 % intervals."""
    point, box = _region(result)
    if len(box):
        ax.fill(*box.T, color=WITNESS, alpha=0.22, linewidth=0, zorder=2.2)
        ax.plot(*box.T, color=WITNESS, linewidth=0.8)
    if len(point):
        face, edge = (WITNESS, PAPER) if result.violated else (PAPER, WITNESS)
        ax.plot(*point.T, "D", color=face, mec=edge, mew=0.6, clip_on=False, linestyle="", label=point_name(result))


def _heights(result: AuditResult) -> Array:
    return np.concatenate([curve_of(result)[:, 1], _region(result)[0][:, 1]])
