"""Writes a result as JSON and PDF to the output folder, or as JSON to a temporary folder if that fails."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from pathlib import Path

from dpaudit.cli.prepare_run import CommandSettings, show_traceback
from dpaudit.cli.terminal import say
from dpaudit.mechanisms.protocol import message_of
from dpaudit.result.model import AuditResult


def write_result(result: AuditResult, command: CommandSettings) -> Path | None:
    """Write the JSON and the PDF of a result.

    Returns:
        The folder that holds the JSON; None if it could not be written anywhere.

    Raises:
        KeyboardInterrupt: The only exception.  The JSON is written first.
    """
    kept = False
    try:
        refuse_links(command.output / f"{result.name}.json", command.output / f"{result.name}.pdf")
        result.to_json(command.output / f"{result.name}.json")
        kept = True
        if command.pdf:
            result.to_pdf(command.output / f"{result.name}.pdf")
    except KeyboardInterrupt:
        if not kept:  # an interruption must not discard the measurement
            with contextlib.suppress(Exception):
                result.to_json(command.output / f"{result.name}.json")
        raise
    except Exception as error:
        show_traceback(command)
        place = command.shown or str(command.output)
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {message_of(error)}"
        if kept:
            say(f"the PDF of {result.name} could not be made: {reason}; its JSON is in {place}")
            return command.output
        file = _rescued(result)
        where = "" if file is None else f"; its JSON is in {file}"
        say(f"the result of {result.name} could not be written to {place}: {reason}{where}")
        return None if file is None else file.parent
    return command.output


def _rescued(result: AuditResult) -> Path | None:
    """Write a result to a temporary folder because it could not be written to the output folder."""
    with contextlib.suppress(Exception):
        file = Path(tempfile.mkdtemp(prefix="dpaudit-")) / f"{result.name}.json"
        result.to_json(file)
        return file
    return None


def refuse_links(*files: Path) -> None:
    """Raise OSError if a file is a symbolic link, whose target must not be overwritten, or a pipe, which may block."""
    for file in files:
        if file.is_symlink():
            raise OSError(errno.ELOOP, f"{file.name} is a symbolic link to {file.readlink()}")
        if file.exists() and not file.is_file():
            raise OSError(errno.EINVAL, f"{file.name} is not a regular file")
