"""Plots of results and claims on matplotlib axes, alone or several on one axes, and the document of a claim.

With a label or a colour, or on axes with such a plot, only one line is added for a result, and each claim drawn once.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics import Array
from dpaudit.result.model import AuditResult
from dpaudit.rounding import number, percent_at_least
from dpaudit.text import hint
from dpaudit_reports.blocks import Code, Document, KeyValues, Math, Panel, Text
from dpaudit_reports.blocks import Figure as Panels
from dpaudit_reports.claimed import allowed_epsilon, certified_profile, claimed_number, profile_points
from dpaudit_reports.claimed import label as label_of
from dpaudit_reports.figures import CHANCE, FORBIDDEN, PANEL, WIDTH, panel_svg, style
from dpaudit_reports.figures.evidence import WEALTH, Scores, draw_distributions, draw_evidence, witness_scores
from dpaudit_reports.figures.tradeoff import (
    AXIS_DELTA,
    curve_of,
    draw_profile,
    draw_residual,
    draw_tradeoff,
    fine,
    observed,
    region_of,
    scale_of,
    staircase,
)
from dpaudit_reports.verdicts import title_of

# The colours are those of Okabe and Ito without yellow, which is too light for a line.  Lines also differ by dashes.
LOOKS = (("#000000", "-"), ("#0072B2", "--"), ("#D55E00", "-."), ("#009E73", ":"), ("#CC79A7", (0, (5, 1, 1, 1, 1, 1))))
_Artist = Any  # objects of matplotlib
_Looks = dict[str, _Artist]  # arguments of its methods
_LINE, _CLAIM, _GROUND = "dpaudit-line", "dpaudit-claim", "dpaudit-ground"  # gids of what a plot has drawn


def plot_result(
    result: AuditResult,
    kind: str = "tradeoff",
    ax: Axes | None = None,
    *,
    label: str | None = None,
    color: str | None = None,
    claim: bool = True,
    legend: bool = True,
) -> Axes:
    """Draw one plot of a result, as `result.plot` does."""
    _check(kind, KINDS)
    if ax is None:
        with style():
            return plot_result(result, kind, _axes(), label=label, color=color, claim=claim, legend=legend)
    alone = label is None and color is None and not _own(ax, "")
    if alone:
        _ALONE[kind](ax, result)
        for line in ax.lines:
            line.set_gid(_LINE)
    else:
        name = title_of(result) if label is None else label
        colors = [color for color, _ in LOOKS[1:]]  # the palette without black, which is the claim's
        used = {line.get_color() for line in _own(ax, _LINE)}
        unused = next((color for color in colors if color not in used), colors[0])
        looks: _Looks = {"color": color or unused, "label": name, "gid": _LINE}
        _TOGETHER[kind](ax, result, looks, claim)
    if legend and ax.get_legend_handles_labels()[1]:
        ax.legend(loc="best" if kind != "tradeoff" else "upper right")
    return ax


def plot_claim(
    claim: TradeoffFunction,
    kind: str = "tradeoff",
    ax: Axes | None = None,
    *,
    label: str | None = None,
    color: str | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the trade-off function or the privacy profile of a claim, as `claim.plot` does."""
    _check(kind, CLAIM_KINDS)
    if ax is None:
        with style():
            return plot_claim(claim, kind, _axes(), label=label, color=color, legend=legend)
    drawn = len(_own(ax, _CLAIM))
    own_color, dashes = LOOKS[drawn % len(LOOKS)]
    name = label_of(claim) if label is None else label
    looks: _Looks = {"color": color or own_color, "linestyle": dashes, "label": name, "gid": _CLAIM}
    _CLAIMS[kind](ax, claim, looks)
    if legend:
        ax.legend(loc="best")
    return ax


def plot_tradeoff(result: AuditResult, ax: Axes | None = None) -> Axes:
    """Draw the claim's trade-off function and the errors that the attack reached, and return the axes."""
    return plot_result(result, "tradeoff", ax)


def plot_claims(claims: Sequence[TradeoffFunction]) -> Figure:
    """Draw the trade-off functions and the privacy profiles of claims side by side in a new figure."""
    with style():
        figure = Figure(figsize=(WIDTH, WIDTH / 2), layout="constrained")
        axes = figure.subplots(1, 2)
        for kind, ax in zip(_CLAIMS, axes, strict=True):
            for claim in claims:
                plot_claim(claim, kind, ax, legend=False)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=max(1, min(3, len(names))))
        return figure


