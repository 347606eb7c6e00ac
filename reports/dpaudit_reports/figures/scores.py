"""Draws the histograms of the scores of a training audit, without and with the canary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpaudit.result.training import TrainingRecord
from dpaudit_reports.figures.canvas import amounts, panel_svg
from dpaudit_reports.figures.palette import ATTACK, WITNESS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def scores_svg(record: TrainingRecord, without: str, included: str) -> str:
    """Return a panel that shows the share of scores in each bar."""
    return panel_svg(lambda ax: _draw(ax, record, without, included), height=2.75, legend=2)


def _draw(ax: Axes, record: TrainingRecord, without: str, included: str) -> None:
    edges = np.array(record.edges)
    shares = [np.array(side) / max(1, sum(side)) for side in (record.out, record.into)]
    top = 1.08 * max(1e-9, *(share.max() for share in shares))
    ax.stairs(shares[0], edges, fill=True, color=ATTACK, alpha=0.25)
    ax.stairs(shares[0], edges, color=ATTACK, linewidth=1.3, label=without)
    ax.stairs(shares[1], edges, color=WITNESS, linewidth=1.3, linestyle=(0, (3, 1.2)), label=included)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(0, top)
    amounts(ax.xaxis, edges[0], edges[-1])
    amounts(ax.yaxis, 0, top, most=5)
    ax.set_xlabel("score")
    ax.set_ylabel("share of scores")
