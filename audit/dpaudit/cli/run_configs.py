"""Runs the audits of configs one after the other, reports each audit, and writes its result."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpaudit.claims import TradeoffFunction
from dpaudit.cli.ending import command_line
from dpaudit.cli.prepare_run import (
    CommandSettings,
    NotReady,
    check_claims,
    load,
    prepare_folder,
    share_guarantee,
    workers,
)
from dpaudit.cli.progress import ended_line, event_log, log_result, numbered, progress_bar
from dpaudit.cli.terminal import complain, drawn, say, screen
from dpaudit.cli.write_result import reason_of, with_provenance, write_result
from dpaudit.config import PlannedAudit, lock_file
from dpaudit.engine.audit import Progress, audit
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.own_process import exits_refused, own_error_state
from dpaudit.result.atomic_write import remove_placed, write_placed
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.result.values import Verdict
from dpaudit.text.printable import joined
from dpaudit.text.reasons import WarningCode, has_code
from dpaudit.values import Foreign
from dpaudit_reports.formats import rendered
from dpaudit_reports.formats.facts import Audited, Run

Ready = tuple[PlannedAudit, Foreign, TradeoffFunction]
"""An audit with its mechanism and its claim."""


@dataclass(slots=True)
class Outcome:
    """Outcome of the audits of one command."""

    results: list[AuditResult] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # names of audits that have no result in the output folder
    broken: list[str] = field(default_factory=list)  # names of audits that ended in an internal error of dpaudit
    reasons: dict[str, str] = field(default_factory=dict)  # maps the name of an audit to why it has no result
    saved: dict[str, Path] = field(default_factory=dict)  # maps the name of an audit to the JSON file of its result
    written: int = 0  # number of results in the output folder
    interrupted: bool = False
    stopped: bool = False  # whether -x ended the command at the first violation


class _ToStderr(logging.Handler):
    """Writes log messages to stderr, e.g. that an environment is being built."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


@exits_refused()
@own_error_state()
def run_all(planned: Sequence[PlannedAudit], command: CommandSettings, promise: Promise | None = None) -> Outcome:
    if not command.quiet:
        logger = logging.getLogger("dpaudit.environments")
        logger.handlers, logger.propagate = [_ToStderr()], False
        logger.setLevel(logging.INFO)
    of_several = promise is not None
    promise = promise or share_guarantee(planned, command)
    check_claims(planned, command)
    replaced = prepare_folder(planned, command)
    outcome = Outcome()
    ready = _load_all(planned, command, outcome)
    for one, mechanism, _ in filter(None, ready):
        _write_lock(one, mechanism, command)
    with event_log(command.log) as log, workers(command):
        try:
            for number, (audit_, confidence) in enumerate(zip(ready, promise.confidences, strict=not of_several), 1):
                if audit_ is None:
                    continue
                place = numbered(number, len(planned), audit_[0].config.name)
                result = _run_one(place, audit_, confidence, promise, command, log, outcome)
                if result is None:
                    continue
                outcome.results.append(result)
                if not command.quiet:
                    say(ended_line(number, len(planned), result))
                if command.verbose:
                    say(str(result))
                _keep(result, command, outcome, replaced)
                log_result(log, result)
                _warn(audit_[0], result, command)
                if any(has_code(warning, WarningCode.INTERRUPTION) for warning in result.warnings):
                    raise KeyboardInterrupt
                if command.stop_first and result.violated and number < len(planned):
                    outcome.stopped = True
                    break
        except KeyboardInterrupt:
            outcome.interrupted = True
            lost = ", and the outputs of the interrupted audit were not saved.  Use --resume to save outputs"
            how = ".  To resume" if command.keep_outputs else lost
            again = command_line() + " --resume" * (not command.keep_outputs)
            say(f"interrupted; the later audits were not run{how}: {again}")
    if outcome.stopped and not command.quiet:
        say("stopped at the first violation (-x); the later audits were not run")
    if not of_several:
        _show(planned, outcome, promise, command)
    return outcome


def _load_all(planned: Sequence[PlannedAudit], command: CommandSettings, outcome: Outcome) -> list[Ready | None]:
    """Load mechanisms and claims; None stands for a failure, which `outcome` records."""
    ready: list[Ready | None] = []
    for one in planned:
        try:
            ready.append((one, *load(one, command)))
        except NotReady as error:
            if command.needs_all:
                raise
            ready.append(None)
            say(str(error))
            outcome.failed.append(one.config.name)
            outcome.reasons[one.config.name] = f"could not be run: {error.reason}"
    if outcome.failed and not any(ready):
        raise NotReady("no mechanism could be loaded; see the messages above")
    return ready


