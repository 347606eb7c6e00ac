"""A document about one claim: its parameters, its trade-off function and its privacy profile."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dpaudit.claims import TradeoffFunction
from dpaudit_reports.blocks import Code, Document, Figure, KeyValues, Math, Panel, Text
from dpaudit_reports.bounds import allowed_epsilon
from dpaudit_reports.claim_plots import draw_curves, draw_profiles
from dpaudit_reports.claimed import claimed_number, label
from dpaudit_reports.figures.canvas import panel_svg
from dpaudit_reports.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DELTAS = (0.0, 1e-6, 1e-3)
_HEIGHT = 2.4


def claim_document(claim: TradeoffFunction) -> Document:
    """Return the document of a claim."""
    rows: list[tuple[str, Text]] = [("claim", (Code(label(claim)),)), ("μ", claimed_number(claim.mu()))]
    rows += [(f"ε at δ = {number(delta)}", claimed_number(allowed_epsilon(claim, delta))) for delta in _DELTAS]

    def curve(ax: Axes) -> None:
        draw_curves(ax, [claim])

    def profile(ax: Axes) -> None:
        draw_profiles(ax, [claim])

    words = f"The trade-off function of {label(claim)}.", f"The privacy profile of {label(claim)}."
    panels = (
        Panel(partial(panel_svg, curve, height=_HEIGHT), alt=words[0], title="Trade-off function"),
        Panel(partial(panel_svg, profile, height=_HEIGHT, logarithmic="y"), alt=words[1], title="Privacy profile"),
    )
    caption = (
        "Left: the least type II error at each type I error of an attack. Right: the least ",
        Math("δ"),
        " at each ",
        Math("ε"),
        ".",
    )
    return Document("Claim", label(claim), None, (KeyValues(tuple(rows)), Figure(panels, caption)), ())
