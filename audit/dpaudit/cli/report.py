"""`dpaudit report`: combines results in one document, or prints them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.terminal import say, waiting
from dpaudit.cli.values import check_writable, file_meant

BISECTION = "bisection.json"
"""The file of `dpaudit bisect` in the folder of the results; it is no result."""

_BEGINNING = 60  # number of bytes at the start of that file that hold its format


def report(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT.json", help="Results written by `dpaudit run`, or folders that hold them."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Document to write: .pdf, .html or .md.  Default: print."),
    ] = None,
) -> None:
    """Combine one or more results in one document, or print them.

    A result that contradicts its own counts is refused.  A result of another version of dpaudit gets a warning if its
    p-value cannot be recomputed by this version.
    """
    if output is not None:
        check_writable("--output", output)
    with waiting("loading", shown=True):
        from dataclasses import replace

        from dpaudit.result.consistency import contradictions, unchecked
        from dpaudit.result.model import AuditResult
        from dpaudit_reports import print_report, write_report

    chosen = [file for given in files for file in _results_in(given)]
    results, wrong = [], []
    for file in chosen:
        try:
            results.append(AuditResult.from_json(file))
            wrong += [f"{file}: {words}" for words in contradictions(results[-1])]
        except (ValueError, OSError, ImportError, OverflowError, RecursionError, MemoryError) as error:
            refuse(unreadable(file, error))
    if wrong:
        refuse("\n".join(["the results contradict themselves, so somebody has changed them:", *wrong]))
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
    """Return the file itself, or all results if a folder is given."""
    try:
        if not given.is_dir():
            return [given]
    except OSError as error:  # for example, the name is too long
        refuse(unreadable(given, error))
    found = sorted(file for file in given.glob("*.json") if not _is_history(file))
    if not found:
        refuse(f"{given}: no result (NAME.json) in this folder; `dpaudit run` writes results")
    return found


def _is_history(file: Path) -> bool:
    """Whether the file is the history that `dpaudit bisect` wrote, and not the result of an audit with this name."""
    try:
        if file.name != BISECTION or not file.is_file():
            return False
        with file.open("rb") as stream:
            return b'"dpaudit-bisection/' in stream.read(_BEGINNING)
    except OSError:
        return False


def unreadable(file: Path, error: BaseException) -> str:
    """Explain why a file cannot be read as a result, and what to do."""
    if file.suffix in (".yaml", ".yml"):
        return f"{file} is a config, not a result; run it first: dpaudit run {file}"
    if os.path.isdir(file):
        results = sorted(file.glob("*.json"))
        return f"{file} is a folder; name a result" + (f", such as {results[0]}" if results else "")
    if isinstance(error, RecursionError | MemoryError):
        return f"{file} is nested too deeply or is too large to read"
    text = str(getattr(error, "strerror", None) or error)
    meant = file_meant(file, (".json",))
    return f"{text if str(file) in text else f'{file}: {text}'}{meant}"
