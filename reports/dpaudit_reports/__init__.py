"""Figures and documents from the results of audits.

`sections` turn a result into blocks, `document` puts those of one or many results in order, and a writer shows them:
`pdf`, `html`, `markdown` or `terminal`.  Importing this package loads neither matplotlib nor Typst.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from dpaudit.result.atomic_write import write_whole
from dpaudit.text import PAPERS

if TYPE_CHECKING:
    from dpaudit.claims import TradeoffFunction
    from dpaudit.result.command_outcomes import Sweep
    from dpaudit.result.model import AuditResult
    from dpaudit_reports.blocks import Document
    from dpaudit_reports.formats import Run, Screen
    from dpaudit_reports.html import Shown
    from dpaudit_reports.plots import plot_claim, plot_claims, plot_result, plot_tradeoff
    from dpaudit_reports.sections import Section

    Reported: TypeAlias = Sequence[AuditResult] | Document
    """Results, or a document such as the one that `comparison` returns."""

__all__ = [
    "claim_fragment",
    "comparison",
    "plot_claim",
    "plot_claims",
    "plot_result",
    "plot_tradeoff",
    "print_report",
    "show",
    "sweep_report",
    "to_fragment",
    "to_html",
    "to_markdown",
    "to_pdf",
    "write_html",
    "write_markdown",
    "write_pdf",
    "write_report",
    "write_site",
]


FORMATS = ("table", "json", "csv", "github", "sarif", "junit")
"""What `rendered` writes: a table for people, and formats for programs."""

_PLOTS = ("plot_claim", "plot_claims", "plot_result", "plot_tradeoff")


def __getattr__(name: str) -> object:
    """Import a function that draws, and matplotlib with it, at its first use."""
    if name not in _PLOTS:
        raise AttributeError(f"module 'dpaudit_reports' has no attribute {name!r}")
    return getattr(importlib.import_module("dpaudit_reports.plots"), name)


def comparison(
    audits: Mapping[str, Mapping[str, AuditResult]],
    missing: Mapping[tuple[str, str], str] = MappingProxyType({}),
    *,
    full: bool = False,
) -> Document:
    """Return a document that shows audits of several versions side by side; ValueError without any result.

    Args:
        audits: The results by audit and version.  A version may lack audits that could not be run.
        missing: The reason why an audit has no result on a version, by audit and version.
        full: Whether a part with all sections follows for each audit and version.
    """
    from dpaudit_reports.document import comparison

    return comparison(audits, missing, full=full)


def sweep_report(sweep: Sweep) -> Document:
    """Return a document about a sweep: what was refuted, and a map of constructors by parameters."""
    from dpaudit_reports.command_outcomes import sweep_document

    return sweep_document(sweep)


def write_report(reported: Reported, path: str | PathLike[str], *, full: bool = False, paper: str = PAPERS[0]) -> None:
    """Write a report in the format that the file name's ending selects.  Arguments and errors are those of all formats.

    Args:
        reported: Results, or a comparison.
        path: The file; the name ends in .pdf, .html, .htm or .md.
        full: Whether each of several audits has all sections.
        paper: The size of the pages of a PDF, "a4" or "letter".

    Raises:
        ValueError: If the name has another ending, if there is no result, or if there is no such paper.
    """
    match Path(fspath(path)).suffix.lower():
        case ".pdf":
            write_pdf(reported, path, full=full, paper=paper)
        case ".html" | ".htm":
            write_html(reported, path, full=full)
        case ".md":
            write_markdown(reported, path, full=full)
        case _:
            raise ValueError(f"the name of a report must end in .pdf, .html, .htm or .md, got {fspath(path)}")


def write_pdf(reported: Reported, path: str | PathLike[str], *, full: bool = False, paper: str = PAPERS[0]) -> None:
    """Write the PDF that `to_pdf` returns."""
    write_whole(path, to_pdf(reported, full=full, paper=paper))


def write_html(reported: Reported, path: str | PathLike[str], *, full: bool = False) -> None:
    """Write the page that `to_html` returns."""
    write_whole(path, to_html(reported, full=full))


def write_markdown(reported: Reported, path: str | PathLike[str], *, full: bool = False) -> None:
    """Write the short report that `to_markdown` returns."""
    write_whole(path, to_markdown(reported, full=full))


def write_site(
    results: Sequence[AuditResult], folder: str | PathLike[str], *, title: str | None = None, url: str = ""
) -> None:
    """Write static pages: an index of results that sorts and filters, and a page and a badge for each result.

    Results whose numbers this version of dpaudit does not confirm are marked.  Pages of an earlier call whose results
    are missing now are removed; no other file of the folder is changed.

    Args:
        folder: The folder, which is created if it does not exist.
        title: The title of the index; None for "Privacy audits".
        url: The address at which the folder will be published, for the links of the JSON feed; "" if it is not known.

    Raises:
        ValueError: If there is no result, a result contradicts itself, or a file of somebody else has the name of a
            page.
        OSError: If a file cannot be written.
    """
    from dpaudit_reports.site import TITLE, digest_of, write

    digests = list(map(digest_of, results))
    write(results, digests, Path(folder), title=TITLE if title is None else title, url=url)


def to_pdf(reported: Reported, *, full: bool = False, paper: str = PAPERS[0]) -> bytes:
    """Return the report of one or many audits as a PDF.

    A report of several audits has an overview, a third of a page for each audit, and the details at the end.  The same
    results give the same bytes, unless a name needs a font of the system.
    """
    from dpaudit_reports.pdf import compile_pdf

    return compile_pdf(_document(reported, full=full), paper)


def to_html(reported: Reported, *, full: bool = False) -> str:
    """Return the report as one HTML page without scripts and external files, in the screen's light or dark mode."""
    from dpaudit_reports.html import page

    return page(_document(reported, full=full))


