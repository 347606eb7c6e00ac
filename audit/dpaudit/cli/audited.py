"""Records where a result comes from, and explains why an audit has none."""

from __future__ import annotations

from dataclasses import replace

from dpaudit.cli.internal_errors import command_line, report_internal_error
from dpaudit.cli.prepare_run import CommandSettings, show_traceback
from dpaudit.config import PlannedAudit
from dpaudit.mechanisms import MechanismError
from dpaudit.mechanisms.places import raised
from dpaudit.mechanisms.raised import message_of, of_machine
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
    """Explain why an audit ended without a result, in the handler of the exception.

    Returns:
        The reason, and whether it is an internal error of dpaudit.
    """
    if isinstance(error, Exception) and not isinstance(error, MechanismError | ValueError) and not of_machine(error):
        return report_internal_error(error, command.output, debug=command.debug), True
    show_traceback(command)
    if isinstance(error, MemoryError):
        return "out of memory", False
    # such as SystemExit, which only foreign code raises here
    return message_of(error) if isinstance(error, Exception) else f"the mechanism raised {raised(error)}", False
