"""Foreign code: limits its time and memory, and detects and undoes its side effects on dpaudit's process.

A timeout uses SIGALRM: only in the main thread, and not in compiled code.  A memory limit (RLIMIT_AS) counts for each
process; it stops accidents, but is no sandbox.
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
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TextIO, TypeVar

import numpy as np

from dpaudit.running.worker import limit_memory
from dpaudit.settings import memory_text
from dpaudit.text import Reason, WarningCode

LONGEST = 1e6  # seconds (11 days), because timers and `select` have a maximum
_GRACE = 0.1  # seconds between the first interruptions, so that the code can clean up
_PATIENCE = 3  # number of interruptions at intervals of `_GRACE`; later interruptions are far more frequent
_SECONDS_BETWEEN = 1e-4  # mean interval between later interruptions, in seconds

_SPARE_HANDLES = 8  # writing a result, its PDF and a table needs fewer

_DEFAULT: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}  # of numpy
_foreign: dict[str, Any] = _DEFAULT

_P = ParamSpec("_P")
_T = TypeVar("_T")


class MechanismError(Exception):
    """Raised if a mechanism cannot be run or returns something other than its outputs."""


class Status(Exception):
    """Raised if a program or a service ends a run with a status other than success, which an analyst may see."""


class BudgetSpent(Exception):
    """Raised in place of a run if no further run is allowed.  The audit ends, and its verdict rests on earlier runs."""


THIS_PROCESS = "measured in dpaudit's process, around each call of the mechanism"
ENVIRONMENT = "measured in the private environment, around each call of the mechanism"
REPORTED = "reported by the program"
OUTSIDE = "measured from request to answer"
CLOCKS = (THIS_PROCESS, ENVIRONMENT, REPORTED, OUTSIDE)  # the ways to measure running times, as results state them


class RunTimeout(BaseException):
    """Raised inside a run that takes too long.  Not an Exception, because mechanisms often catch Exception."""


class Timeout:
    """Calls functions, and raises RunTimeout inside a function that takes too long; see `timeout_after`."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds, self._expired = seconds, f"took longer than {seconds or 0:g} s"
        self._armed, self._interruptions = False, 0

    def __call__(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function and return its result."""
        if self._seconds is None:
            return function(*args, **kwargs)
        self._interruptions, self._armed = 0, True
        try:
            signal.setitimer(signal.ITIMER_REAL, min(self._seconds, LONGEST), _GRACE)
            result = function(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException:
            if self._interruptions:
                raise RunTimeout(self._expired) from None
            raise
        finally:
            self._armed = False  # stays the first statement, because Python handles signals only at calls and jumps
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._interruptions:
            raise RunTimeout(self._expired)
        return result

    def interrupt(self, _: int, __: FrameType | None) -> None:
        """Handle SIGALRM; interrupt again at random times, since a mechanism may catch all exceptions in a loop."""
        if not self._armed:
            return
        self._interruptions += 1
        if self._interruptions > _PATIENCE:
            signal.setitimer(signal.ITIMER_REAL, _SECONDS_BETWEEN * _jitter.uniform(0.02, 2), _GRACE)
        raise RunTimeout(self._expired)


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
    """Limit the memory that this process may add while the `with` block runs; beyond it, MemoryError or death."""
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
    """Use foreign code's error state of numpy, and let `os._exit` raise SystemExit: its code 0 would be a verdict."""
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


@dataclass(slots=True)
class SideEffects:
    """Side effects that were observed during some runs.  Two objects can be added."""

    lines: int = 0  # number of lines printed to stdout
    first_line: str = ""  # the first printed line, cut to 80 characters
    moved_to: str = ""  # the new working directory, or "" if the mechanism did not change it
    legacy_randomness: bool = False  # whether the mechanism used the global random state of numpy or of Python
    changed: str = ""  # the dataset that the mechanism changed in place, such as "d0", or ""
    failed: int = 0  # number of failed runs, or of failed calls of a batched mechanism
    lost: int = 0  # number of times that a worker died or could not return outputs, so that runs were retried
    repeated: int = 0  # number of requests that a service did not answer, so that they were sent again
    clock: str = ""  # how running times were measured, one of CLOCKS, or "" if they were not observed

    def __add__(self, other: SideEffects) -> SideEffects:
        both = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return SideEffects(*(a + b if type(a) is int else a or b for a, b in both))

    def words(self) -> list[str]:
        """Return one sentence for each side effect that an auditor should know."""
        harmless = []
        if self.lines:
            harmless.append(
                f"the mechanism printed {self.lines:,} lines to stdout, which went to stderr; the first line: "
                f"{self.first_line!r}"
            )
        if self.moved_to:
            harmless.append(f"the mechanism changed the working directory to {self.moved_to}; dpaudit restored it")
        if self.legacy_randomness:
            harmless.append(
                "the mechanism uses global random state instead of its rng argument: the same seed may give other "
                "outputs next time"
            )
        if self.changed:
            harmless.append(f"the mechanism changes its dataset in place ({self.changed}); every run got a fresh copy")
        warnings: list[str] = [Reason(words, WarningCode.HARMLESS) for words in harmless]
        if self.lost:
            retried = (
                f"worker processes died or could not return their outputs ({self.lost} times), and these runs were "
                "retried: the audit covers only runs that do not end their worker process"
            )
            warnings.append(Reason(retried, WarningCode.RETRIED))
        if self.clock == REPORTED:
            warnings.append(
                "the program measured its running times, and reads only the dataset of the run: the size of a dataset "
                "may change these times through memory and caches, even if the program ignores the dataset"
            )
        if self.clock == OUTSIDE:
            warnings.append(
                "the program reported no running times, so they were measured from request to answer: they include the "
                "transfer and the reading of the dataset, which may take longer for larger datasets"
            )
        return warnings


@contextmanager
def watched(*, randomness: bool = True) -> Iterator[SideEffects]:
    """Observe and undo side effects inside the `with` block.  Their record is complete after it."""
    side_effects, folder = SideEffects(), current_folder()
    state = _global_states() if randomness else None
    alone = threading.current_thread() is threading.main_thread()  # all threads share stdout
    printed = redirect_stdout(_Printed(side_effects, sys.stderr)) if alone else nullcontext()  # type: ignore[type-var]
    spare: list[int] = []  # handles that are free again after a mechanism that has used up all others
    try:
        with suppress(OSError):
            while len(spare) < _SPARE_HANDLES:
                spare.append(os.open(os.devnull, os.O_RDONLY))
        with printed:
            yield side_effects
    finally:
        for handle in spare:
            with suppress(OSError):  # the mechanism may have closed it
                os.close(handle)
        if (moved := current_folder()) != folder:
            side_effects.moved_to = moved
            with suppress(OSError):
                os.chdir(folder)
        side_effects.legacy_randomness = state is not None and _global_states() != state


def _global_states() -> tuple[object, ...]:
    name, key, position, *gauss = np.random.get_state()  # noqa: NPY002  (to detect its use)
    return random.getstate(), name, np.asarray(key).tobytes(), position, *gauss


class _Printed:
    """A text stream that counts lines and forwards all text."""

    def __init__(self, side_effects: SideEffects, target: TextIO) -> None:
        self._side_effects, self._target = side_effects, target

    def write(self, text: str) -> int:
        self._side_effects.lines += text.count("\n")
        if not self._side_effects.first_line:
            self._side_effects.first_line = text.strip().split("\n")[0][:80]
        return self._target.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._target, name)