def to_fragment(reported: Reported) -> str:
    """Return a short report with the trade-off plot, as HTML for another page, such as a notebook."""
    from dpaudit_reports.html import fragment
    from dpaudit_reports.sections import BRIEF

    return fragment(_document(reported, BRIEF))


def claim_fragment(claim: TradeoffFunction) -> str:
    """Return a claim's parameters, trade-off function and privacy profile, as HTML for another page."""
    from dpaudit_reports.html import fragment
    from dpaudit_reports.plots import claim_document

    return fragment(claim_document(claim))


def show(reported: Reported) -> Shown:
    """Return an object that a notebook displays as a report of several results, or as a comparison."""
    from dpaudit_reports.html import Shown

    return Shown(_document(reported))


def to_markdown(reported: Reported, *, full: bool = False) -> str:
    """Return a short report in Markdown, without figures, for a comment on a pull request.

    It has at most 60,000 characters, and names in it cannot break tables, mention people or create links.
    """
    from dpaudit_reports.markdown import markdown
    from dpaudit_reports.sections import BRIEF

    return markdown(_document(reported, BRIEF, full=full))


def print_report(reported: Reported, *, full: bool = False) -> None:
    """Print the report to stdout at the width of the terminal, with words for figures, and ASCII if stdout needs it."""
    import sys

    from rich.console import Console

    from dpaudit_reports.formats import Screen
    from dpaudit_reports.terminal import document_text

    found, encoding = Console(), getattr(sys.stdout, "encoding", None) or "utf-8"
    screen = Screen(width=found.width, encoding=encoding, terminal=found.is_terminal)
    sys.stdout.write(document_text(_document(reported, full=full), screen))


def rendered(name: str, run: Run, screen: Screen) -> str:
    """Return the results of a command in one of the `FORMATS`."""
    module = importlib.import_module(f"dpaudit_reports.{'terminal' if name == 'table' else 'formats'}")
    text: str = getattr(module, f"{name}_text")(run, screen)
    return text


def _document(reported: Reported, sections: Sequence[Section] | None = None, *, full: bool = False) -> Document:
    from dpaudit_reports.blocks import Document
    from dpaudit_reports.document import document
    from dpaudit_reports.sections import SECTIONS

    if isinstance(reported, Document):
        return reported
    return document(reported, SECTIONS if sections is None else sections, full=full)
