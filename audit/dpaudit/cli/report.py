"""`dpaudit report`: write one document for many results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.terminal import say, waiting


def report(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT.json...", help="Results that `dpaudit run` wrote, or folders of them."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The document to write: .pdf, .html or .md.  Else: print."),
    ] = None,
) -> None:
    """Make one document of one or many results, or print it.

    Results that are not what their own counts give are refused.  A result of another version of dpaudit whose p-value
    this one does not compute from its counts gets a warning in the report.
    """
    with waiting("loading", shown=True):
        from dataclasses import replace

        from dpaudit.engine.replay import contradictions, unchecked
        from dpaudit.result.model import AuditResult
        from dpaudit_reports import print_report, write_report

    chosen = [file for given in files for file in _results_in(given)]
    results, wrong = [], []
    for file in chosen:
        try:
            results.append(AuditResult.from_json(file))
            wrong += [f"{file}: {words}" for words in contradictions(results[-1])]
        except (ValueError, OSError, ImportError, OverflowError, RecursionError, MemoryError) as error:
            refuse(_unreadable(file, error))
    if wrong:
        refuse("\n".join(["the results contradict themselves, so they were changed:", *wrong]))
    try:
        for i, words in enumerate(map(unchecked, results)):
            if words:
                say(f"{chosen[i]}: {words}")
                results[i] = replace(results[i], warnings=(words, *results[i].warnings))
        if output is None:
            print_report(results)
        else:
            write_report(results, output)
    except (ValueError, OSError, ImportError) as error:
        refuse(str(error))


def _results_in(given: Path) -> list[Path]:
    """The file, or all results in a folder."""
    if not given.is_dir():
        return [given]
    found = sorted(given.glob("*.json"))
    if not found:
        refuse(f"{given}: there is no result (NAME.json) in this folder")
    return found


def _unreadable(file: Path, error: BaseException) -> str:
    """Why a file is no result that can be used, and what to do."""
    if file.suffix in (".yaml", ".yml"):
        return f"{file} is a config, not a result; run it first: dpaudit run {file}"
    if isinstance(error, RecursionError | MemoryError):
        return f"{file}: is nested too deeply or too large"
    text = str(error)
    return text if str(file) in text else f"{file}: {text}"
