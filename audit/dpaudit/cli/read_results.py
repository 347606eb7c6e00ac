"""Reads result files and folders of result files, and refuses results whose verdict their counts do not give."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpaudit.cli.ending import refuse
from dpaudit.cli.options import file_meant

if TYPE_CHECKING:
    from dpaudit.result.model import AuditResult

BISECTION = "bisection.json"
"""The file of `dpaudit bisect` in the folder of the results; it is no result."""

SWEEP = "sweep.json"
SWEEP_PDF = "sweep.pdf"
"""The file of `dpaudit sweep` in the folder of the results; it is no result."""


def read_results(given: Sequence[Path]) -> list[tuple[Path, AuditResult]]:
    """Return the results in files and folders, or end the command if a file is not a sound result."""
    from dpaudit.result.model import AuditResult

    found = []
    for file in [file for one in given for file in _results_in(one)]:
        try:
            found.append((file, AuditResult.from_json(file)))
        except (ValueError, OSError, ImportError, OverflowError, RecursionError, MemoryError) as error:
            refuse(unreadable(file, error))
    return found


def _results_in(given: Path) -> list[Path]:
    try:
        if not given.is_dir():
            return [given]
        found = sorted(given.glob("*.json"))
        for name, form in ((BISECTION, b'"dpaudit-bisection/'), (SWEEP, b'"dpaudit-sweep/')):
            # an audit may have this name, too
            found = [file for file in found if file.name != name or not file.is_file() or form not in file.read_bytes()]
    except OSError as error:  # for example, the name is too long
        refuse(unreadable(given, error))
    if not found:
        refuse(f"{given}: no result (NAME.json) in this folder; `dpaudit run` writes results")
    return found


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