def claim_document(claim: TradeoffFunction) -> Document:
    """Return the document of a claim: its parameters, trade-off function and privacy profile."""
    name = label_of(claim)
    rows: list[tuple[str, Text]] = [("claim", (Code(name),)), ("μ", claimed_number(claim.mu()))]
    for delta in (0.0, 1e-6, 1e-3):
        rows.append((f"ε at δ = {number(delta)}", claimed_number(allowed_epsilon(claim, delta))))
    panels = []
    for kind, title, logarithmic in (("tradeoff", "Trade-off function", ""), ("profile", "Privacy profile", "y")):
        draw = partial(plot_claim, claim, kind, legend=False)
        svg = partial(panel_svg, draw, height=2.4, logarithmic=logarithmic)
        panels.append(Panel(svg, alt=f"The {title.lower()} of {name}.", title=title))
    left = "Left: the least type II error at each type I error of an attack. Right: the least "
    caption = left, Math("δ"), " at each ", Math("ε"), "."
    return Document("Claim", name, None, (KeyValues(tuple(rows)), Panels(tuple(panels), caption)), ())


def _check(kind: str, known: tuple[str, ...]) -> None:
    if kind not in known:
        otherwise = f"choose one of {', '.join(known)}"
        raise ValueError(f"unknown plot {kind!r}; {hint(str(kind), known, otherwise)}")


class ShownAxes(Axes):
    """Axes of a figure outside pyplot.  Notebooks call `_repr_png_` on a cell's value to display it."""

    def _repr_png_(self) -> bytes:
        target = io.BytesIO()
        self.figure.savefig(target, format="png", dpi=144)  # type: ignore[union-attr]
        return target.getvalue()


def _axes() -> Axes:
    return Figure(figsize=(1.3 * PANEL, PANEL), layout="constrained").add_subplot(axes_class=ShownAxes)


def _own(ax: Axes, gid: str) -> list[_Artist]:
    return [line for line in ax.lines if str(line.get_gid() or "").startswith(gid or "dpaudit-")]


# --- one result alone: everything that a report shows


def _alone_profile(ax: Axes, result: AuditResult) -> None:
    ax.set_yscale("log")
    draw_profile(ax, result)


def _known_scores(result: AuditResult) -> Scores:
    if (scores := witness_scores(result)) is None:
        raise ValueError(f"the result {result.name!r} holds no scores of a witness, so its scores cannot be drawn")
    return scores


_ALONE: dict[str, Callable[[Axes, AuditResult], None]] = {
    "tradeoff": draw_tradeoff,
    "profile": _alone_profile,
    "evidence": draw_evidence,
    "scores": lambda ax, result: draw_distributions(ax, _known_scores(result)),
    "residual": draw_residual,
}


# --- several results on one axes


def _tradeoff(ax: Axes, result: AuditResult, looks: _Looks, claim: bool) -> None:
    if claim:
        _claim_once(ax, result.claim, _claim_curve)
    points = observed(result)
    if len(points):
        ax.plot(*fine(points)[:, :2].T, linewidth=1.6, **looks)
    point, _ = region_of(result)
    if len(point):
        face = looks["color"] if result.violated else "white"
        ax.plot(*point.T, "D", color=face, mec=looks["color"], clip_on=False, label="_witness")
    _unit_axes(ax)


def _profile(ax: Axes, result: AuditResult, looks: _Looks, claim: bool) -> None:
    if claim:
        _claim_once(ax, result.claim, _claim_profile)
    ax.plot(*staircase(certified_profile(result) or [(0.0, 0.0)]), linewidth=1.4, **looks)
    _profile_axes(ax)


