"""Figures and documents from the results of audits.

A report is made in three steps, each in its own place: `sections` turn a result into blocks (what is
said), `document` puts the blocks of one or many results in order, `pdf` sets a document on pages.
Importing this package loads neither matplotlib nor Typst.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpaudit.claims import TradeoffFunction
    from dpaudit.result import AuditResult

__all__ = ["plot_claims", "plot_tradeoff", "write_pdf"]


def write_pdf(results: Sequence[AuditResult], path: str | PathLike[str]) -> None:
    """Write the report of one or many audits to `path`; of several, a summary comes first.

    The same results give the same bytes.  ValueError if there are none.
    """
    from dpaudit_reports.document import document
    from dpaudit_reports.pdf import compile_pdf

    pdf = compile_pdf(document(results))
    with open(path, "wb") as file:  # only now: a report that fails leaves no empty file
        file.write(pdf)


def plot_tradeoff(result: AuditResult, ax: Axes | None = None) -> Axes:
    """Draw the claim's trade-off function and what the attack reached, on `ax` or on a new figure."""
    from dpaudit_reports.figures import plot_tradeoff

    return plot_tradeoff(result, ax)


def plot_claims(claims: Sequence[TradeoffFunction]) -> Figure:
    """Draw the trade-off functions and the privacy profiles of claims, side by side, as a new figure."""
    from dpaudit_reports.claim_plots import claims_figure

    return claims_figure(claims)
