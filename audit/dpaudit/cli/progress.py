"""Shows the progress of audits on stderr, and writes the events of --log-json for programs that watch a run.

A terminal shows one line, which is updated.  Any other stream gets a new line every few seconds.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from dpaudit.cli.prepare_run import NotReady
from dpaudit.cli.terminal import drawn_line, is_terminal, say
from dpaudit.engine import progress_line
from dpaudit.engine.audit import Progress
from dpaudit.mechanisms.raised import message_of
from dpaudit.result.model import AuditResult
from dpaudit.text.printable import one_line
from dpaudit.text.signs import SIGNS

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
    return (
        f"{number:{len(str(audits))}d} of {audits}  {one_line(result.name)}  {verdict}  "
        f"{result.trials_used:,} runs  {result.elapsed_s:.1f} s"
    )


@contextmanager
def event_log(file: Path | None) -> Iterator[Callable[..., None]]:
    """Yield a function that appends an event to a file as a line of JSON, and never raises."""
    if file is None:
        yield lambda kind, **about: None
        return
    try:
        stream = open(file, "a", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
    except OSError as error:
        raise NotReady(f"--log-json {file}: {error.strerror}") from None
    writable = True

    def write_event(kind: str, **about: object) -> None:
        nonlocal writable
        finite = {key: None if value != value else value for key, value in about.items()}  # JSON has no NaN
        try:
            if writable:
                stream.write(json.dumps({"event": kind, **finite}, ensure_ascii=False) + "\n")
        except (OSError, ValueError, TypeError) as error:
            writable = False
            say(f"--log-json {file}: {message_of(error)}; no more events are written, but the audits continue")

    try:
        yield write_event
    finally:
        with contextlib.suppress(OSError):
            stream.close()


def log_result(log: Callable[..., None], result: AuditResult) -> None:
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
