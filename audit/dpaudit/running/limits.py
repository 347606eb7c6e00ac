"""Limits the time and the memory of foreign code, and keeps its state of numpy and its exits apart from dpaudit's.

A timeout in this process uses SIGALRM, so it works only in the main thread of a POSIX system.  It cannot interrupt code
that is stuck in a compiled library.  Such code should run in another process: as a command, or with `requires:`.

The operating system enforces memory limits (RLIMIT_AS) on the address space of each single process.  They stop
accidents, such as an array that is too large, but are not a sandbox, because a program can start further processes.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np

from dpaudit.running.protocol import MechanismError
from dpaudit.running.worker import limit_memory
from dpaudit.settings import memory_text

_MAX_SECONDS = 1e6  # seconds (11 days), because timers have a maximum
_GRACE = 0.1  # seconds between the first interruptions, so that the code can clean up
_PATIENCE = 3  # number of interruptions at intervals of `_GRACE`; later interruptions are far more frequent
_SECONDS_BETWEEN = 1e-4  # mean interval between later interruptions, in seconds

_DEFAULT: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}  # of numpy
_foreign: dict[str, Any] = _DEFAULT

_P = ParamSpec("_P")
_T = TypeVar("_T")


class RunTimeout(BaseException):
    """Raised inside a run that takes too long.  Not an Exception, because mechanisms often catch Exception."""


class Timeout:
    """Calls functions, and raises RunTimeout inside a function that takes too long; see `timeout_after`."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._armed = False
        self._interruptions = 0

    def __call__(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function and return its result."""
        if self._seconds is None:
            return function(*args, **kwargs)
        self._interruptions = 0
        self._armed = True
        try:
            signal.setitimer(signal.ITIMER_REAL, min(self._seconds, _MAX_SECONDS), _GRACE)
            result = function(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException:
            if self._interruptions:
                raise self._expired from None
            raise
        finally:
            self._armed = False  # stays the first statement, because Python handles signals only at calls and jumps
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._interruptions:
            raise self._expired
        return result

    @property
    def _expired(self) -> RunTimeout:
        return RunTimeout(f"took longer than {self._seconds:g} s")

    def interrupt(self, _: int, __: FrameType | None) -> None:
        """Handle SIGALRM.

        A mechanism that catches all exceptions, such as `while True: try: ... except: pass`, ignores an interruption.
        Further interruptions follow at random times, until an interruption occurs outside the `try` block.
        """
        if not self._armed:
            return
        self._interruptions += 1
        if self._interruptions > _PATIENCE:
            signal.setitimer(signal.ITIMER_REAL, _SECONDS_BETWEEN * _jitter.uniform(0.02, 2), _GRACE)
        raise self._expired


_jitter = random.Random()  # a separate generator, so that runs keep their randomness


@contextmanager
def timeout_after(seconds: float | None) -> Iterator[Timeout]:
    """Provide a timeout for calls inside the `with` block, and restore an alarm of other code at its end."""
    if seconds is None:
        yield Timeout(None)
        return
    if threading.current_thread() is not threading.main_thread():
        raise ValueError("timeout works only in the main thread; run the audit there, or without timeout")
    timeout, began = Timeout(seconds), time.monotonic()
    theirs, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    before = signal.signal(signal.SIGALRM, timeout.interrupt)
    try:
        yield timeout
    finally:
        signal.signal(signal.SIGALRM, before)
        if theirs:
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, theirs - (time.monotonic() - began)), interval)


def check_supported() -> None:
    """Check that this system enforces memory limits."""
    if sys.platform != "linux" or not os.path.exists("/proc/self/statm"):
        raise MechanismError(
            f"memory limits need Linux with /proc, and this system ({sys.platform}) does not enforce "
            "them: remove `memory`, or run the audit on Linux, for example in a container"
        )


def advice(memory: int) -> str:
    """Return the sentence that explains a memory limit and states the remedy."""
    return (
        f"the memory is limited to {memory_text(memory)}: raise `memory`, or let the mechanism use less memory, "
        "for example with smaller datasets or batches"
    )


@contextmanager
def memory_limited(memory: int | None) -> Iterator[None]:
    """Limit the memory that this process may add while the `with` block runs.

    An allocation beyond the limit raises MemoryError, or ends the process if compiled code does not handle the failure.
    """
    if memory is None:
        yield
        return
    check_supported()
    before = limit_memory(memory)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def current_folder() -> str:
    """Return the working directory, which foreign code may change or remove."""
    try:
        return os.getcwd()
    except OSError:
        return "a folder that no longer exists"


@contextmanager
def own_error_state() -> Iterator[None]:
    """Use numpy's default error state inside the `with` block.  A state that the caller has set is for foreign code."""
    global _foreign
    before, given = _foreign, np.geterr()
    _foreign = before if given == _DEFAULT else {**given}
    try:
        with np.errstate(**_DEFAULT):
            yield
    finally:
        _foreign = before


@contextmanager
def foreign_code() -> Iterator[None]:
    """Use numpy's error state of foreign code, and make `os._exit` raise SystemExit, inside the `with` block.

    `os._exit(0)` would end the audit with the exit code of "no violation found".
    """
    global _foreign
    end, process = os._exit, os.getpid()

    def refused(status: int) -> NoReturn:
        if os.getpid() != process:  # a fork, which has to end this way
            end(status)
        raise SystemExit(f"os._exit({status}) was called")

    with np.errstate(**_foreign):
        os._exit = refused
        try:
            yield
        finally:
            os._exit = end
            _foreign = {**np.geterr()}
