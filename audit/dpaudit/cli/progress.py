"""Shows the progress of audits on stderr, and writes the events of --log-json for programs that watch a run.

A terminal shows one line, which is updated.  Any other stream gets a new line every few seconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from dpaudit.cli.terminal import drawn_line, is_terminal, say
from dpaudit.engine import progress_line
from dpaudit.engine.audit import Progress
from dpaudit.result.model import AuditResult
from dpaudit.running.outcomes import message_of
from dpaudit.text import SIGNS, one_line

_QUIET_INTERVAL = 30.0  # seconds between two lines about several audits, each of which has a line at its end


@contextmanager
def progress_bar(name: str, *, shown: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that shows the progress of one audit, and never raises; None if nothing is shown."""
    name = one_line(name)
    first = drawn_line(name) if shown and is_terminal(sys.stderr) else nullcontext()
    with first, progress_line.shown(shown, name) as update:
        yield update


def status_line(*, shown: bool) -> Callable[[str], AbstractContextManager[None]]:
    """Return a function that shows one line about several audits during a `with` block."""
    last = time.monotonic()

    def status(text: str) -> AbstractContextManager[None]:
        nonlocal last
        if shown and is_terminal(sys.stderr):
            return drawn_line(text)
        if shown and time.monotonic() - last >= _QUIET_INTERVAL:
            last = time.monotonic()
            say(text)
        return nullcontext()

    return status


def numbered(number: int, audits: int, name: str) -> str:
    """Return the name after its number, "2 of 4  NAME"; the name alone if there is only one audit."""
    return name if audits == 1 else f"{number:{len(str(audits))}d} of {audits}  {name}"


def ended_line(number: int, audits: int, result: AuditResult) -> str:
    verdict = SIGNS[result.verdict.value].shown()
    place = f"{number:{len(str(audits))}d} of {audits}  {one_line(result.name)}"
    return f"{place}  {verdict}  {result.trials_used:,} runs  {result.elapsed_s:.1f} s"


class EventLog:
    """Appends events to the file of --log-json as lines of JSON, and never raises; without a file, does nothing."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def __call__(self, kind: str, **about: object) -> None:
        if self._file is None:
            return
        finite = {key: None if value != value else value for key, value in about.items()}  # JSON has no NaN
        try:
            with self._file.open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(json.dumps({"event": kind, **finite}, ensure_ascii=False) + "\n")
        except (OSError, ValueError, TypeError) as error:
            say(f"--log-json {self._file}: {message_of(error)}; no more events are written, but the audits continue")
            self._file = None


def log_result(log: EventLog, result: AuditResult) -> None:
    log(
        "ended",
        audit=result.name,
        verdict=result.verdict.value,
        p_value=result.p_value,
        mu_lower=result.mu_lower,
        trials=result.trials_used,
        stopped_by=result.stopped_by,
        elapsed_s=round(result.elapsed_s, 3),
        warnings=list(result.warnings),
    )
