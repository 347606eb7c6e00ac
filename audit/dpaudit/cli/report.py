"""`dpaudit report`: combines results in one document, or prints them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.read_results import read_results
from dpaudit.cli.terminal import waiting
from dpaudit.cli.values import check_choice, check_writable, completing
from dpaudit.text.papers import PAPERS


def report(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT.json", help="Results written by `dpaudit run`, or folders that hold them."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Document to write: .pdf, .html or .md.  Default: print."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Give each of several audits all sections, on about three pages each.")
    ] = False,
    paper: Annotated[
        str,
        typer.Option(metavar="|".join(PAPERS), autocompletion=completing(PAPERS), help="Size of the pages of a PDF."),
    ] = PAPERS[0],
) -> None:
    """Combine one or more results in one document, or print them.

    A result that contradicts its own counts is refused.  A result of another version of dpaudit gets a warning if its
    p-value cannot be recomputed by this version.
    """
    check_choice("--paper", paper, PAPERS)
    if output is not None:
        check_writable("--output", output)
    with waiting("loading", shown=True):
        from dpaudit_reports import print_report, write_report

    results = [result for _, result in read_results(files)]
    try:
        if output is None:
            print_report(results, full=full)
        else:
            write_report(results, output, full=full, paper=paper)
    except (ValueError, OSError, ImportError) as error:
        refuse(str(error))
