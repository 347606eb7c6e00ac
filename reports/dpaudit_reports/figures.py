"""Figures of a result, drawn with matplotlib's objects: no state that others could see or change."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ticker import FuncFormatter, MaxNLocator

from dpaudit.claims import Array
from dpaudit.result import AuditResult

WIDTH = 6.69  # inches: the text width of an A4 page with margins of 20 mm

# Okabe-Ito; every curve differs from the others by its line or marker as well
_CLAIM, _ATTACK, _WITNESS, _FORBIDDEN, _CHANCE = "#000000", "#0072B2", "#D55E00", "#e3e3e3", "#9a9a9a"

# Fixed margins: the figures of a page line up, and measuring every label would take as long as drawing.
_SIDES = {"left": 0.085, "right": 0.97}

# Wealth beyond these is drawn on the edge: nothing more is to be learned from it.
_LEAST_LOG10_E, _MOST_LOG10_E = -6.0, 12.0


def plot_tradeoff(result: AuditResult, ax: Axes | None = None) -> Axes:
    """The trade-off plot on linear axes, with its legend, on `ax` or on a new figure."""
    if ax is None:
        with style():
            figure = Figure(figsize=(WIDTH / 2, WIDTH / 2), layout="constrained")
            return plot_tradeoff(result, figure.add_subplot())
    _draw_tradeoff(ax, result)
    ax.legend(loc="upper right")
    return ax


def tradeoff_svg(result: AuditResult) -> str:
    """The trade-off plot, linear and log-log, side by side."""
    with style():
        figure = Figure(figsize=(WIDTH, 2.95))
        linear, logarithmic = figure.subplots(1, 2)
        _draw_tradeoff(linear, result)
        _draw_tradeoff(logarithmic, result, floor=_floor(result))
        figure.subplots_adjust(**_SIDES, bottom=0.135, top=0.875, wspace=0.24)
        figure.legend(*linear.get_legend_handles_labels(), loc="upper center", ncols=6, columnspacing=1.2)
        return _svg(figure)


def evidence_svg(result: AuditResult) -> str:
    """The wealth against the number of trials, with the threshold that refutes the claim."""
    with style():
        figure = Figure(figsize=(WIDTH, 1.75))
        _draw_evidence(figure.subplots(), result)
        figure.subplots_adjust(**_SIDES, bottom=0.23, top=0.97)
        return _svg(figure)


def _draw_tradeoff(ax: Axes, result: AuditResult, *, floor: float | None = None) -> None:
    """Log-log down to `floor` if there is one, else linear."""
    low = 0.0 if floor is None else floor
    ends = np.geomspace(1e-9, 0.5, 300)
    alpha = np.unique(np.concatenate([[0.0], ends, 1 - ends, [1.0]]))
    claimed = np.maximum(result.claim.beta(alpha), low)
    chance = np.maximum(1 - alpha, low)
    alpha = np.maximum(alpha, low)
    # thin and on top, so that an attack's curve that follows it shows on both sides
    ax.plot(alpha, claimed, color=_CLAIM, linewidth=1.0, zorder=2.5, label="claim")
    ax.fill_between(alpha, low, claimed, color=_FORBIDDEN, linewidth=0, label="forbidden by it")
    _draw_curve(ax, result, low)
    _draw_witness(ax, result, low)
    ax.plot(alpha, chance, ":", color=_CHANCE, linewidth=0.9, label="guessing")
    if floor is not None:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.minorticks_off()
    ax.set_xlim(low, 1)
    ax.set_ylim(low, 1)
    ax.set_xlabel(r"type I error $\alpha$")
    ax.set_ylabel(r"type II error $\beta$")


def _draw_curve(ax: Axes, result: AuditResult, low: float) -> None:
    curve = result.curve
    known = np.isfinite(curve.alpha) & np.isfinite(curve.beta) & np.isfinite(curve.beta_upper)
    if not known.any():
        return
    points = np.column_stack([curve.alpha, curve.beta, curve.beta_upper])[known]
    alpha, beta, upper = np.maximum(_fine(points), low).T
    ax.fill_between(alpha, beta, upper, color=_ATTACK, alpha=0.13, linewidth=0)
    ax.plot(alpha, beta, color=_ATTACK, linewidth=1.6, label="attack, observed")
    ax.plot(
        alpha,
        upper,
        "--",
        color=_ATTACK,
        linewidth=1.0,
        label=f"upper bound ({100 * result.confidence:.6g} %)",
    )


def _draw_witness(ax: Axes, result: AuditResult, low: float) -> None:
    """A diamond at the witness, tied to what the claim promises there."""
    found = result.witness
    if found is None or not (math.isfinite(found.alpha) and math.isfinite(found.beta)):
        return
    alpha, beta, claimed = (max(rate, low) for rate in (found.alpha, found.beta, found.claimed_beta))
    if math.isfinite(claimed):
        ax.plot([alpha, alpha], [beta, claimed], color=_WITNESS, linewidth=1.0)
    ax.plot(alpha, beta, "D", color=_WITNESS, mec="white", mew=0.6, clip_on=False, label="witness")


def _draw_evidence(ax: Axes, result: AuditResult) -> None:
    threshold = -math.log10(max(1 - result.confidence, 1e-300))
    known = ~np.isnan(result.history.log_e)
    trials = result.history.trials[known]
    log10_e = result.history.log_e[known] / math.log(10)
    grown = np.clip(log10_e, _LEAST_LOG10_E, max(_MOST_LOG10_E, threshold + 1))
    ax.axhline(0, color=_CHANCE, linewidth=0.9, linestyle=":")
    ax.axhline(threshold, color=_WITNESS, linewidth=1.1, linestyle="--")
    ax.plot(trials, grown, color=_ATTACK, marker="." if trials.size < 30 else "")
    ax.annotate(
        f"claim refuted at {_wealth(threshold)}",
        (0, threshold),
        xycoords=("axes fraction", "data"),
        xytext=(4, 3),
        textcoords="offset points",
        color=_WITNESS,
        fontsize=8.5,
    )
    ax.set_xlim(0, max(1, int(trials.max(initial=1))))
    ax.set_ylim(grown.min(initial=-1.0) - 0.1, max(threshold + 0.8, grown.max(initial=0.0) + 0.3))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(_power_of_ten))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    ax.set_xlabel("runs per dataset")
    ax.set_ylabel("wealth $E$")


def _wealth(log10_e: float) -> str:
    return f"{10**log10_e:,.6g}" if log10_e < 6 else rf"$10^{{{log10_e:.3g}}}$"


def _power_of_ten(exponent: float, _: int | None = None) -> str:
    if exponent == _LEAST_LOG10_E:
        return rf"$\leq 10^{{{exponent:.0f}}}$"
    return {0: "1", 1: "10"}.get(int(exponent), rf"$10^{{{exponent:.0f}}}$")


def _fine(corners: Array) -> Array:
    """A polygon through `corners`, (n, d), with points on its long sides: straight lines bend on log axes."""
    ends = np.geomspace(1e-6, 0.5, 20, endpoint=False)
    share = np.concatenate([[0.0], ends, 1 - ends[::-1]])[:, None]
    sides = [a + share * (b - a) if np.abs(b - a).max() > 0.02 else a for a, b in pairwise(corners)]
    return np.vstack([*sides, corners[-1]])


def _floor(result: AuditResult) -> float:
    """The smallest error worth drawing, a power of ten: events rarer than 3 in all trials go unseen."""
    return float(10.0 ** np.clip(np.floor(np.log10(3 / max(1, result.trials_used))), -6, -2))


@contextmanager
def style() -> Iterator[None]:
    """The look of all figures, for what is drawn inside."""
    _know_packaged_fonts()
    resource = files("dpaudit_reports") / "dpaudit.mplstyle"
    with as_file(resource) as path, matplotlib.style.context(["default", path]):
        yield


@cache
def _know_packaged_fonts() -> None:
    """Add matplotlib's own STIX fonts if its list lacks them.

    The list is kept per user, not per environment: made while another environment was being deleted, it has none.
    """
    if not any(font.name == "STIXGeneral" for font in fontManager.ttflist):
        for path in Path(matplotlib.get_data_path(), "fonts", "ttf").glob("STIX*.ttf"):
            fontManager.addfont(path)


def _svg(figure: Figure) -> str:
    target = io.StringIO()
    figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    return target.getvalue()
