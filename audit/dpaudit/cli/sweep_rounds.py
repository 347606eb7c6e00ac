"""Makes rounds of the cells of a sweep, in this process or in worker processes.

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
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType

from dpaudit.claims import TradeoffFunction
from dpaudit.cli.prepare_run import CommandSettings, NotReady, load
from dpaudit.cli.progress import event_log, progress_bar
from dpaudit.cli.write_result import reason_of, with_provenance
from dpaudit.config import PlannedAudit
from dpaudit.engine.audit import Progress, audit
from dpaudit.engine.next_cell import Round
from dpaudit.mechanisms import IsolatedMechanism
from dpaudit.mechanisms.own_process import exits_refused
from dpaudit.mechanisms.raised import message_of
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.sampling.backends import one_worker
from dpaudit.sampling.store import StoreRefused
from dpaudit.sampling.streams import stream
from dpaudit.values import Foreign

_clock = time.monotonic
_PATIENCE = 10.0  # seconds that an interrupted round has to return what it has measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    planned: PlannedAudit
    confidence: float
    chosen: Round
    command: CommandSettings
    promise: Promise
    place: str
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    result: AuditResult | None = None
    reason: str = ""
    not_ready: bool = False
    other_audit: bool = False
    broken: bool = False
    interrupted: bool = False
    died: bool = False
    seconds: float = 0.0


_alive: list[IsolatedMechanism] = []  # mechanisms whose workers this process keeps for further rounds


def close_workers() -> None:
    """End the workers that this process keeps for further rounds."""
    while _alive:
        _alive.pop().close()


@exits_refused()
def make_round(task: Task) -> Outcome:
    """Make a round, and return what it has shown.  The function never raises."""
    began = _clock()
    try:
        result = audited(task)
        found = Outcome(result=result, interrupted=result.stopped_by == "interruption")
    except KeyboardInterrupt:
        found = Outcome(interrupted=True)
    except NotReady as error:
        found = Outcome(reason=error.cause, not_ready=True)
    except StoreRefused as error:
        found = Outcome(reason=message_of(error), not_ready=not error.other_audit, other_audit=error.other_audit)
    except BaseException as error:
        reason, broken = reason_of(error, task.command)
        found = Outcome(reason=reason, broken=broken)
    return replace(found, seconds=max(_clock() - began, 1e-9))


def audited(task: Task) -> AuditResult:
    """Resume the audit of a cell up to a number of runs, or until the time of the round is over."""
    planned = seeded(task.planned, task.command.seed)
    mechanism, claim = load(planned, task.command)
    with suppress(NotReady), event_log(task.command.log) as log:
        log("started", audit=planned.settings.name, claim=str(claim))
    try:
        with progress_bar(task.place, shown=task.shown) as bar:
            ends = _clock() + task.chosen.seconds

            def report(now: Progress) -> None:
                if bar is not None:
                    bar(now)
                # after a failed run, a second pass over the store would repeat this run
                if _clock() > ends and now.trials < now.allowed and not now.failed:
                    raise _TimeIsOver(now.trials)

            try:
                result = _resumed(task, planned, mechanism, claim, task.chosen.trials, report)
            except _TimeIsOver as over:  # read the stored runs again, for the result at this number of runs
                result = _resumed(task, planned, mechanism, claim, over.args[0], bar)
    finally:
        if isinstance(mechanism, IsolatedMechanism):
            # starting a worker may take longer than its runs, so the workers of the last four cells wait
            _alive[:] = [one for one in _alive if one != mechanism] + [mechanism]
            while len(_alive) > 4:
                _alive.pop(0).close()
    return with_provenance(result, planned, task.promise)


def _resumed(
    task: Task,
    planned: PlannedAudit,
    mechanism: Foreign,
    claim: TradeoffFunction,
    trials: int,
    report: Callable[[Progress], None] | None,
) -> AuditResult:
    command = replace(task.command, trials=trials, seed=None, keep_outputs=True)
    settings = replace(command.over(planned.settings), confidence=task.confidence, progress=report)
    return audit(mechanism, claim, planned.pairs, **settings.keywords)


class _TimeIsOver(Exception):
    """Raised with the number of runs so far, between two blocks, if the time of a round is over."""


def seeded(planned: PlannedAudit, seed: int | None) -> PlannedAudit:
    """Return an audit with a seed that depends on the seed of the command and on the name of the cell."""
    if seed is None:
        return planned
    return planned.changed(seed=int(stream(seed, "sweep", planned.config.name).integers(10**9)))


class Workers:
    """Worker processes, each of which makes one round at a time."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._idle: list[Foreign] = []  # executors without a round
        self._running: dict[Future[Outcome], tuple[int, Foreign, float]] = {}  # cell, executor, start

    @property
    def free(self) -> bool:
        return len(self._running) < self._number

    @property
    def cells(self) -> list[int]:
        """The cells whose rounds run, the oldest first."""
        return [cell for cell, _, _ in self._running.values()]

    def start(self, cell: int, task: Task) -> None:
        executor = self._idle.pop() if self._idle else one_worker()
        self._running[executor.submit(_in_worker, task, sys.argv)] = cell, executor, time.monotonic()

    def ended(self, seconds: float) -> list[tuple[int, Outcome]]:
        """Wait for rounds to end; return their cells and outcomes, which say so if a worker died."""
        done, _ = wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED)
        return [self._outcome(future) for future in self._running.copy() if future in done]

    def interrupt(self) -> list[tuple[int, Outcome]]:
        """Interrupt all rounds, and return the outcomes of the cells, which hold what was measured until then."""
        for _, executor, _ in self._running.values():
            for process in list(executor._processes or ()):
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
            words = " ".join(str(error).split()) or type(error).__name__
            reason = f"the process that audited this cell ended: {words}"
            return cell, Outcome(reason=reason, died=True, seconds=max(time.monotonic() - began, 1e-9))
        self._idle.append(executor)
        return cell, outcome


_state = {"ready": False, "busy": False}  # of a worker process


def _in_worker(task: Task, arguments: Sequence[str]) -> Outcome:
    """Make a round in a worker process, whose parent alone decides about interruptions."""
    if not _state["ready"]:
        _state["ready"] = True
        os.dup2(2, 1)  # keeps text of mechanisms out of results
        signal.signal(signal.SIGTERM, _interrupt)
        for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all processes of the command
            signal.signal(number, lambda *_: None)
    sys.argv[:] = arguments  # the result records the command
    _state["busy"] = True
    try:
        return make_round(task)
    finally:
        _state["busy"] = False


def _interrupt(_: int, __: FrameType | None) -> None:
    if _state["busy"]:
        _state["busy"] = False
        raise KeyboardInterrupt
