"""Draws the wealth of the bets against the claim, and the threshold at which the claim is refuted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.numerics.arrays import Array, Integers
from dpaudit.result.model import AuditResult
from dpaudit_reports.figures.canvas import amounts, panel_svg, power_of_ten, ticks
from dpaudit_reports.figures.palette import ATTACK, CHANCE, CLAIM, WITNESS, WITNESS_WORD
from dpaudit_reports.reasons import why_void

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Wealth beyond these limits is drawn at the limit, because its exact value does not matter.
_LEAST_LOG10_E, _MOST_LOG10_E = -6.0, 12.0
_SIZE = 8.5  # size of the label in points
_LETTER = 0.47  # mean width of a letter, as a multiple of its size
_OFFSET = 4.0, 3.0  # distance of the label from the edge and from the threshold, in points
HEIGHT = 2.0
"""Height of the panels of this figure, in inches."""


def evidence_svg(result: AuditResult) -> str:
    """Return a panel that shows the wealth against the number of runs."""
    return panel_svg(lambda ax: draw_evidence(ax, result), height=HEIGHT)


def draw_evidence(ax: Axes, result: AuditResult) -> None:
    """Draw the wealth on axes."""
    threshold = -math.log10(max(1 - result.confidence, 1e-300))
    known = ~np.isnan(result.history.log_e)
    trials, unit = _trials(result, result.history.trials[known])
    log10_e = result.history.log_e[known] / math.log(10)
    limit = max(_MOST_LOG10_E, threshold + 1)
    grown = np.clip(log10_e, _LEAST_LOG10_E, limit)
    ax.axhline(0, color=CHANCE, linewidth=0.9, linestyle=":")
    if result.bounds_valid:
        ax.axhline(threshold, color=WITNESS, linewidth=1.1, linestyle="--")
    ax.plot(trials, grown, color=ATTACK if result.bounds_valid else CHANCE, marker="." if trials.size < 30 else "")
    most = max(1, int(trials.max(initial=1)))
    low, high = grown.min(initial=-1.0) - 0.1, max(threshold + 0.8, grown.max(initial=0.0) + 0.3)
    step = max(1, math.ceil((high - low) / 6))
    exponents = [e for e in range(-900, 901, step) if low <= e <= high]
    ticks(ax.yaxis, [float(e) for e in exponents], [_label(e, limit) for e in exponents])
    amounts(ax.xaxis, 0, most, most=5)
    ax.set_xlim(0, most)
    ax.set_ylim(low, high)
    ax.set_xlabel(unit)
    ax.set_ylabel("wealth E")
    curve = np.column_stack([trials / most, (grown - low) / (high - low)])
    if result.bounds_valid:
        words = f"claim refuted at {_wealth(threshold)}"
        _write(ax, words, (threshold - low) / (high - low), curve, WITNESS_WORD)
    else:
        _write(ax, f"not valid: {why_void(result)}"[:48], 1.0, curve, CLAIM)


def _trials(result: AuditResult, trials: Integers) -> tuple[Integers, str]:
    """Return the places of the wealth on the horizontal axis, and their unit.

    A stream records half of its steps, rounded up, so the second of two equal records is one step later.
    """
    if "{steps}" not in result.evidence.words.spent:
        return trials, "runs per dataset"
    return 2 * trials - 1 + (np.diff(trials, prepend=0) == 0), "steps"


def _write(ax: Axes, words: str, line: float, curve: Array, color: str) -> None:
    """Write words above or below a horizontal line, on the left or on the right, where the curve leaves room."""
    box = ax.get_window_extent()
    points = ax.figure.dpi / 72
    wide, high = (_LETTER * _SIZE * len(words) + _OFFSET[0]) * points / box.width, 1.4 * _SIZE * points / box.height
    up, down = (line, line + high), (line - high, line)
    left, right = (0.0, wide), (1.0 - wide, 1.0)
    places = [(x, y) for y in (up, down) for x in (left, right) if y[0] >= 0 and y[1] <= 1.001] or [(left, down)]
    (start, _), (below, _) = next((place for place in places if not _meets(curve, *place)), places[0])
    at_left, above = start == 0.0, below == line
    ax.annotate(
        words,
        (0 if at_left else 1, line),
        xycoords="axes fraction",
        xytext=(_OFFSET[0] * (1 if at_left else -1), _OFFSET[1] * (1 if above else -1)),
        textcoords="offset points",
        ha="left" if at_left else "right",
        va="baseline" if above else "top",
        color=color,
        fontsize=_SIZE,
    )


def _meets(curve: Array, across: tuple[float, float], up: tuple[float, float]) -> bool:
    """Return whether a curve enters a rectangle of the axes."""
    if not len(curve):
        return False
    x = np.linspace(0, 1, 400)
    y: Array = np.interp(x, curve[:, 0], curve[:, 1], left=np.nan, right=np.nan)
    inside = (x >= across[0]) & (x <= across[1])
    low, high = np.minimum(y[:-1], y[1:]), np.maximum(y[:-1], y[1:])
    return bool(np.any((inside[:-1] | inside[1:]) & (low <= up[1]) & (high >= up[0])))


def _wealth(log10_e: float) -> str:
    return f"{10**log10_e:,.6g}" if log10_e < 6 else power_of_ten(round(log10_e))


def _label(exponent: int, limit: float) -> str:
    sign = {_LEAST_LOG10_E: "≤ ", limit: "≥ "}.get(exponent, "")
    return f"{sign}{power_of_ten(exponent)}"
