"""Audits the cells of a sweep in rounds, in the order that `engine.next_cell` chooses.

The workers end when this process ends, even if it is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from types import FrameType

from dpaudit.cli.event_log import event_log, log_result
from dpaudit.cli.prepare_run import CommandSettings, workers
from dpaudit.cli.progress import ended_line, numbered, status_line
from dpaudit.cli.sweep_file import closes, facts_of, failed, recorded, write_sweep
from dpaudit.cli.sweep_rounds import Outcome, Task, close_workers, make_round
from dpaudit.cli.sweep_row import Row
from dpaudit.cli.terminal import say
from dpaudit.cli.write_result import write_result
from dpaudit.config import PlannedAudit
from dpaudit.config.sweeps import Cell
from dpaudit.engine.next_cell import Round, next_round
from dpaudit.mechanisms import MechanismError
from dpaudit.mechanisms.environments import environment
from dpaudit.mechanisms.exits import exits_refused
from dpaudit.mechanisms.raised import message_of
from dpaudit.mechanisms.requirements import wrong_version
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.result.sweeps import Sweep
from dpaudit.sampling.backends import one_worker
from dpaudit.text.printable import joined, one_line
from dpaudit.values import Foreign

_PATIENCE = 10.0  # seconds that an interrupted round has to return what it has measured
_DIED = "the process that audited this cell ended: {}"


class Workers:
    """Worker processes, each of which makes one round at a time."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._idle: list[Foreign] = []  # executors without a round
        self._running: dict[Future[Outcome], tuple[int, Foreign, float]] = {}  # cell, executor, start

    @property
    def free(self) -> bool:
        """Whether another round may start."""
        return len(self._running) < self._number

    @property
    def cells(self) -> list[int]:
        """The cells whose rounds run, the oldest first."""
        return [cell for cell, _, _ in self._running.values()]

    def start(self, cell: int, task: Task) -> None:
        """Start a round of a cell."""
        executor = self._idle.pop() if self._idle else one_worker()
        self._running[executor.submit(_in_worker, task, sys.argv)] = cell, executor, time.monotonic()

    def ended(self, seconds: float) -> list[tuple[int, Outcome]]:
        """Wait for rounds to end.

        Returns:
            The cells whose rounds have ended, and the outcomes.  If a worker died, the outcome says so.
        """
        done, _ = wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED)
        return [self._outcome(future) for future in self._running.copy() if future in done]

    def interrupt(self) -> list[tuple[int, Outcome]]:
        """Interrupt all rounds, and return the outcomes of the cells, which hold what was measured until then."""
        for _, executor, _ in self._running.values():
            for process in _processes(executor):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
        done, _ = wait(self._running, timeout=_PATIENCE)
        ended = [self._outcome(future) for future in self._running.copy() if future in done]
        cut = Outcome(interrupted=True)  # the signal came before the worker could handle it
        return [(cell, replace(cut, seconds=found.seconds) if found.died else found) for cell, found in ended]

    def close(self) -> None:
        """End all workers, including those that still run."""
        busy = [executor for _, executor, _ in self._running.values()]
        for executor in (*self._idle, *busy):
            executor.shutdown(wait=True, kill_workers=True)
        self._idle, self._running = [], {}

    def _outcome(self, future: Future[Outcome]) -> tuple[int, Outcome]:
        cell, executor, began = self._running.pop(future)
        try:
            outcome = future.result()
        except Exception as error:  # the worker died, or its answer could not be sent
            executor.shutdown(wait=False, kill_workers=True)
            reason = _DIED.format(" ".join(str(error).split()) or type(error).__name__)
            return cell, Outcome(reason=reason, died=True, seconds=max(time.monotonic() - began, 1e-9))
        self._idle.append(executor)
        return cell, outcome


def _processes(executor: Foreign) -> Sequence[int]:
    return list(executor._processes or ())


_state = {"ready": False, "busy": False}  # of a worker process


