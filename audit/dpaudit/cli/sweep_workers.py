"""Makes rounds of several cells of a sweep at once, each in a separate worker process.

The workers end when this process ends, even if it is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from types import FrameType

from dpaudit.cli.sweep_rounds import Outcome, Task, make_round
from dpaudit.sampling.backends import one_worker
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
