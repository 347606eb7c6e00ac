"""Shows progress on stderr while audits run.

A terminal shows one line, which is updated.  Any other stream gets a new line every few seconds.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from dpaudit.cli.terminal import drawn_line, encoding_of, is_terminal, say
from dpaudit.engine.audit import Progress
from dpaudit.result.model import AuditResult
from dpaudit.text.encodable import encodable
from dpaudit.text.printable import one_line
from dpaudit.text.signs import SIGNS

_INTERVAL = 5.0  # seconds between two lines if stderr is not a terminal
_QUIET_INTERVAL = 30.0  # seconds between two lines about several audits, each of which has a line at its end
_MIN_NAME = 16  # characters of the name that are shown before any other part of the line
_BAR = 14  # columns of the bar and of the spaces around it
_MIN_BAR = 100  # minimum width of a terminal, in columns, for showing the bar


@dataclass(slots=True)
class Pace:
    """Measures the speed of an audit from its first progress report on."""

    clock: Callable[[], float] = time.monotonic
    _first: tuple[float, int] | None = field(default=None, init=False)  # time and trials at the first progress report

    def measured(self, now: Progress) -> tuple[float, float]:
        """Return the runs per second and the remaining seconds; both are NaN while unknown.

        The remaining time assumes that the audit makes all allowed runs.  An audit that refutes its claim ends earlier.
        """
        at = self.clock()
        if self._first is None or now.trials < self._first[1]:
            self._first = (at, now.trials)
        passed, made = at - self._first[0], now.trials - self._first[1]
        if passed <= 0 or made <= 0:
            return math.nan, math.nan
        return made / passed, (now.allowed - now.trials) * passed / made


@contextmanager
def progress_bar(
    name: str, *, shown: bool, log_threshold: float | None = None
) -> Iterator[Callable[[Progress], None] | None]:
    """Show the progress of one audit: runs, rate, remaining time and evidence.

    Args:
        name: Name of the audit.  The number of the audit may precede the name, as in "2 of 4  NAME".
        shown: Whether to show anything.
        log_threshold: Logarithm of the evidence at which the audit stops; None if unknown.

    Yields:
        A function that shows the progress and never raises; None if nothing is shown.
    """
    if not shown:
        yield None
        return
    from rich.console import Console

    name, console = one_line(name), Console(stderr=True)
    if console.is_terminal:
        with _moving(name, console, log_threshold) as update:
            yield update
    else:
        yield _now_and_then(name)


def _now_and_then(name: str, clock: Callable[[], float] = time.monotonic) -> Callable[[Progress], None]:
    """Return a function that writes a progress line to stderr every few seconds, for a log."""
    pace, last = Pace(clock), clock()

    def update(now: Progress) -> None:
        nonlocal last
        measured, at = pace.measured(now), clock()
        if at - last >= _INTERVAL:
            last = at
            say(progress_line(name, now, *measured))

    return update


@contextmanager
def _moving(name: str, console: object, log_threshold: float | None) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    assert isinstance(console, Console)
    encoding = encoding_of(sys.stderr)
    whole = Column(no_wrap=True, overflow="crop")
    bar = console.width >= _MIN_BAR
    columns: list[ProgressColumn] = [
        SpinnerColumn("line"),
        *([BarColumn(bar_width=_BAR - 2)] if bar else []),
        TextColumn("{task.fields[line]}", markup=False, table_column=whole),
    ]
    pace, broken = Pace(), False

    def line(now: Progress | None) -> str:
        room = console.width - 2 - (_BAR if bar else 0) - 1
        if now is None:
            first = "" if log_threshold is None else f" · evidence 1 of {_amount(log_threshold)}"
            return encodable(f"{_folded(name, max(room - len(first), _MIN_NAME))}{first}", encoding)
        return encodable(progress_line(name, now, *pace.measured(now), width=room), encoding)

    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task("", total=None, line=line(None))

        def update(now: Progress) -> None:
            nonlocal broken
            if broken:
                return
            try:
                bars.update(task, total=now.allowed, completed=now.trials, line=line(now))
            except (OSError, ValueError, UnicodeError):
                broken = True  # the terminal has closed; the audit continues

        yield update


def status_line(
    *, shown: bool, clock: Callable[[], float] = time.monotonic
) -> Callable[[str], AbstractContextManager[None]]:
    """Return a function that shows one line about several audits during a `with` block.

    A terminal shows the line and erases it at the end of the block.  Any other stream gets the line if nothing was
    shown for a while.

    Args:
        shown: Whether to show anything.
        clock: The time in seconds.
    """
    last = clock()

    @contextmanager
    def status(text: str) -> Iterator[None]:
        nonlocal last
        if shown and is_terminal(sys.stderr):
            with drawn_line(text):
                yield
            return
        if shown and clock() - last >= _QUIET_INTERVAL:
            last = clock()
            say(text)
        yield

    return status


def progress_line(name: str, now: Progress, rate: float, left: float, *, width: int | None = None) -> str:
    """Return the progress in one line.

    Args:
        name: Name of the audit.  The number of the audit may precede the name.
        now: The progress.
        rate: Runs per second; NaN if unknown.
        left: Seconds until all allowed runs are made; NaN if unknown.
        width: Columns of the terminal; None if unlimited.  A narrow line omits first the rate, then the threshold of
            the evidence, the evidence, and the time.  The name gets the columns that the longest possible numbers
            leave, so that the width of the name stays constant.
    """
    whole = f"{now.allowed:,}"
    runs = (f"{now.trials:,} of {whole} runs", 2 * len(whole) + 9)
    rate_words = "" if math.isnan(rate) else f"{rate:,.0f} runs/s" if rate >= 10 else f"{rate:.2g} runs/s"
    speed = (rate_words, 14)
    time_left = ("" if math.isnan(left) else f"≤ {_duration(left)} left", 13)
    known = "" if math.isnan(now.log_e) else f"evidence {_amount(now.log_e)}"
    evidence, needed = (known, 15), (known and f"{known} of {_amount(now.log_threshold)}", 25)
    name = one_line(name)
    choices = (
        [runs, speed, time_left, needed],
        [runs, time_left, needed],
        [runs, time_left, evidence],
        [runs, time_left],
        [runs],
    )
    if width is None:
        return " · ".join(filter(None, [name, *(words for words, _ in choices[0])]))
    for parts in choices:
        room = width - sum(3 + max(most, len(words)) for words, most in parts)
        if room >= min(len(name), _MIN_NAME):
            break
    return " · ".join(filter(None, [_folded(name, max(room, 1)), *(words for words, _ in parts)]))[:width]


def _folded(name: str, columns: int) -> str:
    return name if len(name) <= columns else f"{name[: max(columns - 1, 0)]}…"


def _duration(seconds: float) -> str:
    if seconds < 99.5:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{math.ceil(minutes / 60)} h"


def _amount(log_e: float) -> str:
    if math.isnan(log_e):
        return "?"  # the value is unknown before the end of the audit
    return f"{math.exp(log_e):.3g}" if abs(log_e) < 20 else f"10^{log_e / math.log(10):.0f}"


def numbered(number: int, audits: int, name: str) -> str:
    """Return the name after its number, "2 of 4  NAME"; the name alone if there is only one audit."""
    return name if audits == 1 else f"{number:{len(str(audits))}d} of {audits}  {name}"


def ended_line(number: int, audits: int, result: AuditResult) -> str:
    """Return the line that is shown when an audit ends."""
    verdict = SIGNS[result.verdict.value].shown()
    return (
        f"{number:{len(str(audits))}d} of {audits}  {one_line(result.name)}  {verdict}  "
        f"{result.trials_used:,} runs  {result.elapsed_s:.1f} s"
    )
