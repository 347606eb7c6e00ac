"""Draws the wealth of the bets against the claim, and the distributions of the attack's score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array, Integers
from dpaudit.result.base_evidence import dense
from dpaudit.result.evidence import EDGES
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import TrainingRecord
from dpaudit.result.values import beyond
from dpaudit.result.words import words_of
from dpaudit_reports.figures import (
    ATTACK,
    CHANCE,
    CLAIM,
    FORBIDDEN,
    WITNESS,
    WITNESS_WORD,
    amounts,
    panel_svg,
    power_of_ten,
    ticks,
)
from dpaudit_reports.verdicts import why_void

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """The scores of the outputs of the witness's pair, in nats, and the witness's region {score > `cut`}."""

    edges: Array  # (bins - 1,), edges of the bins: bin i counts edges[i - 1] < score <= edges[i]
    counts0: npt.NDArray[np.int64]  # (bins,), counts of outputs of d0
    counts1: npt.NDArray[np.int64]  # (bins,), counts of outputs of d1
    threshold: int  # the last bin outside the region

    @property
    def cut(self) -> float:
        """The score above which an output is in the region, in nats."""
        return float(self.edges[self.threshold])


def witness_scores(result: AuditResult) -> Scores | None:
    """Return the scores of the witness; None if the result has no witness or does not contain its scores."""
    found = result.witness
    if found is None or math.isnan(found.threshold) or not result.evidence.kind.of_pairs:
        return None
    own = [dense(found.scores)] if found.scores else []
    for counts in (*own, *result.evidence.histograms):
        if beyond(counts, found.last_bin) == found.counts:
            return Scores(edges=EDGES, counts0=counts[0], counts1=counts[1], threshold=found.last_bin)
    return None


WEALTH = (-6.0, 12.0)  # powers of ten at which wealth is cut, because its exact value does not matter there
_SIZE = 8.5  # size of the label in points


def draw_evidence(ax: Axes, result: AuditResult) -> None:
    """Draw the wealth on axes."""
    threshold = -math.log10(max(1 - result.confidence, 1e-300))
    known = ~np.isnan(result.history.log_e)
    trials, unit = _trials(result, result.history.trials[known])
    log10_e = result.history.log_e[known] / math.log(10)
    limit = max(WEALTH[1], threshold + 1)
    grown = np.clip(log10_e, WEALTH[0], limit)
    ax.axhline(0, color=CHANCE, linewidth=0.9, linestyle=":")
    if result.bounds_valid:
        ax.axhline(threshold, color=WITNESS, linewidth=1.1, linestyle="--")
    ax.plot(trials, grown, color=ATTACK if result.bounds_valid else CHANCE, marker="." if trials.size < 30 else "")
    most = max(1, int(trials.max(initial=1)))
    low, high = grown.min(initial=-1.0) - 0.1, max(1.15 * threshold + 0.8, grown.max(initial=0.0) + 0.3)
    step = max(1, math.ceil((high - low) / 6))
    exponents = [e for e in range(-900, 901, step) if low <= e <= high]
    beyond_axis = {WEALTH[0]: "≤ ", limit: "≥ "}
    labels = [f"{beyond_axis.get(e, '')}{power_of_ten(e)}" for e in exponents]
    ticks(ax.yaxis, [float(e) for e in exponents], labels)
    amounts(ax.xaxis, 0, most, most=5)
    ax.set(xlim=(0, most), ylim=(low, high), xlabel=unit, ylabel="wealth E")
    if result.bounds_valid:
        wealth = f"{10**threshold:,.6g}" if threshold < 6 else power_of_ten(round(threshold))
        early = bool(np.any(grown[trials < most / 2] > threshold))
        _write(ax, f"claim refuted at {wealth}", threshold, WITNESS_WORD, below=early)
    else:
        _write(ax, f"not valid: {why_void(result)}"[:48], high, CLAIM, below=True)


def _trials(result: AuditResult, trials: Integers) -> tuple[Integers, str]:
    """Return the places of the wealth on the horizontal axis, and their unit."""
    if "{steps}" not in words_of(result.evidence).spent:
        return trials, "runs per dataset"
    return 2 * trials - 1 + (np.diff(trials, prepend=0) == 0), "steps"


def _write(ax: Axes, words: str, line: float, color: str, *, below: bool) -> None:
    """Write words on the left above a horizontal line, or on the right below it, where a late or early curve is not."""
    ax.annotate(
        words,
        (1 if below else 0, line),
        xycoords=("axes fraction", "data"),
        xytext=(-4, -3) if below else (4, 3),
        textcoords="offset points",
        ha="right" if below else "left",
        va="top" if below else "baseline",
        color=color,
        fontsize=_SIZE,
    )


_BARS = 36  # approximate number of bars
_OUTSIDE = 0.002  # maximum share of a dataset's outputs beyond each end; the last bars include these outputs


def draw_distributions(ax: Axes, scores: Scores) -> None:
    """Draw the scores of both datasets and the region on axes."""
    cut = scores.cut
    low, high = _range(scores, cut)
    width = (high - low) / _BARS
    edges = cut + width * np.arange(np.floor((low - cut) / width), np.ceil((high - cut) / width) + 1)
    shares = [_shares(counts, scores.edges, edges) for counts in (scores.counts0, scores.counts1)]
    ax.axvspan(cut, edges[-1], color=FORBIDDEN, linewidth=0, label="region")
    ax.axvline(cut, color=CLAIM, linewidth=0.8)
    histograms(ax, shares, edges, ("d0", "d1"))
    ax.set(xlabel="estimated log-likelihood ratio", ylabel="share of outputs")


def histograms(ax: Axes, shares: Sequence[Array], edges: Array, names: tuple[str, str]) -> None:
    """Draw two histograms, which differ by colour and dashes."""
    top = 1.08 * max(1e-9, *(share.max() for share in shares))
    ax.stairs(shares[0], edges, fill=True, color=ATTACK, alpha=0.25)
    ax.stairs(shares[0], edges, color=ATTACK, linewidth=1.3, label=names[0])
    ax.stairs(shares[1], edges, color=WITNESS, linewidth=1.3, linestyle=(0, (3, 1.2)), label=names[1])
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(0, top)
    amounts(ax.xaxis, edges[0], edges[-1])
    amounts(ax.yaxis, 0, top, most=5)


def training_svg(record: TrainingRecord, without: str, included: str) -> str:
    """Return a panel that shows the share of the scores of trained models in each bar."""

    def draw(ax: Axes) -> None:
        shares = [np.array(side) / max(1, sum(side)) for side in (record.out, record.into)]
        histograms(ax, shares, np.array(record.edges), (without, included))
        ax.set(xlabel="score", ylabel="share of scores")

    return panel_svg(draw, height=1.5, legend=2)


def _range(scores: Scores, cut: float) -> tuple[float, float]:
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