def _in_worker(task: Task, arguments: Sequence[str]) -> Outcome:
    """Make a round in a worker process."""
    if not _state["ready"]:
        _state["ready"] = True
        _prepare()
    sys.argv[:] = arguments  # the result records the command
    _state["busy"] = True
    try:
        return make_round(task)
    finally:
        _state["busy"] = False


def _prepare() -> None:
    """Let the parent process alone decide about interruptions, and keep text of mechanisms out of its results."""
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, _interrupt)
    for name in ("SIGINT", "SIGHUP"):  # a terminal sends these signals to all processes of the command
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: None)


def _interrupt(_: int, __: FrameType | None) -> None:
    if _state["busy"]:
        _state["busy"] = False
        raise KeyboardInterrupt


_clock = time.monotonic
_NO_TIME = "no time was left"
_LOOK = 1.0  # seconds between two updates of the line that shows the running cells
_MAX_SAID = 300  # maximum number of characters of a reason on stderr; sweep.json holds all of it


@dataclass(slots=True, kw_only=True)
class Sweeping:
    """A sweep that runs."""

    sweep: Sweep
    rows: list[Row]
    command: CommandSettings
    promise: Promise
    cells: int = 1
    broken: bool = False  # whether an audit ended in an internal error of dpaudit
    interrupted: bool = False
    unwritten: bool = False  # whether a file could not be written
    _began: float | None = None  # time at which the first round began; None before it
    _log: Callable[..., None] = field(default=lambda *_, **__: None)

    @property
    def results(self) -> dict[str, AuditResult]:
        """The results so far, by name."""
        return {row.cell.name: row.result for row in self.rows if row.result is not None}

    @property
    def outcome(self) -> Sweep:
        """The outcome so far."""
        cells = tuple(map(recorded, self.rows))
        return replace(self.sweep, cells=cells, spent=self._spent, interrupted=self.interrupted)

    @property
    def _spent(self) -> float:
        """Seconds from the first round on, including those of an earlier run."""
        return self.sweep.spent + (0.0 if self._began is None else max(_clock() - self._began, 0.0))

    @exits_refused()
    def go_on(self) -> None:
        """Make rounds until the time is over, no cell can go on, or the user interrupts."""
        try:
            with event_log(self.command.log) as self._log, workers(self.command):
                self._build_environments()
                self._began = _clock()
                if self.cells > 1:
                    self._make_several_at_once()
                else:
                    self._make_one_by_one()
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            close_workers()
        for row in self.rows:
            if row.result is None and not row.reason:
                row.reason = "the sweep was interrupted" if self.interrupted else _NO_TIME
        self.save()

    def save(self) -> None:
        """Write DIR/sweep.json."""
        self.unwritten = not write_sweep(self.outcome, self.command) or self.unwritten

    def _make_one_by_one(self) -> None:
        while (chosen := self._next()) is not None:
            outcome = make_round(self._task(chosen, shown=not self.command.quiet))
            self._keep(self.rows[chosen.cell], outcome)
            self.save()
            if outcome.interrupted:
                raise KeyboardInterrupt

    def _make_several_at_once(self) -> None:
        running = Workers(self.cells)
        status = status_line(shown=not self.command.quiet)
        try:
            while True:
                while running.free and (chosen := self._next()) is not None:
                    self.rows[chosen.cell].busy = True
                    running.start(chosen.cell, self._task(chosen, shown=False))
                if not running.cells:
                    return
                with status(self._status(running.cells)):
                    ended = running.ended(_LOOK)
                self._keep_all(ended)
        except KeyboardInterrupt:
            self._keep_all(running.interrupt())
            raise
        finally:
            running.close()

    def _keep_all(self, ended: Sequence[tuple[int, Outcome]]) -> None:
        for cell, outcome in ended:
            self.rows[cell].busy = False
            self._keep(self.rows[cell], outcome)
        if ended:
            self.save()

    def _status(self, cells: Sequence[int]) -> str:
        """Return the line about running cells."""
        names = ", ".join(one_line(self.rows[cell].cell.name) for cell in cells)
        left = max(self.sweep.seconds - self._spent, 0.0)
        tried = sum(row.rounds > 0 for row in self.rows)
        return f"{tried} of {len(self.rows)} cells, {left:.0f} s left: {names}"

    def _next(self) -> Round | None:
        left = self.sweep.seconds - self._spent
        return next_round([row.spent for row in self.rows], left, at_once=self.cells)

    def _task(self, chosen: Round, *, shown: bool) -> Task:
        row = self.rows[chosen.cell]
        return Task(
            planned=row.cell.planned,
            confidence=row.confidence,
            chosen=chosen,
            command=self.command,
            promise=self.promise,
            place=numbered(chosen.cell + 1, len(self.rows), row.cell.name),
            shown=shown,
        )

    def _build_environments(self) -> None:
        """Build all environments before the time of the sweep begins; close the cells of those that fail."""
        failed: dict[object, str] = {}
        for row in self.rows:
            mechanism = row.cell.planned.config.mechanism
            if not mechanism.isolated or row.closed:
                continue
            wanted = (tuple(mechanism.requires or ()), mechanism.python_version)
            if wanted not in failed:
                failed[wanted] = self._environment(*wanted, row.cell.version)
            if failed[wanted]:
                row.reason, row.closed, row.retried = failed[wanted], True, True

    def _environment(self, requires: Sequence[str], python_version: str | None, version: str) -> str:
        """Build an environment; return the reason if that fails or gives another version, and otherwise ""."""
        try:
            reason = wrong_version(environment(requires, python_version).packages, self.sweep.package, version)
        except MechanismError as error:
            reason = message_of(error)
        if reason:
            say(f"the environment with {', '.join(requires)} cannot be used, so its cells are not audited: {reason}")
        return reason

    def _keep(self, row: Row, outcome: Outcome) -> None:
        """Keep the result of a round, or the reason why there is none."""
        row.rounds += 1
        row.last_seconds = outcome.seconds
        row.seconds += outcome.seconds
        self.broken = self.broken or outcome.broken
        result = outcome.result
        if result is None:
            if outcome.interrupted:
                return
            row.reason, row.closed, row.retried = outcome.reason, True, outcome.not_ready
            if outcome.other_audit:  # the result of earlier rounds is about another mechanism
                row.result, row.facts = None, {}
            row.unfinished = row.result is not None
            if row.unfinished:
                say(f"{row.cell.name}: only the earlier rounds count, as a round failed: {_said(row.reason)}")
            elif row.reason and not self.command.quiet:
                say(f"{row.cell.name} could not be audited: {_said(row.reason)}")
        # the result of an interrupted round is not kept, because the store has all its blocks
        elif not outcome.interrupted or failed(result):
            self._keep_result(row, result)

    def _keep_result(self, row: Row, result: AuditResult) -> None:
        row.result, row.closed, row.facts = result, closes(result), facts_of(result)
        if not self.command.quiet:
            say(ended_line(self.rows.index(row) + 1, len(self.rows), result))
        if result.violated:
            for warning in result.warnings:
                say(f"{row.cell.name}: {joined(warning)}")
        # a result in another folder is no part of the sweep, which could not be resumed
        self.unwritten = write_result(result, self.command) != self.command.output or self.unwritten
        log_result(self._log, result)


def _said(reason: str) -> str:
    return one_line(reason)[:_MAX_SAID]


def answer_seconds(seconds: float, cells: int) -> float:
    """Return the maximum time of one answer of a mechanism: two fair shares, but 5 to 60 seconds."""
    return min(max(2 * seconds / cells, 5.0), 60.0)


def with_timeout(cells: Sequence[Cell], seconds: float) -> list[Cell]:
    """Return the cells with a time limit for each answer of their mechanisms."""
    return [replace(cell, planned=replace(cell.planned, config=_timed(cell.planned, seconds))) for cell in cells]


def _timed(planned: PlannedAudit, seconds: float) -> Foreign:
    return planned.config.model_copy(update={"timeout": seconds})
