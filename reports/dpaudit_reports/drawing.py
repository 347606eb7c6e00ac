"""Functions that draw on matplotlib axes.  Importing this module does not load matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpaudit.claims import TradeoffFunction
    from dpaudit.result.model import AuditResult


def plot_tradeoff(result: AuditResult, ax: Axes | None = None) -> Axes:
    """Draw the claim's trade-off function and the errors that the attack reached.

    Args:
        result: The result of an audit.
        ax: The axes to draw on.  If None, a new figure is made.

    Returns:
        The axes.
    """
    return plot_result(result, "tradeoff", ax)


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
    """Draw one plot of a result, as `result.plot` does.

    Args:
        result: The result of an audit.
        kind: "tradeoff", "profile", "evidence", "scores" or "residual".
        ax: The axes to draw on.  If None, a new figure is made.
        label: Name of the result in the legend.
        color: Colour of the line.
        claim: Whether to draw the claim, if several results share the axes.
        legend: Whether to draw a legend.

    Raises:
        ValueError: If there is no such kind, or if the result holds no scores.
    """
    from dpaudit_reports.plots import plot_result

    return plot_result(result, kind, ax, label=label, color=color, claim=claim, legend=legend)


def plot_claim(
    claim: TradeoffFunction,
    kind: str = "tradeoff",
    ax: Axes | None = None,
    *,
    label: str | None = None,
    color: str | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the trade-off function or the privacy profile of a claim, as `claim.plot` does.

    Args:
        claim: The claim.
        kind: "tradeoff" or "profile".
        ax: The axes to draw on.  If None, a new figure is made.
        label: Name of the claim in the legend.
        color: Colour of the line.
        legend: Whether to draw a legend.

    Raises:
        ValueError: If there is no such kind.
    """
    from dpaudit_reports.plots import plot_claim

    return plot_claim(claim, kind, ax, label=label, color=color, legend=legend)


def plot_claims(claims: Sequence[TradeoffFunction]) -> Figure:
    """Draw the trade-off functions and the privacy profiles of claims side by side in a new figure."""
    from dpaudit_reports.claim_plots import claims_figure

    return claims_figure(claims)
