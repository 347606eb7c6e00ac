"""Makes one audit of a command, or one round of it, here or in a worker process, and shows its progress.

Nothing else catches failures of audits.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import Any

from dpaudit.claims import TradeoffFunction
from dpaudit.cli.options import RunOptions
from dpaudit.cli.prepare_run import NotReady, load
from dpaudit.cli.terminal import command_line, drawn_line, is_terminal, print_traceback, report_internal_error, say
from dpaudit.config.planned import PlannedAudit
from dpaudit.engine.audit import Progress, audit
from dpaudit.engine.interactive import audit_interactive
from dpaudit.engine.progress_line import shown as progress_shown
from dpaudit.engine.schedule import Round
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.running import IsolatedMechanism, MechanismError
from dpaudit.running.backends import one_worker
from dpaudit.running.outcomes import message_of, of_machine, raised
from dpaudit.running.store import StoreRefused
from dpaudit.text import WarningCode, has_code, masked, one_line

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

    @property
    def place(self) -> str:
        """The number of the audit, such as "2 of 4"."""
        return f"{self.number + 1:{len(str(self.audits))}d} of {self.audits}"


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
        result = _audited(task, options, log, shown=shown)
        planned = task.planned
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
        result = replace(result, provenance=promise.recorded(provenance))
        interrupted = any(has_code(warning, WarningCode.INTERRUPTION) for warning in result.warnings)
        outcome = Outcome(end=End.INTERRUPTED if interrupted else End.RESULT, result=result)
        if task.part is not None and result.stopped_by == "interruption" and not failed(result):
            outcome = Outcome(end=End.INTERRUPTED)  # the store has all its blocks
        else:
            log(
                "ended",
                audit=result.name,
                verdict=result.verdict.value,
                p_value=result.p_value,
                mu_lower=result.mu_lower,
                trials=result.trials_used,
                stopped_by=result.stopped_by,
                elapsed_s=round(result.elapsed_s, 3),
                warnings=list(result.warnings),
            )
    except KeyboardInterrupt:
        outcome = Outcome(end=End.INTERRUPTED)
    except BaseException as error:
        outcome = _failure(error, options)
        log("failed", audit=task.name, reason=outcome.reason)
    return replace(outcome, seconds=max(_clock() - began, 1e-9))


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
    ends = math.inf if task.part is None else _clock() + task.part.seconds
    title = task.name if task.audits == 1 else f"{task.place}  {task.name}"
    try:
        with progress_bar(title, shown=shown) as bar:

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
                if not task.planned.config.interactive:
                    return audit(mechanism, claim, task.planned.pairs, **settings.keywords)
                sessions = {key: value for key, value in settings.keywords.items() if key not in ("trials", "attacks")}
                queries = task.planned.config.queries
                return audit_interactive(
                    mechanism, claim, task.planned.pairs, queries=queries, sessions=settings.trials, **sessions
                )

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


@contextlib.contextmanager
def progress_bar(name: str, *, shown: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that shows the progress of one audit, and never raises; None if nothing is shown."""
    name = one_line(name)
    first = drawn_line(name) if shown and is_terminal(sys.stderr) else contextlib.nullcontext()
    with first, progress_shown(shown, name) as update:
        yield update


class EventLog:
    """Appends events to the file of --log-json as lines of JSON, and never raises; without a file, does nothing."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def __call__(self, kind: str, **about: object) -> None:
        if self._file is None:
            return
        finite = {key: None if value != value else value for key, value in about.items()}  # JSON has no NaN
        try:
            with self._file.open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(json.dumps({"event": kind, **finite}, ensure_ascii=False) + "\n")
        except (OSError, ValueError, TypeError) as error:
            say(f"--log-json {self._file}: {message_of(error)}; no more events are written, but the audits continue")
            self._file = None


_PATIENCE = 10.0  # seconds that an interrupted round has to return what it has measured


class Workers:
    """Worker processes, each of which makes one task at a time."""

    def __init__(self, number: int, options: RunOptions, promise: Promise) -> None:
        self._number, self._options, self._promise = number, options, promise
        self._idle: list[Any] = []  # executors without a task
        self._running: dict[Future[Outcome], tuple[Task, Any, float]] = {}  # task, executor, start
        self._interrupted = False

    @property
    def free(self) -> bool:
        return len(self._running) < self._number

    @property
    def tasks(self) -> list[Task]:
        """The tasks that run, the oldest first."""
        return [task for task, _, _ in self._running.values()]

    def start(self, task: Task) -> None:
        executor = self._idle.pop() if self._idle else one_worker()
        future = executor.submit(_in_worker, task, self._options, self._promise, sys.argv)
        self._running[future] = task, executor, time.monotonic()

    def ended(self, seconds: float) -> list[tuple[Task, Outcome]]:
        """Wait for tasks to end; return them with their outcomes, which say so if a worker died."""
        done, _ = wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED)
        return [self._outcome(future) for future in self._running.copy() if future in done]

    def interrupt(self) -> list[tuple[Task, Outcome]]:
        """Interrupt all tasks, and return their outcomes, which hold what was measured until then."""
        self._interrupted = True
        for _, executor, _ in self._running.values():
            for process in list(executor._processes or ()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
        done, _ = wait(self._running, timeout=_PATIENCE)
        return [self._outcome(future) for future in self._running.copy() if future in done]

    def close(self) -> None:
        """End all workers, including those that still run."""
        busy = [executor for _, executor, _ in self._running.values()]
        for executor in (*self._idle, *busy):
            executor.shutdown(wait=True, kill_workers=True)
        self._idle, self._running = [], {}

    def _outcome(self, future: Future[Outcome]) -> tuple[Task, Outcome]:
        task, executor, began = self._running.pop(future)
        try:
            outcome = future.result()
        except Exception as error:  # the worker died, or its answer could not be sent
            executor.shutdown(wait=False, kill_workers=True)
            words = " ".join(str(error).split()) or type(error).__name__
            # after an interruption, the signal came before the worker could handle it
            end = End.INTERRUPTED if self._interrupted else End.FAILED
            reason = f"the process that audited this cell ended: {words}"
            return task, Outcome(end=end, reason=reason, seconds=max(time.monotonic() - began, 1e-9))
        self._idle.append(executor)
        return task, outcome


_state = {"ready": False, "busy": False}  # of a worker process


def _in_worker(task: Task, options: RunOptions, promise: Promise, arguments: Sequence[str]) -> Outcome:
    """Make a task in a worker process, whose parent alone decides about interruptions."""

    def interrupt(_: int, __: FrameType | None) -> None:
        if _state["busy"]:
            _state["busy"] = False
            raise KeyboardInterrupt

    if not _state["ready"]:
        _state["ready"] = True
        os.dup2(2, 1)  # keeps text of mechanisms out of results
        signal.signal(signal.SIGTERM, interrupt)
        for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all processes of the command
            signal.signal(number, lambda *_: None)
    sys.argv[:] = arguments  # the result records the command
    _state["busy"] = True
    try:
        return make(task, options, promise, EventLog(options.log_json), shown=False)
    finally:
        _state["busy"] = False
