"""Worker processes that make audits at the same time; they end when this process ends, even if it is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import FrameType
from typing import Any

from dpaudit.cli.one_audit import End, Outcome, Task, make
from dpaudit.cli.options import RunOptions
from dpaudit.cli.progress import EventLog
from dpaudit.result.suite import Promise
from dpaudit.running.backends import one_worker

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
    if not _state["ready"]:
        _state["ready"] = True
        os.dup2(2, 1)  # keeps text of mechanisms out of results
        signal.signal(signal.SIGTERM, _interrupt)
        for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all processes of the command
            signal.signal(number, lambda *_: None)
    sys.argv[:] = arguments  # the result records the command
    _state["busy"] = True
    try:
        return make(task, options, promise, EventLog(options.log_json), shown=False)
    finally:
        _state["busy"] = False


def _interrupt(_: int, __: FrameType | None) -> None:
    if _state["busy"]:
        _state["busy"] = False
        raise KeyboardInterrupt
