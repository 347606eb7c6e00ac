"""The one loop over many audits: a policy chooses them, one promise covers them, and their results are written."""

from __future__ import annotations

import contextlib
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dpaudit.cli.one_audit import End, EventLog, Outcome, Task, Workers, close_workers, make
from dpaudit.cli.options import RunOptions
from dpaudit.cli.prepare_run import NotReady, check_configs, load, prepare_folder, share_guarantee
from dpaudit.cli.terminal import command_line, complain, drawn_line, is_terminal, print_traceback, say
from dpaudit.config.planned import PlannedAudit
from dpaudit.config.versions import lock_file
from dpaudit.result.atomic_write import remove_placed, write_placed
from dpaudit.result.files import as_text
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.result.values import Verdict
from dpaudit.running.backends import BackendError, backend
from dpaudit.running.foreign import own_error_state
from dpaudit.running.outcomes import message_of
from dpaudit.text import SIGNS, WarningCode, has_code, joined, one_line

_QUIET_INTERVAL = 30.0  # seconds between two lines about several audits, each of which has a line at its end


class Policy(Protocol):
    """Chooses the audits of a command."""

    def next(self) -> Task | None:
        """Return the next audit to make, or the next round of one; None if there is none until another task ends."""

    def ended(self, task: Task, outcome: Outcome) -> None:
        """Learn what a task has shown; its result is written."""


class Here:
    """Makes one task at a time in this process, in the form of `Workers`."""

    def __init__(self, runner: Runner) -> None:
        self._runner, self._log = runner, EventLog(runner.options.log_json)
        self.tasks: list[Task] = []

    @property
    def free(self) -> bool:
        return not self.tasks

    def start(self, task: Task) -> None:
        self.tasks.append(task)

    def ended(self, seconds: float) -> list[tuple[Task, Outcome]]:
        task, options = self.tasks.pop(), self._runner.options
        return [(task, make(task, options, self._runner.promise, self._log, shown=not options.quiet))]

    def interrupt(self) -> list[tuple[Task, Outcome]]:
        return []

    def close(self) -> None:
        close_workers()


class _ToStderr(logging.Handler):
    """Writes log messages to stderr, e.g. that an environment is being built."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


@dataclass(slots=True, kw_only=True)
class Runner:
    """Makes audits, and keeps what they have shown."""

    options: RunOptions
    promise: Promise
    at_once: int = 1  # number of worker processes that make one task each; 1 for this process
    status: Callable[[], str] = str  # how far several audits at once have come
    outcomes: dict[str, Outcome] = field(default_factory=dict)  # the last of each audit, by name
    saved: dict[str, Path] = field(default_factory=dict)  # the JSON file of each result, as the user names it
    broken: bool = False  # whether an audit ended in an internal error of dpaudit
    unwritten: bool = False  # whether a file could not be written to the output folder
    interrupted: bool = False

    def __post_init__(self) -> None:
        if not self.options.quiet:
            logger = logging.getLogger("dpaudit.running")
            logger.handlers, logger.propagate = [_ToStderr()], False
            logger.setLevel(logging.INFO)

    @property
    def results(self) -> list[AuditResult]:
        return [outcome.result for outcome in self.outcomes.values() if outcome.result is not None]

    @own_error_state()
    def run(self, policy: Policy) -> None:
        """Make tasks until the policy has no more, or the user interrupts."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(backend(self.options.backend, self.options.scheduler))
            except (BackendError, ValueError) as error:
                raise NotReady(f"--backend {self.options.backend}: {error}") from None
            running = Workers(self.at_once, self.options, self.promise) if self.at_once > 1 else Here(self)
            stack.callback(running.close)
            try:
                self._loop(policy, running)
            except KeyboardInterrupt:
                self.interrupted = True
                self._keep_all(policy, running.interrupt())
                lost = ", and the outputs of the interrupted audit were not saved.  Use --resume to save outputs"
                how = ".  To resume" if self.options.keep_outputs else lost
                again = command_line() + " --resume" * ("--resume" not in command_line())
                say(f"interrupted; the later audits were not run{how}: {again}")

    def _loop(self, policy: Policy, running: Workers | Here) -> None:
        several = not self.options.quiet and self.at_once > 1  # one audit shows its own progress
        said = time.monotonic()
        while True:
            while running.free and (task := policy.next()) is not None:
                running.start(task)
            if not running.tasks:
                return
            line = self.status() + ", ".join(one_line(task.name) for task in running.tasks)
            terminal = several and is_terminal(sys.stderr)
            if several and not terminal and time.monotonic() - said >= _QUIET_INTERVAL:
                said = time.monotonic()
                say(line)
            with drawn_line(line) if terminal else contextlib.nullcontext():
                ended = running.ended(seconds=1.0)  # then the line is updated
            self._keep_all(policy, ended)
            if any(outcome.end is End.INTERRUPTED for _, outcome in ended):
                raise KeyboardInterrupt

    def _keep_all(self, policy: Policy, ended: Sequence[tuple[Task, Outcome]]) -> None:
        for task, outcome in ended:
            if outcome.result is not None or outcome.end is not End.INTERRUPTED:
                self.outcomes[task.name] = outcome
            self.broken = self.broken or outcome.end is End.BROKEN
            try:
                if outcome.result is not None:
                    self._keep(task, outcome.result)
                elif outcome.end is not End.INTERRUPTED and (task.part is None or not self.options.quiet):
                    complain(f"{task.planned.address} could not be run: {outcome.reason}")
            finally:
                policy.ended(task, outcome)

    def _keep(self, task: Task, result: AuditResult) -> None:
        """Report a result and its warnings, and write it."""
        options, name = self.options, result.name
        if not options.quiet:
            verdict = SIGNS[result.verdict.value].shown()
            cost = f"{result.trials_used:,} runs  {result.elapsed_s:.1f} s"
            say(f"{task.place}  {one_line(name)}  {verdict}  {cost}")
        if options.verbose:
            say(str(result))
        earlier = (options.output / f"{name}.json").exists() and task.part is None
        place = write_result(result, options)
        here = place == options.output
        self.unwritten = self.unwritten or not here
        if place is not None:
            self.saved[name] = (Path(options.shown) if here else place) / f"{name}.json"
        if earlier and not here:
            say(f"{name}.json in {options.shown} still holds the result of an earlier run")
        elif earlier and not options.quiet:
            say(f"{name}.json replaced the result of an earlier run")
        if task.part is None or result.violated:  # a sweep would repeat the warnings in each round
            about_verdict = result.verdict is not Verdict.NO_VIOLATION  # otherwise --quiet hides harmless warnings
            for warning in result.warnings:
                if not options.quiet:
                    say(f"{task.planned.address}: {warning}")
                elif about_verdict or not has_code(warning, WarningCode.HARMLESS):
                    say(f"{task.planned.address}: {joined(warning)}")


