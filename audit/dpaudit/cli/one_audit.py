"""Makes one audit of a command, or one round of it, and returns what happened; the only place that catches failures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from dpaudit.claims import TradeoffFunction
from dpaudit.cli.ending import command_line, print_traceback, report_internal_error
from dpaudit.cli.options import RunOptions
from dpaudit.cli.prepare_run import NotReady, load
from dpaudit.cli.progress import EventLog, log_result, numbered, progress_bar
from dpaudit.config import PlannedAudit
from dpaudit.engine.audit import Progress, audit
from dpaudit.engine.next_cell import Round
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.running import IsolatedMechanism, MechanismError
from dpaudit.running.outcomes import message_of, of_machine, raised
from dpaudit.running.store import StoreRefused
from dpaudit.text import WarningCode, has_code, masked

_clock = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An audit to make."""

    number: int  # of the audit among the `audits` that are counted in messages, from 0
    audits: int
    planned: PlannedAudit
    confidence: float
    loaded: tuple[Any, TradeoffFunction] | None = None  # mechanism and claim; None to load them for this task
    part: Round | None = None  # goes up to a number of runs, or until its time is over; None for the whole audit

    @property
    def name(self) -> str:
        return self.planned.config.name


class End(Enum):
    """How a task ended."""

    RESULT = "result"
    NOT_READY = "not ready"  # the mechanism did not load or the store could not be read, so nothing was run
    OTHER_AUDIT = "other audit"  # the store holds the outputs of another mechanism
    FAILED = "failed"
    BROKEN = "broken"  # internal error of dpaudit
    INTERRUPTED = "interrupted"  # perhaps with a result


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one task has shown."""

    end: End
    result: AuditResult | None = None
    reason: str = ""  # why there is no result
    seconds: float = 0.0

    @property
    def words(self) -> str:
        """Why there is no result, for reports; "" if there is one."""
        return "" if self.result is not None else f"could not be run: {self.reason}"


def make(task: Task, options: RunOptions, promise: Promise, log: EventLog, *, shown: bool) -> Outcome:
    """Make an audit, and return what it has shown.  The function never raises."""
    began = _clock()
    try:
        result = _with_provenance(_audited(task, options, log, shown=shown), task.planned, promise)
        interrupted = any(has_code(warning, WarningCode.INTERRUPTION) for warning in result.warnings)
        found = Outcome(end=End.INTERRUPTED if interrupted else End.RESULT, result=result)
        if task.part is not None and result.stopped_by == "interruption" and not failed(result):
            found = Outcome(end=End.INTERRUPTED)  # the store has all its blocks
        else:
            log_result(log, result)
    except KeyboardInterrupt:
        found = Outcome(end=End.INTERRUPTED)
    except BaseException as error:
        found = _failure(error, options)
        log("failed", audit=task.name, reason=found.reason)
    return replace(found, seconds=max(_clock() - began, 1e-9))


def failed(result: AuditResult) -> bool:
    """Whether a failed run ended the trials of a pair."""
    return any(has_code(warning, WarningCode.FAILURE) for warning in result.warnings)


def _failure(error: BaseException, options: RunOptions) -> Outcome:
    """Explain in an exception's handler why an audit has no result."""
    if isinstance(error, NotReady):
        return Outcome(end=End.NOT_READY, reason=error.cause)
    known = isinstance(error, MechanismError | ValueError) or of_machine(error) or not isinstance(error, Exception)
    if not known:
        return Outcome(end=End.BROKEN, reason=report_internal_error(error, options.output, debug=options.debug))
    print_traceback(options.debug)
    if isinstance(error, MemoryError):
        return Outcome(end=End.FAILED, reason="out of memory")
    if isinstance(error, StoreRefused):
        return Outcome(end=End.OTHER_AUDIT if error.other_audit else End.NOT_READY, reason=message_of(error))
    if isinstance(error, Exception):
        return Outcome(end=End.FAILED, reason=message_of(error))
    return Outcome(end=End.FAILED, reason=f"the mechanism raised {raised(error)}")  # such as SystemExit


def _audited(task: Task, options: RunOptions, log: EventLog, *, shown: bool) -> AuditResult:
    mechanism, claim = task.loaded or load(task.planned, options)
    log("started", audit=task.name, claim=str(claim))
    most = math.inf if task.part is None else task.part.seconds
    ends = _clock() + most
    try:
        with progress_bar(numbered(task.number + 1, task.audits, task.name), shown=shown) as bar:

            def report(now: Progress) -> None:
                if bar is not None:
                    bar(now)
                log("progress", audit=task.name, trials=now.trials, allowed=now.allowed, log_e=now.log_e)
                # after a failed run, a second pass over the store would repeat this run
                if _clock() > ends and now.trials < now.allowed and not now.failed:
                    raise _TimeIsOver(now.trials)

            def made(trials: int | None, progress: Callable[[Progress], None] | None) -> AuditResult:
                settings = replace(options.over(task.planned.settings), confidence=task.confidence, progress=progress)
                settings = settings if trials is None else replace(settings, trials=trials)
                return audit(mechanism, claim, task.planned.pairs, **settings.keywords)

            try:
                return made(None if task.part is None else task.part.trials, report)
            except _TimeIsOver as over:  # read the stored runs again, for the result at this number of runs
                return made(over.args[0], bar)
    finally:
        if task.part is not None and isinstance(mechanism, IsolatedMechanism):
            # starting a worker may take longer than its runs, so the workers of the last four cells wait
            _alive[:] = [one for one in _alive if one != mechanism] + [mechanism]
            while len(_alive) > 4:
                _alive.pop(0).close()


class _TimeIsOver(Exception):
    """Raised with the number of runs so far, between two blocks, if the time of a round is over."""


_alive: list[IsolatedMechanism] = []  # mechanisms whose workers this process keeps for further rounds


def close_workers() -> None:
    """End the workers that this process keeps for further rounds."""
    while _alive:
        _alive.pop().close()


def _with_provenance(result: AuditResult, planned: PlannedAudit, promise: Promise) -> AuditResult:
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
