"""Draws the privacy profile, the least delta at every epsilon, as claimed and as certified."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.result.model import AuditResult
from dpaudit_reports.bounds import certified_profile, profile_points
from dpaudit_reports.figures.canvas import amounts, decades, panel_svg
from dpaudit_reports.figures.palette import ATTACK, CLAIM, FORBIDDEN
from dpaudit_reports.figures.tradeoff import DETAIL_HEIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_DELTA = 1e-10
"""The smallest delta on the axis."""


def profile_svg(result: AuditResult) -> str:
    """Return a panel that shows delta on a logarithmic axis against epsilon >= 0."""
    return panel_svg(lambda ax: draw_profile(ax, result), height=DETAIL_HEIGHT, legend=3, logarithmic="y")


def draw_profile(ax: Axes, result: AuditResult) -> None:
    """Draw the profiles on axes whose vertical scale is logarithmic."""
    steps = certified_profile(result)
    reach = 1.1 * max([_claimed_reach(result), *(epsilon for epsilon, _ in steps), 0.1])
    epsilon, claimed = profile_points(result.claim, reach, MIN_DELTA / 10)
    if not result.measurement:
        ax.fill_between(epsilon, claimed, 1, color=FORBIDDEN, linewidth=0, label="forbidden")
        ax.plot(epsilon, claimed, color=CLAIM, linewidth=1.0, zorder=2.5, label="claim")
    if steps:
        # The profile exceeds d at all epsilon below the bound at d.  These bounds form a staircase from the largest d.
        x = [0.0, *(corner for corner, _ in steps for _ in range(2))]
        heights = [max(delta, MIN_DELTA / 10) for _, delta in steps]
        y = [heights[0], *(h for pair in zip(heights, [*heights[1:], MIN_DELTA / 10], strict=True) for h in pair)]
        ax.fill_between(x, MIN_DELTA / 10, y, color=ATTACK, alpha=0.2, linewidth=0)
        ax.plot(x, y, "--", color=ATTACK, linewidth=1.3, zorder=2.6, label="certified")
    ax.set_xlim(0, reach)
    ax.set_ylim(MIN_DELTA, 1)
    amounts(ax.xaxis, 0, reach)
    decades(ax.yaxis, round(math.log10(MIN_DELTA)), 0)
    ax.set_xlabel("ε")
    ax.set_ylabel("δ(ε)")


def _claimed_reach(result: AuditResult) -> float:
    """Return the epsilon at which the claim's profile leaves the drawing or becomes constant."""
    level = float(result.claim.delta(np.inf))
    epsilon = result.claim.epsilon(min(max(MIN_DELTA, 1.01 * level), 1.0))
    return min(epsilon, 50.0) if math.isfinite(epsilon) else 1.0
