"""Shows the progress of one audit as a line: for `progress=True` in Python and notebooks, and for the command line."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from dpaudit.engine.collector import Progress
from dpaudit.text import encodable, one_line

INTERVAL = 5.0  # seconds between two lines in a log
NAME_COLUMNS = 16  # characters of the name that are shown before any other part of the line
_REDRAWN = 0.2  # minimum seconds between two changes of a line
_BAR = 20  # columns of the bar
_NOTEBOOK = 110  # columns of a line in a notebook


@dataclass(slots=True)
class Pace:
    """Measures the speed of an audit from its first progress report on."""

    clock: Callable[[], float] = time.monotonic
    _first: tuple[float, int] | None = field(default=None, init=False)  # time and trials at the first progress report

    def measured(self, now: Progress) -> tuple[float, float]:
        """Return the runs per second and the seconds until all allowed runs are made; both are NaN while unknown."""
        at = self.clock()
        if self._first is None or now.trials < self._first[1]:
            self._first = (at, now.trials)
        passed, made = at - self._first[0], now.trials - self._first[1]
        if passed <= 0 or made <= 0:
            return math.nan, math.nan
        return made / passed, (now.allowed - now.trials) * passed / made


def progress_line(name: str, now: Progress, rate: float, left: float, *, width: int | None = None) -> str:
    """Return the progress in one line."""
    whole = f"{now.allowed:,}"
    runs = (f"{now.trials:,} of {whole} runs", 2 * len(whole) + 9)
    rate_words = "" if math.isnan(rate) else f"{rate:,.0f} runs/s" if rate >= 10 else f"{rate:.2g} runs/s"
    speed = (rate_words, 14)
    time_left = ("" if math.isnan(left) else f"≤ {duration(left)} left", 13)
    known = "" if math.isnan(now.log_e) else f"evidence {amount(now.log_e)}"
    evidence, needed = (known, 15), (known and f"{known} of {amount(now.log_threshold)}", 25)
    name = one_line(name)
    longest = [runs, speed, time_left, needed]
    choices = longest, [runs, time_left, needed], [runs, time_left, evidence], [runs, time_left], [runs]
    if width is None:
        return " · ".join(filter(None, [name, *(words for words, _ in longest)]))
    for parts in choices:
        room = width - sum(3 + max(most, len(words)) for words, most in parts)
        if room >= min(len(name), NAME_COLUMNS):
            break
    return " · ".join(filter(None, [folded(name, max(room, 1)), *(words for words, _ in parts)]))[:width]


def folded(name: str, columns: int) -> str:
    """Cut a name to a number of columns."""
    return name if len(name) <= columns else f"{name[: max(columns - 1, 0)]}…"


def duration(seconds: float) -> str:
    """Return a time in seconds, minutes or hours, rounded up."""
    if seconds < 99.5:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{math.ceil(minutes / 60)} h"


def amount(log_e: float) -> str:
    """Return evidence as text, given its logarithm."""
    if math.isnan(log_e):
        return "?"  # the value is unknown before the end of the audit
    return f"{math.exp(log_e):.3g}" if abs(log_e) < 20 else f"10^{log_e / math.log(10):.0f}"


@contextmanager
def shown(
    progress: Callable[[Any], None] | bool | None, name: str = "", words: Callable[[Any], str] | None = None
) -> Iterator[Callable[[Any], None] | None]:
    """Yield the function that is called after each block."""
    if progress is not True:
        yield progress or None
        return
    line = _Line(name, words, sys.stderr)
    try:
        yield line
    finally:
        line.end()


class _Line:
    """A line on stderr with a bar, which moves in a terminal and in a notebook; elsewhere a line every few seconds."""

    def __init__(
        self, name: str, words: Callable[[Any], str] | None, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._words, self._stream, self._clock = name, words, stream, clock
        self._pace = Pace(clock)
        notebook = type(stream).__module__.startswith("ipykernel")
        self._moves = notebook or (stream.isatty() and os.environ.get("TERM") != "dumb")
        self._width = _NOTEBOOK if notebook or not self._moves else shutil.get_terminal_size().columns - 1
        self._last = -math.inf if self._moves else clock()
        self._drawn = 0  # columns of the line on the screen

    def __call__(self, now: Any) -> None:
        """Show the progress.  An error of the stream ends the display, never the audit."""
        rate, left = self._pace.measured(now) if self._words is None else (math.nan, math.nan)
        at = self._clock()
        if at - self._last < (_REDRAWN if self._moves else INTERVAL):
            return
        self._last = at
        room = self._width - _BAR - 3
        line = self._words(now) if self._words else progress_line(self._name, now, rate, left, width=room)
        if not self._moves:
            self._write(f"{line}\n")
            return
        done = getattr(now, "trials", None)
        share = (now.models if done is None else done) / max(now.allowed, 1)
        line = f"[{'#' * round(_BAR * share):<{_BAR}}] {line}"[: self._width]
        self._write(f"\r{line:<{self._drawn}}")
        self._drawn = len(line)

    def end(self) -> None:
        """Remove the line."""
        if self._drawn:
            self._write(f"\r{'':<{self._drawn}}\r")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(encodable(text, getattr(self._stream, "encoding", None)))
            self._stream.flush()
        except (OSError, ValueError):  # the stream has been closed
            self._moves, self._last, self._drawn = False, math.inf, 0
