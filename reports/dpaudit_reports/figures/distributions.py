"""Draws the distributions of the attack's score under d0 and d1, with the witness's region."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array
from dpaudit_reports.figures.canvas import amounts, panel_svg
from dpaudit_reports.figures.evidence import HEIGHT
from dpaudit_reports.figures.palette import ATTACK, CLAIM, FORBIDDEN, WITNESS
from dpaudit_reports.scores import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BARS = 36  # approximate number of bars
_OUTSIDE = 0.002  # maximum share of a dataset's outputs beyond each end; the last bars include these outputs


def distributions_svg(scores: Scores) -> str:
    """Return a panel that shows shares of outputs against the estimated log-likelihood ratio in equally wide bars."""
    return panel_svg(lambda ax: draw_distributions(ax, scores), height=HEIGHT, legend=3)


def draw_distributions(ax: Axes, scores: Scores) -> None:
    """Draw the scores of both datasets and the region on axes."""
    cut = scores.cut
    low, high = _range(scores, cut)
    width = (high - low) / _BARS
    edges = cut + width * np.arange(np.floor((low - cut) / width), np.ceil((high - cut) / width) + 1)
    shares = [_shares(counts, scores.edges, edges) for counts in (scores.counts0, scores.counts1)]
    top = 1.08 * max(1e-9, *(share.max() for share in shares))
    ax.axvspan(cut, edges[-1], color=FORBIDDEN, linewidth=0, label="region")
    ax.axvline(cut, color=CLAIM, linewidth=0.8)
    ax.stairs(shares[0], edges, fill=True, color=ATTACK, alpha=0.25)
    ax.stairs(shares[0], edges, color=ATTACK, linewidth=1.3, label="d0")
    ax.stairs(shares[1], edges, color=WITNESS, linewidth=1.3, linestyle=(0, (3, 1.2)), label="d1")
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(0, top)
    amounts(ax.xaxis, edges[0], edges[-1])
    amounts(ax.yaxis, 0, top, most=5)
    ax.set_xlabel("estimated log-likelihood ratio")
    ax.set_ylabel("share of outputs")


def _range(scores: Scores, cut: float) -> tuple[float, float]:
    """Return an interval that contains the cut and almost all outputs."""
    below = np.array([np.cumsum(c)[:-1] / max(1, c.sum()) for c in (scores.counts0, scores.counts1)])
    inner = np.flatnonzero((below.min(axis=0) >= _OUTSIDE) | (below.max(axis=0) >= _OUTSIDE))
    outer = np.flatnonzero(below.min(axis=0) <= 1 - _OUTSIDE)
    low = float(scores.edges[inner[0] - 1 if len(inner) and inner[0] else 0])
    high = float(scores.edges[min(outer[-1] + 1, len(scores.edges) - 1) if len(outer) else -1])
    half = max(0.25, 0.06 * (high - low))
    return min(low, cut - half), max(high, cut + half)


def _shares(counts: npt.NDArray[np.int64], bins: Array, edges: Array) -> Array:
    """Return the share of outputs in each bar, if outputs are spread uniformly within each of the `bins`."""
    total = max(1, int(counts.sum()))
    below: Array = np.interp(edges, bins, np.cumsum(counts)[:-1] / total)
    below[0], below[-1] = 0.0, 1.0 if counts.sum() else 0.0
    return np.diff(below)
