"""Shows progress on stderr while audits run.

A terminal shows one line, which is updated.  Any other stream gets a new line every few seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from dpaudit.cli.terminal import drawn_line, encoding_of, is_terminal, say
from dpaudit.engine.audit import Progress
from dpaudit.engine.progress_line import INTERVAL, MIN_NAME, Pace, amount, folded, progress_line
from dpaudit.result.model import AuditResult
from dpaudit.text.printable import encodable, one_line
from dpaudit.text.signs import SIGNS

_QUIET_INTERVAL = 30.0  # seconds between two lines about several audits, each of which has a line at its end
_BAR = 14  # columns of the bar and of the spaces around it
_MIN_BAR = 100  # minimum width of a terminal, in columns, for showing the bar


@contextmanager
def progress_bar(
    name: str, *, shown: bool, log_threshold: float | None = None
) -> Iterator[Callable[[Progress], None] | None]:
    """Show the progress of one audit: runs, rate, remaining time and evidence.

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
        if at - last >= INTERVAL:
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
            first = "" if log_threshold is None else f" · evidence 1 of {amount(log_threshold)}"
            return encodable(f"{folded(name, max(room - len(first), MIN_NAME))}{first}", encoding)
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
