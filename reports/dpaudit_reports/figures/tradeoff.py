"""Draws the trade-off plot, its residual and the privacy profile: the claim's curves, and what the attack reached.

The residual is by how much the attack's power exceeds the maximum that the claim allows: it separates curves that lie
close together on the trade-off plot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.numerics import Array
from dpaudit.result.model import AuditResult
from dpaudit.rounding import lower, number, percent_at_least
from dpaudit_reports.blocks import Hint
from dpaudit_reports.claimed import certified_profile, has_band, profile_points
from dpaudit_reports.figures import (
    ATTACK,
    CHANCE,
    CLAIM,
    FORBIDDEN,
    PAPER,
    WITNESS,
    WITNESS_WORD,
    amounts,
    decades,
    panel_svg,
    place,
)
from dpaudit_reports.rates import RegionStatus, frozen, intervals, region_status

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SIZE = 8.5


def label_curves(ax: Axes, result: AuditResult) -> None:
    """Label the claim, the attack's curve, the grey area, and the diamond if there is one."""
    curve = observed(result)[:, :2]
    alpha = np.linspace(0.0, 1.0, 400)
    beta = np.asarray(result.claim.beta(alpha))
    claim = np.column_stack([alpha, beta])
    if not result.measurement:
        _label(ax, "claim", (0.6, 0.85), claim, CLAIM)
    if len(curve):
        if result.bounds_valid:
            _label(ax, "attack", (0.72, 0.7), curve, ATTACK)
        else:
            _label(ax, "observed, not valid", (0.52, 0.62), curve, CHANCE)
    above = 0.0  # of the curve over the line of guessing, near the word
    if len(curve):
        along, over = (curve[:, 0] - curve[:, 1]) / 2, (curve[:, 0] + curve[:, 1] - 1) / 2
        order = np.argsort(along, kind="stable")
        near = np.interp(np.linspace(0.3, 0.5, 50), along[order], over[order], left=0, right=0)
        above = max(0.0, float(near.max()))
    if above < 0.12:  # otherwise the curve hides the word
        place = 0.9 + above, 0.11 + above
        ax.text(*place, "guessing", rotation=-40, fontsize=8, color=CHANCE, ha="center", va="bottom")
    reach = float(alpha[np.argmin(np.abs(beta - alpha))])
    inside = len(curve) and bool(np.any((curve[:, 0] < 0.8 * reach) & (curve[:, 1] < 0.8 * reach)))
    if reach > 0.24 and not inside:
        ax.text(max(0.13, 0.45 * reach), 0.42 * reach, "forbidden", fontsize=8, ha="center", va="center")
    for at in region_of(result)[0]:
        place, side = ((0.3, 0.94), "left") if at[1] >= at[0] else ((0.99, 0.46), "right")
        line, word = (WITNESS, WITNESS_WORD) if result.violated else (CLAIM, CLAIM)
        how: dict[str, Any] = {"va": "center", "ha": side, "fontsize": _SIZE, "arrowprops": _line(line)}
        ax.annotate(point_name(result), tuple(at), place, color=word, **how)


def _label(ax: Axes, words: str, place: tuple[float, float], curve: Array, color: str) -> None:
    offset = place[1] - place[0]
    order = np.argsort(curve[:, 1] - curve[:, 0], kind="stable")
    gap = (curve[:, 1] - curve[:, 0])[order]
    at = float(np.interp(offset, gap, curve[order, 0])), float(np.interp(offset, gap, curve[order, 1]))
    ax.annotate(words, at, xytext=place, color=color, va="center", fontsize=_SIZE, arrowprops=_line(color))


def _line(color: str) -> dict[str, str | float]:
    return {"arrowstyle": "-", "color": color, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 2}


HEIGHT = 2.4  # of the panel, in inches


def point_name(result: AuditResult) -> str:
    """Return the legend's name for the diamond; "" without intervals, since a point alone would look like a proof."""
    if result.witness is None or intervals(result.witness) is None:
        return ""
    match region_status(result):
        case RegionStatus.WITNESS:
            return "fresh counts" if frozen(result) else "witness"
        case RegionStatus.TESTED if result.witness.near:
            return "tested region"
        case RegionStatus.CLOSEST:
            return "closest"
    return ""