def write_result(result: AuditResult, options: RunOptions) -> Path | None:
    """Write the JSON and the PDF; return the folder of the JSON, or None if it could not be written anywhere."""
    file, written = options.output / f"{result.name}.json", False
    try:
        write_placed(file, as_text(result.to_dict()))
        written = True
        if not options.no_pdf:
            from dpaudit_reports import to_pdf

            write_placed(file.with_name(f"{result.name}.pdf"), to_pdf([result], paper=options.paper))
    except KeyboardInterrupt:
        if not written:  # an interruption must not discard the measurement
            with contextlib.suppress(Exception):
                write_placed(file, as_text(result.to_dict()))
        raise
    except Exception as error:
        print_traceback(options.debug)
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {message_of(error)}"
        if written:
            say(f"the PDF of {result.name} could not be written: {reason}; the JSON is in {options.shown}")
            return options.output
        rescued = _rescued(result)
        where = "" if rescued is None else f"; the JSON is in {rescued}"
        say(f"the result of {result.name} could not be written to {options.shown}: {reason}{where}")
        return None if rescued is None else rescued.parent
    return options.output


def _rescued(result: AuditResult) -> Path | None:
    """Write a result to a temporary folder, after the output folder failed."""
    with contextlib.suppress(Exception):
        folder = Path(tempfile.mkdtemp(prefix="dpaudit-"))
        try:
            result.to_json(file := folder / f"{result.name}.json")
            return file
        finally:
            with contextlib.suppress(OSError):
                folder.rmdir()  # if it is empty
    return None


def write_file(name: str, content: str | bytes, options: RunOptions) -> bool:
    """Write a file to the output folder; return whether that succeeded.  An error is reported, and ends nothing."""
    try:
        write_placed(options.output / name, content)
    except OSError as error:
        say(f"{options.shown}/{name} could not be written: {error.strerror}")
        return False
    return True


class InOrder:
    """The policy of `run` and `compare`: makes each audit once; with `stop_first`, up to the first violation."""

    def __init__(self, planned: Sequence[PlannedAudit], *, needs_all: bool = True, stop_first: bool = False) -> None:
        self.planned, self._needs_all, self._stop_first = planned, needs_all, stop_first
        self._tasks: list[Task] = []
        self.stopped = False  # whether a violation ended the command

    @own_error_state()
    def run(self, options: RunOptions) -> Runner:
        """Load all mechanisms, and make all audits; without `needs_all`, a mechanism may fail to load."""
        runner = Runner(options=options, promise=share_guarantee(self.planned, options))
        check_configs(self.planned, options)
        prepare_folder(self.planned, options)
        failed = None if self._needs_all else runner.outcomes
        self._tasks = loaded(self.planned, runner.promise.confidences, options, failed)
        if not self._tasks:
            raise NotReady("no mechanism could be loaded; see the messages above")
        runner.run(self)
        return runner

    def next(self) -> Task | None:
        return self._tasks.pop(0) if self._tasks and not self.stopped else None

    def ended(self, task: Task, outcome: Outcome) -> None:
        violated = outcome.result is not None and outcome.result.violated
        self.stopped = self._stop_first and violated and bool(self._tasks)


def loaded(
    planned: Sequence[PlannedAudit],
    confidences: Sequence[float],
    options: RunOptions,
    failed: dict[str, Outcome] | None = None,
) -> list[Task]:
    """Load the mechanisms and claims of audits, and write their lock files; `failed` gets those that do not load."""
    tasks = []
    for number, (one, confidence) in enumerate(zip(planned, confidences, strict=False)):
        try:
            both = load(one, options)
        except NotReady as error:
            if failed is None:
                raise
            say(str(error))
            failed[one.config.name] = Outcome(end=End.NOT_READY, reason=error.reason)
            continue
        tasks.append(Task(number=number, audits=len(planned), planned=one, confidence=confidence, loaded=both))
    for task in tasks:
        mechanism: Any = task.loaded and task.loaded[0]
        if not task.planned.config.mechanism.installs or task.planned.lock is not None:
            continue
        file, lock = lock_file(options.output, task.name), mechanism.installed
        try:
            if lock is not None:
                write_placed(file, lock.text)
            else:
                remove_placed(file)  # that of an earlier environment
        except OSError as error:
            say(f"audit {task.name}: the lock file could not be written: {error.strerror or error}")
        if lock is None and not options.quiet:
            say(f"audit {task.name}: no lock file was written, because packages from version control have no hash")
    return tasks
