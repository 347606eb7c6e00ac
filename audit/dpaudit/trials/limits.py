"""A limit to how long one run may take, in the process that makes it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class RunTimeout(BaseException):
    """A run took too long.  Not an Exception: a mechanism that catches those must not catch this one."""


class Limit:
    """Around each run, `with limit:` raises RunTimeout inside if it takes longer; see `limited`."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        if self._seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        if self._seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def limited(seconds: float | None) -> Iterator[Limit]:
    """A limit for runs made inside; None is no limit.  ValueError where Python delivers no signals.

    SIGALRM, so POSIX and the main thread only, and a run that is stuck in compiled code without returning to Python is
    not ended: what may do that belongs into a process of its own (a command, or `requires:` in a config).
    """
    if seconds is None:
        yield Limit(None)
        return
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise ValueError("timeout can be kept in the main thread of a POSIX system only; audit there, or without it")

    def expired(_: int, __: FrameType | None) -> None:
        raise RunTimeout(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expired)
    try:
        yield Limit(seconds)
    finally:
        signal.signal(signal.SIGALRM, before)
