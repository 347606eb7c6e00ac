"""Figures and documents from the results of audits.

A report is made in three steps, each in its own place: `sections` turn a result into blocks (what is
said), `document` puts the blocks of one or many results in order, a writer shows a document: `pdf`, `html`,
`markdown`, `terminal`.  Importing this package loads neither matplotlib nor Typst.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dpaudit.result.atomic_write import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpaudit.claims import TradeoffFunction
    from dpaudit.result.model import AuditResult
    from dpaudit_reports.blocks import Document
    from dpaudit_reports.sections import Section

    Reported: TypeAlias = Sequence[AuditResult] | Document

__all__ = [
    "comparison",
    "plot_claims",
    "plot_tradeoff",
    "print_report",
    "to_fragment",
    "to_html",
    "to_markdown",
    "write_html",
    "write_markdown",
    "write_pdf",
    "write_report",
]


def comparison(audits: Mapping[str, Mapping[str, AuditResult]]) -> Document:
    """Audits of several versions side by side, for one of the writers: audit -> version -> result.

    A version may lack audits that could not be run.  ValueError if there is no result at all.
    """
    from dpaudit_reports.document import comparison

    return comparison(audits)


def write_report(reported: Reported, path: str | PathLike[str]) -> None:
    """Write results, or a comparison, in the format that the name says: .pdf, .html or .md.

    ValueError for any other ending, and if there is no result.
    """
    writers = {".pdf": write_pdf, ".html": write_html, ".htm": write_html, ".md": write_markdown}
    ending = Path(fspath(path)).suffix.lower()
    if ending not in writers:
        raise ValueError(f"a report is written to a file ending in .pdf, .html or .md, got {fspath(path)}")
    writers[ending](reported, path)


def write_pdf(reported: Reported, path: str | PathLike[str]) -> None:
    """Write the report of one or many audits to `path`; of several, a summary comes first.

    The same results give the same bytes.  ValueError if there are none.
    """
    from dpaudit_reports.pdf import compile_pdf

    write_whole(path, compile_pdf(_document(reported)))


def write_html(reported: Reported, path: str | PathLike[str]) -> None:
    """Write the same as one HTML file that needs nothing else.  ValueError if there are no results."""
    write_whole(path, to_html(reported))


def write_markdown(reported: Reported, path: str | PathLike[str]) -> None:
    """Write the short form of `to_markdown`.  ValueError if there are no results."""
    write_whole(path, to_markdown(reported))


def to_html(reported: Reported) -> str:
    """The report as one HTML page: no scripts, nothing from outside, light or dark as the screen is."""
    from dpaudit_reports.html import page

    return page(_document(reported))


def to_fragment(reported: Reported) -> str:
    """A short form, with the trade-off plot, as HTML to be put into another page, such as a notebook."""
    from dpaudit_reports.html import fragment
    from dpaudit_reports.sections import BRIEF
    from dpaudit_reports.sections.tradeoff import tradeoff

    return fragment(_document(reported, (BRIEF[0], tradeoff, *BRIEF[1:])))


def to_markdown(reported: Reported) -> str:
    """A short form as Markdown, at most 60,000 characters, for a comment on a pull request: no figures.

    Names that come from outside can neither break its tables nor mention or link anything.
    """
    from dpaudit_reports.markdown import markdown
    from dpaudit_reports.sections import BRIEF

    return markdown(_document(reported, BRIEF))


def print_report(reported: Reported) -> None:
    """Print the report to stdout, as wide as the terminal; figures in words, and ASCII where stdout needs it."""
    import sys

    from rich.console import Console

    from dpaudit.text.encodable import encodable
    from dpaudit_reports.terminal import terminal

    console = Console()
    with console.capture() as printed:
        console.print(*terminal(_document(reported)), sep="\n")
    sys.stdout.write(encodable(printed.get(), getattr(sys.stdout, "encoding", None)))


def plot_tradeoff(result: AuditResult, ax: Axes | None = None) -> Axes:
    """Draw the claim's trade-off function and what the attack reached, on `ax` or on a new figure."""
    from dpaudit_reports.figures.tradeoff import plot_tradeoff

    return plot_tradeoff(result, ax)


def plot_claims(claims: Sequence[TradeoffFunction]) -> Figure:
    """Draw the trade-off functions and the privacy profiles of claims, side by side, as a new figure."""
    from dpaudit_reports.claim_plots import claims_figure

    return claims_figure(claims)


def _document(reported: Reported, sections: Sequence[Section] | None = None) -> Document:
    from dpaudit_reports.blocks import Document
    from dpaudit_reports.document import document
    from dpaudit_reports.sections import SECTIONS

    if isinstance(reported, Document):
        return reported
    return document(reported, SECTIONS if sections is None else sections)
