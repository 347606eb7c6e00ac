"""A limit to how long foreign code may take in the process that calls it.

SIGALRM, so POSIX and the main thread only. Code that is stuck in a compiled library without returning to Python is not
ended. What may do that belongs into a process of its own (a command, or `requires:` in a config).
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

MAX_SECONDS = 1e6  # seconds, 11 days; what is longer counts as this, since timers and polls do not take any number

_GRACE = 0.1  # seconds that code has to clean up when its time is over, before it is interrupted again
_PATIENCE = 3  # interruptions that are `_GRACE` apart; code that goes on after them is interrupted much more often
_SECONDS_BETWEEN = 1e-4  # seconds; the mean time between those

_P = ParamSpec("_P")
_T = TypeVar("_T")


class RunTimeout(BaseException):
    """A run took too long.  Not an Exception: a mechanism that catches those must not catch this one."""


class Timeout:
    """Calls functions, and raises RunTimeout inside of them when they take longer; see `timeout_after`."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._armed = False
        self._interruptions = 0

    def __call__(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """The function's result.

        Raises RunTimeout if it takes too long, whatever it makes of the interruption, and otherwise what it raises.
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
            self._armed = False  # comes first: Python looks for signals at calls and jumps, so none is seen before it
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._interruptions:
            raise self._expired
        return result

    def around(self, function: Callable[_P, _T]) -> Callable[_P, _T]:
        """The same function with the limit."""
        return lambda *args, **kwargs: self(function, *args, **kwargs)

    @property
    def _expired(self) -> RunTimeout:
        return RunTimeout(f"took longer than {self._seconds:g} s")

    def interrupt(self, _: int, __: FrameType | None) -> None:
        """The handler of SIGALRM.

        A mechanism that catches everything, `while True: try: ... except: pass`, swallows an interruption and goes on.
        Further ones come at random times, until one of them hits a place outside of its `try`.
        """
        if not self._armed:
            return
        self._interruptions += 1
        if self._interruptions > _PATIENCE:
            signal.setitimer(signal.ITIMER_REAL, _SECONDS_BETWEEN * _jitter.uniform(0.02, 2), _GRACE)
        raise self._expired


_jitter = random.Random()  # of no run


def _only_others(hook: Callable[[sys.UnraisableHookArgs], object]) -> Callable[[sys.UnraisableHookArgs], object]:
    """A hook for exceptions that nobody can catch, without our interruptions: one may hit a `__del__`."""
    return lambda unraisable: None if issubclass(unraisable.exc_type, RunTimeout) else hook(unraisable)


@contextmanager
def timeout_after(seconds: float | None) -> Iterator[Timeout]:
    """A limit for calls made inside; None is no limit.  ValueError where Python delivers no signals.

    An alarm that somebody else has set (a test runner, say) is set again at the end.
    """
    if seconds is None:
        yield Timeout(None)
        return
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise ValueError("timeout can be kept in the main thread of a POSIX system only; audit there, or without it")
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
