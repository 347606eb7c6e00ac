"""Detects, reports and undoes side effects of a mechanism: stdout, chdir, global random state."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, fields
from typing import TextIO

import numpy as np

from dpaudit.running.limits import current_folder
from dpaudit.running.protocol import OUTSIDE, REPORTED
from dpaudit.text import Reason, WarningCode

_SPARE_HANDLES = 8  # writing a result, its PDF and a table needs fewer


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
    clock: str = ""  # how running times were measured, one of CLOCKS, or "" if they were not observed

    def __add__(self, other: SideEffects) -> SideEffects:
        both = [(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)]
        return SideEffects(*(a + b if type(a) is int else a or b for a, b in both))

    def words(self) -> list[str]:
        """Return one sentence for each side effect that an auditor should know."""
        harmless = []
        if self.lines:
            first = f"{self.first_line!r}"
            harmless.append(
                f"the mechanism printed {self.lines:,} lines to stdout, which went to stderr; the first line: {first}"
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
        found: list[str] = [Reason(words, WarningCode.HARMLESS) for words in harmless]
        if self.lost:
            words = (
                f"worker processes died or could not return their outputs ({self.lost} times), and these runs were "
                "retried: the audit covers only runs that do not end their worker process"
            )
            found.append(Reason(words, WarningCode.RETRIED))
        if self.clock == REPORTED:
            found.append(
                "the program measured its running times, and reads only the dataset of the run: the size of a dataset "
                "may change these times through memory and caches, even if the program ignores the dataset"
            )
        if self.clock == OUTSIDE:
            found.append(
                "the program reported no running times, so they were measured from request to answer: they include the "
                "transfer and the reading of the dataset, which may take longer for larger datasets"
            )
        return found


@contextmanager
def watched(*, randomness: bool = True) -> Iterator[SideEffects]:
    """Observe and undo side effects inside the `with` block.  Their record is complete after it."""
    side_effects, folder = SideEffects(), current_folder()
    state = _global_states() if randomness else None
    alone = threading.current_thread() is threading.main_thread()  # all threads share stdout
    printed = redirect_stdout(_Printed(side_effects, sys.stderr)) if alone else nullcontext()  # type: ignore[type-var]
    try:
        with _spare_handles(), printed:
            yield side_effects
    finally:
        if (moved := current_folder()) != folder:
            side_effects.moved_to = moved
            with suppress(OSError):
                os.chdir(folder)
        side_effects.legacy_randomness = state is not None and _global_states() != state


@contextmanager
def _spare_handles() -> Iterator[None]:
    """Occupy file handles inside the `with` block, and free them at its end."""
    spare: list[int] = []
    with suppress(OSError):
        while len(spare) < _SPARE_HANDLES:
            spare.append(os.open(os.devnull, os.O_RDONLY))
    try:
        yield
    finally:
        for handle in spare:
            with suppress(OSError):  # the mechanism may have closed it
                os.close(handle)


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