def _evidence(ax: Axes, result: AuditResult, looks: _Looks, claim: bool) -> None:
    threshold = -math.log10(max(1 - result.confidence, 1e-300))
    known = ~np.isnan(result.history.log_e)
    wealth = np.clip(result.history.log_e[known] / math.log(10), WEALTH[0], max(WEALTH[1], threshold + 1))
    ax.plot(result.history.trials[known], wealth, **looks)
    if claim and not any(line.get_gid() == f"{_CLAIM}-{threshold:.9g}" for line in ax.lines):
        words = f"refuted at {percent_at_least(result.confidence)}"
        ax.axhline(threshold, color="black", linestyle="--", linewidth=1, label=words, gid=f"{_CLAIM}-{threshold:.9g}")
    ax.set(xlabel="runs per dataset", ylabel="wealth, power of ten")


def _scores(ax: Axes, result: AuditResult, looks: _Looks, claim: bool) -> None:
    scores = _known_scores(result)
    for counts, dashes, side in ((scores.counts0, "-", "d0"), (scores.counts1, "--", "d1")):
        above = 1 - np.cumsum(counts)[:-1] / max(1, int(counts.sum()))
        ax.plot(scores.edges, above, linestyle=dashes, **{**looks, "label": f"{looks['label']}, {side}"})
    inside = [edge for line in _own(ax, _LINE) for edge, y in zip(*line.get_data(), strict=True) if 0.01 < y < 0.99]
    if inside:
        ax.set_xlim(min(inside), max(inside))
    ax.set(ylim=(0, 1), xlabel="estimated log-likelihood ratio", ylabel="share of outputs above")


def _residual(ax: Axes, result: AuditResult, looks: _Looks, claim: bool) -> None:
    scale = np.array(scale_of(result))
    if _own(ax, _GROUND):
        scale = np.array([min(scale[0], ax.get_ylim()[0]), max(scale[1], ax.get_ylim()[1])])
    elif claim:
        ax.axhspan(0, 100, color=FORBIDDEN, linewidth=0)
        ax.axhline(0, color="black", linewidth=1, label="claim", gid=_GROUND)
    curve = curve_of(result)
    ax.plot(*curve.T, linewidth=1.5, **looks)
    ax.set(xlim=(0, 1), ylim=tuple(scale), xlabel="type I error α", ylabel="points above claim")


_TOGETHER = {
    "tradeoff": _tradeoff,
    "profile": _profile,
    "evidence": _evidence,
    "scores": _scores,
    "residual": _residual,
}


# --- claims


def _claim_once(ax: Axes, claim: TradeoffFunction, draw: _Artist) -> None:
    name = label_of(claim)
    gid = f"{_CLAIM}-{name}"
    if not any(line.get_gid() == gid for line in ax.lines):
        dashes = LOOKS[len(_own(ax, _CLAIM)) % len(LOOKS)][1]
        draw(ax, claim, {"color": "black", "linestyle": dashes, "label": name, "gid": gid, "linewidth": 1.0})


def _claim_curve(ax: Axes, claim: TradeoffFunction, looks: _Looks) -> None:
    ends: Array = np.geomspace(1e-9, 0.5, 300)
    alpha = np.unique(np.concatenate([[0.0], ends, 1 - ends, [1.0]]))
    ax.plot(alpha, claim.beta(alpha), **looks)
    if not _own(ax, _GROUND):
        ax.plot([0, 1], [1, 0], ":", color=CHANCE, linewidth=0.9, label="_guessing", gid=_GROUND)
    _unit_axes(ax)


def _claim_profile(ax: Axes, claim: TradeoffFunction, looks: _Looks) -> None:
    level = float(claim.delta(np.inf))
    epsilon = claim.epsilon(min(max(AXIS_DELTA, 1.01 * level), 1.0))
    reach = 1.1 * min(epsilon, 50.0) if 0 < epsilon < math.inf else 1.0
    ax.plot(*profile_points(claim, reach, AXIS_DELTA / 1000), **looks)
    _profile_axes(ax)


_CLAIMS = {"tradeoff": _claim_curve, "profile": _claim_profile}


def _unit_axes(ax: Axes) -> None:
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="type I error α", ylabel="type II error β")


def _profile_axes(ax: Axes) -> None:
    reach = max(float(np.max(line.get_xdata())) for line in ax.lines)
    ax.set(yscale="log", ylim=(AXIS_DELTA, 1), xlim=(0, reach or 1), xlabel="ε", ylabel="δ(ε)")


KINDS, CLAIM_KINDS = tuple(_ALONE), tuple(_CLAIMS)
