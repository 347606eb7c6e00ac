"""Plots of claims: trade-off functions and privacy profiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.claims import TradeoffFunction
from dpaudit_reports.bounds import profile_points
from dpaudit_reports.claimed import label
from dpaudit_reports.figures.canvas import WIDTH, style

# The colours are those of Okabe and Ito without yellow, which is too light for a line.  Lines also differ by dashes.
LOOKS = (
    ("#000000", "-"),
    ("#0072B2", "--"),
    ("#D55E00", "-."),
    ("#009E73", ":"),
    ("#CC79A7", (0, (5, 1, 1, 1, 1, 1))),
)
_MIN_DELTA = 1e-12  # smallest delta on the axis; claims rarely state a smaller delta


def claims_figure(claims: Sequence[TradeoffFunction]) -> Figure:
    """Return a figure with the trade-off functions on the left and the privacy profiles on the right.

    The vertical axis of the privacy profiles is logarithmic.
    """
    with style():
        figure = Figure(figsize=(WIDTH, WIDTH / 2), layout="constrained")
        curve, profile = figure.subplots(1, 2)
        draw_curves(curve, claims)
        draw_profiles(profile, claims)
        handles, names = curve.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=max(1, min(3, len(names))))
        return figure


def draw_curves(ax: Axes, claims: Sequence[TradeoffFunction]) -> None:
    """Draw the trade-off functions on linear axes."""
    ends = np.geomspace(1e-9, 0.5, 300)
    alpha = np.unique(np.concatenate([[0.0], ends, 1 - ends, [1.0]]))
    for claim, (color, dashes) in zip(claims, cycle(LOOKS)):
        ax.plot(alpha, claim.beta(alpha), color=color, linestyle=dashes, label=label(claim))
    ax.plot([0, 1], [1, 0], ":", color="#9a9a9a", linewidth=0.9)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel(r"type I error $\alpha$")
    ax.set_ylabel(r"type II error $f(\alpha)$")


def draw_profiles(ax: Axes, claims: Sequence[TradeoffFunction]) -> None:
    """Draw the privacy profiles.

    At the right end of the plot, each profile is at most 1e-11 or within 1 % of its limit, unless it is so only at an
    infinite epsilon.
    """
    reach = max((_reach(claim) for claim in claims), default=1.0)
    for claim, (color, dashes) in zip(claims, cycle(LOOKS)):
        epsilon, delta = profile_points(claim, reach, _MIN_DELTA / 10)
        ax.plot(epsilon, delta, color=color, linestyle=dashes, label=label(claim))
    ax.set_yscale("log")
    ax.set_xlim(0, reach)
    ax.set_ylim(_MIN_DELTA, 1)
    ax.set_xlabel(r"$\varepsilon$")
    ax.set_ylabel(r"$\delta(\varepsilon)$")


def _reach(claim: TradeoffFunction) -> float:
    epsilon = claim.epsilon(max(10 * _MIN_DELTA, 1.01 * float(claim.delta(np.inf))))
    return 1.1 * epsilon if 0 < epsilon < np.inf else 1.0
