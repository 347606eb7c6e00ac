"""The events of --log-json: one JSON object per line, for programs that watch a run."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from dpaudit.cli.prepare_run import NotReady
from dpaudit.cli.terminal import say
from dpaudit.mechanisms.raised import message_of
from dpaudit.result.model import AuditResult


@contextlib.contextmanager
def event_log(file: Path | None) -> Iterator[Callable[..., None]]:
    """Open the file of --log-json, if one was given.

    Yields:
        A function that appends an event to the file.  The function never raises, and does nothing if `file` is None.
    """
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
    """Write the event of an audit that has ended."""
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
