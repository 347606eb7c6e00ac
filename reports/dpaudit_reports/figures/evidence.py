"""Draws the wealth of the bets against the claim, and the threshold at which the claim is refuted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.result.model import AuditResult
from dpaudit_reports.figures.canvas import amounts, panel_svg, power_of_ten, ticks
from dpaudit_reports.figures.palette import ATTACK, CHANCE, CLAIM, WITNESS, WITNESS_WORD
from dpaudit_reports.reasons import why_void

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Wealth beyond these limits is drawn at the limit, because its exact value does not matter.
_LEAST_LOG10_E, _MOST_LOG10_E = -6.0, 12.0


def evidence_svg(result: AuditResult) -> str:
    """Return a panel that shows the wealth against the number of runs."""
    return panel_svg(lambda ax: draw_evidence(ax, result), height=2.0)


def draw_evidence(ax: Axes, result: AuditResult) -> None:
    """Draw the wealth on axes."""
    threshold = -math.log10(max(1 - result.confidence, 1e-300))
    known = ~np.isnan(result.history.log_e)
    trials = result.history.trials[known]
    log10_e = result.history.log_e[known] / math.log(10)
    grown = np.clip(log10_e, _LEAST_LOG10_E, max(_MOST_LOG10_E, threshold + 1))
    ax.axhline(0, color=CHANCE, linewidth=0.9, linestyle=":")
    if result.bounds_valid:
        ax.axhline(threshold, color=WITNESS, linewidth=1.1, linestyle="--")
    ax.plot(trials, grown, color=ATTACK if result.bounds_valid else CHANCE, marker="." if trials.size < 30 else "")
    ax.annotate(
        f"claim refuted at {_wealth(threshold)}" if result.bounds_valid else f"not valid: {why_void(result)}"[:48],
        (0, threshold),
        xycoords=("axes fraction", "data"),
        xytext=(4, 3),
        textcoords="offset points",
        color=WITNESS_WORD if result.bounds_valid else CLAIM,
        fontsize=8.5,
    )
    most = max(1, int(trials.max(initial=1)))
    low, high = grown.min(initial=-1.0) - 0.1, max(threshold + 0.8, grown.max(initial=0.0) + 0.3)
    step = max(1, math.ceil((high - low) / 6))
    exponents = [e for e in range(-900, 901, step) if low <= e <= high]
    ticks(ax.yaxis, [float(e) for e in exponents], [_label(e) for e in exponents])
    amounts(ax.xaxis, 0, most, most=5)
    ax.set_xlim(0, most)
    ax.set_ylim(low, high)
    ax.set_xlabel("runs per dataset")
    ax.set_ylabel("wealth E")


def _wealth(log10_e: float) -> str:
    return f"{10**log10_e:,.6g}" if log10_e < 6 else power_of_ten(round(log10_e))


def _label(exponent: int) -> str:
    return f"≤ {power_of_ten(exponent)}" if exponent == _LEAST_LOG10_E else power_of_ten(exponent)
