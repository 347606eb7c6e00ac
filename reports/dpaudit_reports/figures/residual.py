"""Draws by how much an attack's power exceeds the maximum that the claim allows, and the values under a pointer.

Curves that lie close together on the trade-off plot are far apart on this plot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.numerics import Array
from dpaudit.result.model import AuditResult
from dpaudit.rounding import lower, number
from dpaudit_reports.blocks import Hint
from dpaudit_reports.figures.canvas import ATTACK, CHANCE, CLAIM, FORBIDDEN, PANEL, amounts, panel_svg, place
from dpaudit_reports.figures.tradeoff import HEIGHT, draw_region, fine, observed, region_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_HEIGHT, _LOW = 1.95, 1.75  # heights of a panel of half a page's width, and of a narrow panel, in inches
_NARROW = 2.5  # widths below this number of inches have fewer ticks
_DEPTH = 3.0  # of the scale below the claim, at most, as a multiple of its height above the claim

Scale = tuple[float, float]  # the lowest and the highest number of percentage points on the vertical axis


def residual_svg(result: AuditResult, scale: Scale, width: float) -> str:
    """Return a panel that shows the excess of the attack's power over the claim, against the type I error."""
    narrow = width < _NARROW

    def draw(ax: Axes) -> None:
        draw_residual(ax, result, scale)
        amounts(ax.xaxis, 0, 1, most=3 if narrow else 6)
        amounts(ax.yaxis, *scale, most=5 if narrow else 7)

    return panel_svg(draw, height=height_of(width), width=width)


def height_of(width: float) -> float:
    """Return the height of a panel of this width, in inches."""
    return _LOW if width < _NARROW else _HEIGHT


def scale_of(results: Iterable[AuditResult]) -> Scale:
    """Return one scale for several results."""
    shown = list(results)
    values = np.concatenate([[0.0], *(_heights(result) for result in shown)])
    boxes = np.concatenate([[0.0], *(_region(result)[1][:, 1] for result in shown)])
    curves = max(0.5, float(values.max()))
    if not any(result.violated for result in shown):
        middles = [float(np.median(_heights(result))) for result in shown if len(_heights(result))]
        curves = max(curves, -min(middles, default=0.0) / _DEPTH)
    high = 1.12 * max(curves, min(float(boxes.max()), 2.0 * curves))
    low = 1.12 * float(values.min())
    return max(min(low, -high), -_DEPTH * high), high


def peak(result: AuditResult) -> tuple[float, float] | None:
    """Return the type I error and the percentage points at the highest point of the curve; None without a curve."""
    curve = curve_of(result)
    inner = curve[(curve[:, 0] > 0) & (curve[:, 0] < 1)]
    if not len(inner):
        return None
    alpha, points = inner[np.argmax(inner[:, 1])]
    return float(alpha), float(points)


def draw_residual(ax: Axes, result: AuditResult, scale: Scale) -> None:
    """Draw the excess of the attack's power, in percentage points, on linear axes."""
    low, high = scale
    ax.axhspan(0, high, color=FORBIDDEN, linewidth=0)
    alpha, points = curve_of(result).T
    if alpha.size:
        valid = result.bounds_valid
        ax.plot(alpha, points, color=ATTACK if valid else CHANCE, linewidth=1.5, label="attack, observed")
    draw_region(ax, result, *_region(result))
    ax.axhline(0, color=CLAIM, linewidth=1.0, zorder=2.5, label="claim")
    ax.set(xlim=(0, 1), ylim=(low, high), xlabel="type I error α", ylabel="points above claim")


def curve_of(result: AuditResult) -> Array:
    """Return points of the attack's curve, one row each: type I error, and percentage points above the claim."""
    points = observed(result)
    if not len(points):
        return np.empty((0, 2))
    alpha, beta, _ = fine(points).T
    return np.column_stack([alpha, excess(result, alpha, beta)])


def excess(result: AuditResult, alpha: Array, beta: Array) -> Array:
    """Return the power of the attack minus the maximum that the claim allows, in percentage points."""
    return 100 * (np.asarray(result.claim.beta(np.clip(alpha, 0, 1))) - beta)


def _region(result: AuditResult) -> tuple[Array, Array]:
    """Return the diamond and the outline of its rectangle, as `region_of` does."""
    point, box = (np.column_stack([part[:, 0], excess(result, *part.T)]) for part in region_of(result))
    return point, box


def _heights(result: AuditResult) -> Array:
    return np.concatenate([curve_of(result)[:, 1], _region(result)[0][:, 1]])


def tradeoff_hints(result: AuditResult) -> tuple[Hint, ...]:
    """Return values along the attack's curve on the trade-off plot."""
    points = _points(result)
    return _hints(result, points, points, HEIGHT)


def residual_hints(result: AuditResult, scale: Scale, width: float = PANEL) -> tuple[Hint, ...]:
    """Return values along the curve on the plot of the residual."""
    points = _points(result)
    heights = (excess(result, *points.T) - scale[0]) / (scale[1] - scale[0])
    return _hints(result, points, np.column_stack([points[:, 0], heights]), height_of(width), width)


def _points(result: AuditResult) -> Array:
    points = observed(result)
    return fine(points)[:, :2] if len(points) and result.bounds_valid else np.empty((0, 2))


def _hints(result: AuditResult, points: Array, shown: Array, height: float, width: float = PANEL) -> tuple[Hint, ...]:
    if not len(points):
        return ()
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(shown, axis=0).T))])
    chosen = np.unique(np.searchsorted(length, np.linspace(0, length[-1], 40)).clip(0, len(points) - 1))
    inside = [i for i in chosen if np.all((shown[i] >= 0) & (shown[i] <= 1))]
    hints = []
    for i in inside:
        (alpha, beta), claimed = points[i], float(result.claim.beta(points[i, 0]))
        words = f"attack: α {number(alpha, 3)}, β {number(beta, 3)}; the claim allows β ≥ {lower(claimed, 3)}"
        hints.append(Hint(*place(*shown[i], height=height, width=width), words))
    return tuple(hints)