def _keep(result: AuditResult, command: CommandSettings, outcome: Outcome, replaced: Set[str]) -> None:
    """Write a result, and report whether it replaced an earlier result."""
    place = write_result(result, command)
    if place != command.output:  # the result is in another folder than the user expects
        outcome.failed.append(result.name)
    if place is not None:
        named = Path(command.shown) if place == command.output else place
        outcome.saved[result.name] = named / f"{result.name}.json"
        outcome.written += place == command.output
    if result.name in replaced and place != command.output:
        say(f"{result.name}.json in {command.shown} still holds the result of an earlier run")
    elif result.name in replaced and not command.quiet:
        say(f"{result.name}.json replaced the result of an earlier run")


def _warn(planned: PlannedAudit, result: AuditResult, command: CommandSettings) -> None:
    """Print a result's warnings; if no violation was found, --quiet hides those that do not concern the verdict."""
    every = not command.quiet or result.verdict is not Verdict.NO_VIOLATION
    for warning in result.warnings:
        if every or not has_code(warning, WarningCode.HARMLESS):
            say(f"{planned.file}:{planned.line}: audit {result.name}: {joined(warning) if command.quiet else warning}")


def _show(planned: Sequence[PlannedAudit], outcome: Outcome, promise: Promise, command: CommandSettings) -> None:
    """Show all results on stdout, and the name of the output folder on stderr."""
    results = {result.name: result for result in outcome.results}
    ended = "after the first violation (-x)" if outcome.stopped else "the command was interrupted"
    audits = [
        Audited(
            name=name,
            result=results.get(name),
            reason="" if name in results else outcome.reasons.get(name, f"not run: {ended}"),
            failed=name in outcome.reasons,
            expected=one.config.expect,
            file=one.file,
            line=one.line,
            saved=outcome.saved.get(name),
        )
        for one in planned
        for name in [one.config.name]
    ]
    drawn(rendered(command.form, Run(audits=audits, together=promise.words(outcome.results)), screen()))
    if not command.quiet and outcome.written:
        say(f"results are in {command.shown}{_to_open(outcome, command)}")


def _to_open(outcome: Outcome, command: CommandSettings) -> str:
    """Return the name of a file to open: the report of the first violation, or of the first audit."""
    written = [result for result in outcome.results if result.name in outcome.saved]
    result = next((one for one in written if one.violated), written[0])
    pdf = outcome.saved[result.name].with_suffix(".pdf")
    if not (command.pdf and (command.output / pdf.name).is_file()):
        return f"; to read one: dpaudit report {shlex.quote(str(outcome.saved[result.name]))}"
    return f"; open {pdf}" if len(written) == 1 else f"; each audit has a report, such as {pdf}"


def _run_one(
    place: str,
    ready: Ready,
    confidence: float,
    promise: Promise,
    command: CommandSettings,
    log: Callable[..., None],
    outcome: Outcome,
) -> AuditResult | None:
    """Run an audit; if it fails, report why, record it in `outcome`, and return None."""
    planned, mechanism, claim = ready
    name = planned.config.name
    log("started", audit=name, claim=str(claim))
    try:
        with progress_bar(place, shown=not command.quiet) as bar:

            def report(now: Progress) -> None:
                if bar is not None:
                    bar(now)
                log("progress", audit=name, trials=now.trials, allowed=now.allowed, log_e=now.log_e)

            settings = replace(command.over(planned.settings), confidence=confidence, progress=report)
            return with_provenance(audit(mechanism, claim, planned.pairs, **settings.keywords), planned, promise)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        reason, broken = reason_of(error, command)
        (outcome.broken if broken else outcome.failed).append(name)
    outcome.reasons[name] = f"could not be run: {reason}"
    complain(f"{planned.file}:{planned.line}: audit {name} could not be run: {reason}")
    log("failed", audit=name, reason=reason)
    return None


def _write_lock(planned: PlannedAudit, mechanism: object, command: CommandSettings) -> None:
    """Write DIR/NAME.lock for a new environment, or remove that of an earlier environment if this one has no lock."""
    if not isinstance(mechanism, IsolatedMechanism) or planned.lock is not None:
        return
    file, name, lock = lock_file(command.output, planned.config.name), planned.config.name, mechanism.installed
    try:
        if lock is not None:
            write_placed(file, lock.text)
        else:
            remove_placed(file)
    except OSError as error:
        say(f"audit {name}: the lock file could not be written: {error.strerror or error}")
    if lock is None and not command.quiet:
        say(f"audit {name}: no lock file was written, because packages from version control have no hash")