def tradeoff_svg(result: AuditResult) -> str:
    """Return the trade-off plot on linear axes as a panel, with labels on the curves and without the band."""

    def draw(ax: Axes) -> None:
        draw_tradeoff(ax, result, band=False)
        label_curves(ax, result)
        amounts(ax.xaxis, 0, 1)
        amounts(ax.yaxis, 0, 1)

    return panel_svg(draw, height=HEIGHT)


def draw_tradeoff(ax: Axes, result: AuditResult, *, band: bool = True) -> None:
    """Draw the claim's curve, the attack's errors, and the witness."""
    ends = np.geomspace(1e-6, 0.5, 120)
    alpha = np.unique(np.concatenate([[0.0], ends, 1 - ends, [1.0]]))
    claimed = result.claim.beta(alpha)
    # The claim's curve is thin and lies on top, so that an attack's curve below is visible on both sides.
    ax.plot(alpha, claimed, color=CLAIM, linewidth=1.0, zorder=2.5, label="claim")
    ax.fill_between(alpha, 0, claimed, color=FORBIDDEN, linewidth=0, label="forbidden")
    _draw_curve(ax, result, band=band)
    draw_region(ax, result, *region_of(result))
    ax.plot(alpha, 1 - alpha, ":", color=CHANCE, linewidth=0.9, label="blind guessing")
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="type I error α", ylabel="type II error β")


def _draw_curve(ax: Axes, result: AuditResult, *, band: bool) -> None:
    points = observed(result)
    if not len(points):
        return
    alpha, beta, upper = fine(points).T
    if not result.bounds_valid:
        ax.plot(alpha, beta, color=CHANCE, linewidth=1.3, label="observed, not valid")
        return
    ax.plot(alpha, beta, color=ATTACK, linewidth=1.6, label="attack, observed")
    if band and has_band(result):
        ax.fill_between(alpha, beta, upper, color=ATTACK, alpha=0.13, linewidth=0)
        name = f"upper bound ({percent_at_least(result.confidence)})"
        ax.plot(alpha, upper, "--", color=ATTACK, linewidth=1.0, label=name)


def region_of(result: AuditResult) -> tuple[Array, Array]:
    """Return the errors of the region, (1, 2), and the outline of their intervals, (n, 2); nothing if not drawn."""
    found, nothing = result.witness, np.empty((0, 2))
    if not point_name(result) or found is None:
        return nothing, nothing
    across = np.linspace(found.alpha_lower, found.alpha_upper, 20)
    alpha = np.concatenate([across, across[::-1], across[:1]])
    beta = np.repeat([found.beta_lower, found.beta_upper, found.beta_lower], [20, 20, 1])
    return np.array([[found.alpha, found.beta]]), np.column_stack([alpha, beta])


def draw_region(ax: Axes, result: AuditResult, point: Array, box: Array) -> None:
    """Draw the diamond, hollow without a violation, and the intervals."""
    if not len(point):
        return
    color = WITNESS if result.violated else CLAIM
    ax.fill(*box.T, color=color, alpha=0.22, linewidth=0, zorder=2.2)
    ax.plot(*box.T, color=color, linewidth=0.8)
    face, edge = (WITNESS, PAPER) if result.violated else (PAPER, CLAIM)
    ax.plot(*point.T, "D", color=face, mec=edge, mew=0.6, clip_on=False, linestyle="", label=point_name(result))


def observed(result: AuditResult) -> Array:
    """Return the known points of the attack's curve, one row each: alpha, beta, and the upper bound on beta."""
    curve = result.curve
    known = np.isfinite(curve.alpha) & np.isfinite(curve.beta) & np.isfinite(curve.beta_upper)
    return np.column_stack([curve.alpha, curve.beta, curve.beta_upper])[known]


