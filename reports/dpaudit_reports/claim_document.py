"""Plots of claims, and a document about one claim: its parameters, trade-off function and privacy profile."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dpaudit.claims import TradeoffFunction
from dpaudit.text.rounding import number
from dpaudit_reports.blocks import Code, Document, Figure, KeyValues, Math, Panel, Text
from dpaudit_reports.claimed import allowed_epsilon, claimed_number, label, profile_points
from dpaudit_reports.figures.canvas import WIDTH, panel_svg, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# The colours are those of Okabe and Ito without yellow, which is too light for a line.  Lines also differ by dashes.
LOOKS = (
    ("#000000", "-"),
    ("#0072B2", "--"),
    ("#D55E00", "-."),
    ("#009E73", ":"),
    ("#CC79A7", (0, (5, 1, 1, 1, 1, 1))),
)
_MIN_DELTA = 1e-12  # smallest delta on the axis; claims rarely state a smaller delta


def claims_figure(claims: Sequence[TradeoffFunction]) -> Drawing:
    """Return a figure with the trade-off functions on the left and the privacy profiles on the right."""
    with style():
        figure = Drawing(figsize=(WIDTH, WIDTH / 2), layout="constrained")
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
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel=r"type I error $\alpha$", ylabel=r"type II error $f(\alpha)$")


def draw_profiles(ax: Axes, claims: Sequence[TradeoffFunction]) -> None:
    """Draw the privacy profiles."""
    reach = max((_reach(claim) for claim in claims), default=1.0)
    for claim, (color, dashes) in zip(claims, cycle(LOOKS)):
        epsilon, delta = profile_points(claim, reach, _MIN_DELTA / 10)
        ax.plot(epsilon, delta, color=color, linestyle=dashes, label=label(claim))
    ax.set(
        yscale="log", xlim=(0, reach), ylim=(_MIN_DELTA, 1), xlabel=r"$\varepsilon$", ylabel=r"$\delta(\varepsilon)$"
    )


def _reach(claim: TradeoffFunction) -> float:
    epsilon = claim.epsilon(max(10 * _MIN_DELTA, 1.01 * float(claim.delta(np.inf))))
    return 1.1 * epsilon if 0 < epsilon < np.inf else 1.0


def claim_document(claim: TradeoffFunction) -> Document:
    """Return the document of a claim."""
    rows: list[tuple[str, Text]] = [("claim", (Code(label(claim)),)), ("μ", claimed_number(claim.mu()))]
    rows += [
        (f"ε at δ = {number(delta)}", claimed_number(allowed_epsilon(claim, delta))) for delta in (0.0, 1e-6, 1e-3)
    ]

    words = f"The trade-off function of {label(claim)}.", f"The privacy profile of {label(claim)}."
    panels = (
        Panel(
            partial(panel_svg, partial(draw_curves, claims=[claim]), height=2.4),
            alt=words[0],
            title="Trade-off function",
        ),
        Panel(
            partial(panel_svg, partial(draw_profiles, claims=[claim]), height=2.4, logarithmic="y"),
            alt=words[1],
            title="Privacy profile",
        ),
    )
    left = "Left: the least type II error at each type I error of an attack. Right: the least "
    caption = left, Math("δ"), " at each ", Math("ε"), "."
    return Document("Claim", label(claim), None, (KeyValues(tuple(rows)), Figure(panels, caption)), ())
