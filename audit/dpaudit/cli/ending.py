"""The end of a command: exit codes, signals, refusals, and errors of dpaudit itself.

Exit codes: 0 no violation found, 1 violation, 2 wrong usage or config, 3 inconclusive or not completed, and 4 internal
error.  After several audits, the most serious outcome sets the code, in the order 1, 4, 3, 0.  If `dpaudit run` or
`dpaudit compare` exits with code 2, no audit has started.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

import typer

from dpaudit.cli.terminal import complain, say
from dpaudit.text import Refused, masked, masked_command

NO_VIOLATION, VIOLATION, WRONG_USAGE, INCONCLUSIVE, INTERNAL_ERROR = 0, 1, 2, 3, 4

_PACKAGES = ("dpaudit", "numpy", "scipy", "scikit-learn", "joblib", "pydantic", "PyYAML", "typer", "rich")

chosen_codes: list[int] = []  # the exit code that the command chose; empty before the choice
_received: list[int] = []  # signals


def handle_termination() -> None:
    """Treat SIGTERM and SIGHUP like Ctrl-C, so that the results so far are written; the same signal again kills.

    An ignored signal stays ignored, such as SIGHUP under `nohup`.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    _received.append(number)
    raise KeyboardInterrupt


def interrupted_code() -> int:
    """Return the exit code of an interrupted command: 128 + signal number, as in shells."""
    return 128 + (_received[0] if _received else signal.SIGINT)


def internal_error(error: BaseException) -> int:
    """Report an error of dpaudit itself, or a lack of memory, disk space or file handles; return the exit code."""
    from dpaudit.running.outcomes import message_of, of_machine

    if of_machine(error):
        complain(f"the command is not completed: {message_of(error) or 'out of memory'}")
        return INCONCLUSIVE
    say(report_internal_error(error, debug="--debug" in sys.argv))
    return INTERNAL_ERROR


def command_line() -> str:
    """Return the command line, quoted for a shell, with a mask in place of anything that looks like a secret."""
    return masked_command(["dpaudit", *sys.argv[1:]])


def report_internal_error(error: BaseException, folder: Path | None = None, *, debug: bool = False) -> str:
    """Write a file for a bug report, and return a line that names it.  Never raise, even if the disk is full."""
    file, brief = None, ""
    with contextlib.suppress(Exception):  # file handles may have run out, or the traceback is too deep
        text = "".join(traceback.format_exception(error))
        if debug:
            say(text.rstrip())
        file = _written(_about(text), folder)
    with contextlib.suppress(Exception):
        words = " ".join(str(error).split())[:200]
        brief = f": {words}" if words else ""
    return f"internal error, please report{f', and attach {file}' if file else ''}: {type(error).__name__}{brief}"


def _about(text: str) -> str:
    import platform
    from importlib.metadata import distributions

    versions = {one.metadata["Name"]: one.version for one in distributions()}
    lines = [
        f"dpaudit ended with an internal error on {datetime.now(UTC):%Y-%m-%d at %H:%M:%S} UTC.",
        "This file holds the command line, the versions and the traceback, with masks in place of passwords.",
        "Check this file for private data before you publish it.",
        "",
        f"command: {command_line()}",
        f"Python {platform.python_version()}, {platform.platform()}",
        *(f"{name} {versions[name]}" for name in _PACKAGES if name in versions),
        "",
        *map(masked, text.split("\n")),
    ]
    return "\n".join(lines)


def _written(text: str, folder: Path | None) -> Path | None:
    """Write the file into the folder, or else into the folder for temporary files."""
    for place in (folder, None):
        if place is not None and (place.is_symlink() or not place.is_dir()):
            continue
        with contextlib.suppress(OSError, RuntimeError):
            prefix = f"dpaudit-error-{datetime.now(UTC):%Y%m%d-%H%M%S}-"
            with tempfile.NamedTemporaryFile(prefix=prefix, suffix=".txt", dir=place, delete=False) as stream:
                stream.write(text.encode("utf-8", "backslashreplace"))
            return Path(stream.name)
    return None


def code_of(*, violated: bool, broken: bool, incomplete: bool) -> int:
    """Return the code of the most serious outcome."""
    return VIOLATION if violated else INTERNAL_ERROR if broken else INCONCLUSIVE if incomplete else NO_VIOLATION


def leave(code: int) -> NoReturn:
    chosen_codes[:] = [code]
    raise typer.Exit(code)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that an unexpected exception gives the code of an internal error, never that of a verdict."""

    @functools.wraps(command)
    def checked(*values: object, **named: object) -> None:
        try:
            command(*values, **named)
        except (typer.Exit, typer.Abort, KeyboardInterrupt):
            raise
        except Refused as error:
            refuse(*error.problems)
        except BaseException as error:  # includes SystemExit, which only foreign code raises here
            leave(internal_error(error))

    checked.__signature__ = inspect.signature(command, eval_str=True)  # type: ignore[attr-defined]
    return checked


def print_traceback(debug: bool) -> None:
    if debug:
        say(traceback.format_exc().rstrip())


def refuse(*messages: str) -> NoReturn:
    """Report wrong usage and end the command; each message is an error."""
    for message in messages:
        complain(message)
    leave(WRONG_USAGE)