def fine(corners: Array) -> Array:
    """Return the polygon through `corners`, one row each, with more points on long sides."""
    ends = np.geomspace(1e-5, 0.5, 12, endpoint=False)
    share = np.concatenate([[0.0], ends, 1 - ends[::-1]])[:, None]
    sides = [a + share * (b - a) if np.abs(b - a).max() > 0.02 else a for a, b in pairwise(corners)]
    return np.vstack([*sides, corners[-1]])


AXIS_DELTA = 1e-10  # the smallest on the axis


def draw_profile(ax: Axes, result: AuditResult) -> None:
    """Draw the profiles on axes whose vertical scale is logarithmic."""
    steps = certified_profile(result)
    reach = 1.1 * max([_claimed_reach(result), *(epsilon for epsilon, _ in steps), 0.1])
    epsilon, claimed = profile_points(result.claim, reach, AXIS_DELTA / 10)
    if not result.measurement:
        ax.fill_between(epsilon, claimed, 1, color=FORBIDDEN, linewidth=0, label="forbidden")
        ax.plot(epsilon, claimed, color=CLAIM, linewidth=1.0, zorder=2.5, label="claim")
    if steps:
        x, y = staircase(steps)
        ax.fill_between(x, AXIS_DELTA / 10, y, color=ATTACK, alpha=0.2, linewidth=0)
        ax.plot(x, y, "--", color=ATTACK, linewidth=1.3, zorder=2.6, label="certified")
    ax.set_xlim(0, reach)
    ax.set_ylim(AXIS_DELTA, 1)
    amounts(ax.xaxis, 0, reach)
    decades(ax.yaxis, round(math.log10(AXIS_DELTA)), 0)
    ax.set(xlabel="ε", ylabel="δ(ε)")


def staircase(steps: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Return the outline of bounds: the profile exceeds d at all epsilon below the bound at d, from the largest d."""
    x = [0.0, *(corner for corner, _ in steps for _ in range(2))]
    heights = [*(max(delta, AXIS_DELTA / 10) for _, delta in steps), AXIS_DELTA / 10]
    return x, [heights[0], *(h for pair in pairwise(heights) for h in pair)]


def _claimed_reach(result: AuditResult) -> float:
    """Return the epsilon at which the claim's profile leaves the drawing or becomes constant."""
    level = float(result.claim.delta(np.inf))
    epsilon = result.claim.epsilon(min(max(AXIS_DELTA, 1.01 * level), 1.0))
    return min(epsilon, 50.0) if math.isfinite(epsilon) else 1.0


_DEPTH = 3.0  # of the scale below the claim, at most, as a multiple of its height above the claim

Scale = tuple[float, float]  # the lowest and the highest number of percentage points on the vertical axis


def scale_of(result: AuditResult) -> Scale:
    """Return the scale of the residual of a result."""
    values, box = _heights(result), _region(result)[1][:, 1]
    curves = max(0.5, float(values.max(initial=0.0)))
    if not result.violated and len(values):
        curves = max(curves, -float(np.median(values)) / _DEPTH)
    high = 1.12 * max(curves, min(float(box.max(initial=0.0)), 2.0 * curves))
    return max(min(1.12 * float(values.min(initial=0.0)), -high / 4), -_DEPTH * high), high


def draw_residual(ax: Axes, result: AuditResult) -> None:
    """Draw the excess of the attack's power, in percentage points, on linear axes."""
    low, high = scale_of(result)
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
    points = observed(result)
    if not len(points) or not result.bounds_valid:
        return ()
    points = fine(points)[:, :2]
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    hints = []
    for i in np.unique(np.searchsorted(length, np.linspace(0, length[-1], 40)).clip(0, len(points) - 1)):
        (alpha, beta), claimed = points[i], float(result.claim.beta(points[i, 0]))
        words = f"attack: α {number(alpha, 3)}, β {number(beta, 3)}; the claim allows β ≥ {lower(claimed, 3)}"
        hints.append(Hint(*place(alpha, beta, height=HEIGHT), words))
    return tuple(hints)
