"""Writes a result as JSON and PDF to the output folder.  If that fails, writes the JSON to a temporary folder."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from dpaudit.cli.prepare_run import CommandSettings, show_traceback
from dpaudit.cli.terminal import say
from dpaudit.mechanisms.raised import message_of
from dpaudit.result.atomic_write import write_placed
from dpaudit.result.files import as_text
from dpaudit.result.model import AuditResult


def write_result(result: AuditResult, command: CommandSettings) -> Path | None:
    """Write the JSON and the PDF of a result.

    Returns:
        The folder that holds the JSON; None if the JSON could not be written anywhere.
    """
    kept = False
    try:
        _write_json(result, command)
        kept = True
        if command.pdf:
            from dpaudit_reports import to_pdf

            write_placed(command.output / f"{result.name}.pdf", to_pdf([result], paper=command.paper))
    except KeyboardInterrupt:
        if not kept:  # an interruption must not discard the measurement
            with contextlib.suppress(Exception):
                _write_json(result, command)
        raise
    except Exception as error:
        show_traceback(command)
        place = command.shown or str(command.output)
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {message_of(error)}"
        if kept:
            say(f"the PDF of {result.name} could not be written: {reason}; the JSON is in {place}")
            return command.output
        rescued = _rescued(result)
        where = "" if rescued is None else f"; the JSON is in {rescued}"
        say(f"the result of {result.name} could not be written to {place}: {reason}{where}")
        return None if rescued is None else rescued.parent
    return command.output


def _write_json(result: AuditResult, command: CommandSettings) -> None:
    write_placed(command.output / f"{result.name}.json", as_text(result.to_dict()))


def _rescued(result: AuditResult) -> Path | None:
    """Write a result to a temporary folder, after the output folder failed."""
    with contextlib.suppress(Exception):
        folder = Path(tempfile.mkdtemp(prefix="dpaudit-"))
        try:
            result.to_json(file := folder / f"{result.name}.json")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return file
    return None
