"""Stops foreign code that exceeds a time limit in this process.

Timeouts use SIGALRM, so they work only in the main thread of a POSIX system.  A timeout cannot interrupt code that is
stuck in a compiled library and never returns to Python.  Such code should run in another process: as a command, or with
`requires:` in a config.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ParamSpec, TypeVar

MAX_SECONDS = 1e6  # maximum timeout, in seconds (11 days), because timers and polls have a maximum


_GRACE = 0.1  # seconds between the first interruptions, so that the code can clean up
_PATIENCE = 3  # number of interruptions at intervals of `_GRACE`; later interruptions are far more frequent
_SECONDS_BETWEEN = 1e-4  # mean interval between later interruptions, in seconds

_P = ParamSpec("_P")
_T = TypeVar("_T")


class RunTimeout(BaseException):
    """Raised inside a run that takes too long.  Not an Exception, because mechanisms often catch Exception."""


class Timeout:
    """Calls functions, and raises RunTimeout inside a function that takes too long.

    The function `timeout_after` creates objects of this class.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._armed = False
        self._interruptions = 0

    def __call__(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function.

        Returns:
            The result of the function.
        """
        if self._seconds is None:
            return function(*args, **kwargs)
        self._interruptions = 0
        self._armed = True
        try:
            signal.setitimer(signal.ITIMER_REAL, min(self._seconds, MAX_SECONDS), _GRACE)
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

    def around(self, function: Callable[_P, _T]) -> Callable[_P, _T]:
        """Return a function that calls `function` with the timeout."""
        return lambda *args, **kwargs: self(function, *args, **kwargs)

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


def _only_others(hook: Callable[[sys.UnraisableHookArgs], object]) -> Callable[[sys.UnraisableHookArgs], object]:
    """Return an unraisable hook that ignores RunTimeout, because an interruption may occur inside a `__del__`."""
    return lambda unraisable: None if issubclass(unraisable.exc_type, RunTimeout) else hook(unraisable)


@contextmanager
def timeout_after(seconds: float | None) -> Iterator[Timeout]:
    """Provide a timeout for calls inside the `with` block.

    An alarm of other code, such as a test runner, is restored at the end.

    Yields:
        An object that calls functions with this timeout.
    """
    if seconds is None:
        yield Timeout(None)
        return
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise ValueError(
            "timeout works only in the main thread of a POSIX system; run the audit there, or without timeout"
        )
    timeout, began = Timeout(seconds), time.monotonic()
    theirs, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    before = signal.signal(signal.SIGALRM, timeout.interrupt)
    hook = sys.unraisablehook
    sys.unraisablehook = _only_others(hook)
    try:
        yield timeout
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGALRM, before)
        if theirs:
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, theirs - (time.monotonic() - began)), interval)
