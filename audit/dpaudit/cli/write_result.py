"""Completes the result of an audit, writes it to the output folder, and explains why an audit has no result."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from dpaudit.cli.ending import command_line, print_traceback, report_internal_error
from dpaudit.cli.prepare_run import CommandSettings
from dpaudit.cli.terminal import say
from dpaudit.config import PlannedAudit
from dpaudit.mechanisms import MechanismError
from dpaudit.mechanisms.raised import message_of, of_machine, raised
from dpaudit.result.atomic_write import write_placed
from dpaudit.result.files import as_text
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.text.masking import masked


def with_provenance(result: AuditResult, planned: PlannedAudit, promise: Promise) -> AuditResult:
    """Return a result that records its config, its command and the joint guarantee of the command."""
    provenance = replace(
        result.provenance,
        config=planned.file.name,
        folder=planned.file.parent.resolve().as_posix(),
        source=masked(planned.config.source),
        claim_stated_by=planned.claim_stated_by,
        command=command_line(),
        audit=planned.text,
        data_files=planned.data_files or None,
    )
    return replace(result, provenance=promise.recorded(provenance))


def reason_of(error: BaseException, command: CommandSettings) -> tuple[str, bool]:
    """Explain in an exception's handler why an audit has no result, and whether this is an internal error."""
    if isinstance(error, Exception) and not isinstance(error, MechanismError | ValueError) and not of_machine(error):
        return report_internal_error(error, command.output, debug=command.debug), True
    print_traceback(command.debug)
    if isinstance(error, MemoryError):
        return "out of memory", False
    # such as SystemExit, which only foreign code raises here
    return message_of(error) if isinstance(error, Exception) else f"the mechanism raised {raised(error)}", False


def write_result(result: AuditResult, command: CommandSettings) -> Path | None:
    """Write the JSON and the PDF; return the folder of the JSON, or None if it could not be written anywhere."""
    kept = False

    def write_json() -> None:
        write_placed(command.output / f"{result.name}.json", as_text(result.to_dict()))

    try:
        write_json()
        kept = True
        if command.pdf:
            from dpaudit_reports import to_pdf

            write_placed(command.output / f"{result.name}.pdf", to_pdf([result], paper=command.paper))
    except KeyboardInterrupt:
        if not kept:  # an interruption must not discard the measurement
            with contextlib.suppress(Exception):
                write_json()
        raise
    except Exception as error:
        print_traceback(command.debug)
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {message_of(error)}"
        if kept:
            say(f"the PDF of {result.name} could not be written: {reason}; the JSON is in {command.shown}")
            return command.output
        rescued = _rescued(result)
        where = "" if rescued is None else f"; the JSON is in {rescued}"
        say(f"the result of {result.name} could not be written to {command.shown}: {reason}{where}")
        return None if rescued is None else rescued.parent
    return command.output


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
