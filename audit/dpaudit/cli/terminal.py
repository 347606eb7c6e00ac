"""The streams of a command, which never end an audit, and the end of a command: exit codes, signals and errors.

A stream may be closed, or it may be a pipe without a reader, a file on a full disk, or a terminal without Unicode.

Exit codes: 0 no violation found, 1 violation, 2 wrong usage or config, 3 inconclusive or not completed, and 4 internal
error.  After several audits, the most serious outcome sets the code, in the order 1, 4, 3, 0.  If `dpaudit run` or
`dpaudit compare` exits with code 2, no audit has started.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, NoReturn

import typer

from dpaudit.text import Refused, encodable, masked, masked_command, printable

if TYPE_CHECKING:
    from dpaudit_reports.formats import Screen

NO_VIOLATION, VIOLATION, WRONG_USAGE, INCONCLUSIVE, INTERNAL_ERROR = 0, 1, 2, 3, 4

_PACKAGES = ("dpaudit", "numpy", "scipy", "scikit-learn", "joblib", "pydantic", "PyYAML", "typer", "rich")

chosen_codes: list[int] = []  # the exit code that the command chose; empty before the choice
_signals: list[int] = []  # that this process received


def prepare() -> None:
    """Make sure that all standard streams can be used.  Call this once, before any output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:  # the stream is closed, and the next file to be opened would get its descriptor
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def keep_stdout() -> None:
    """Keep stdout for results: what foreign code writes to descriptor 1 goes to stderr from now on."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if sys.stdout.fileno() == 1:
            finish()
            own = open(os.dup(1), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)  # noqa: SIM115
            os.dup2(2, 1)
            sys.stdout = own


def finish() -> None:
    """Flush stdout and stderr; drop text that cannot be written, so that an error does not change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        _write(stream, "")


def show(text: str) -> None:
    """Write a line to stdout, with control characters and changes of the text direction escaped."""
    _write(sys.stdout, f"{printable(text)}\n")


def say(text: str) -> None:
    """Write a message to stderr, control characters escaped and later lines indented, so none passes for another."""
    first, *others = printable(text).split("\n")
    lines = [first, *(line if line.startswith("  ") or not line else f"  {line}" for line in others)]
    _write(sys.stderr, "\n".join(lines) + "\n")


def complain(text: str) -> None:
    """Write an error to stderr as `say` does, after the word "error:", which is red on a terminal."""
    red = is_terminal(sys.stderr) and not os.environ.get("NO_COLOR")
    _write(sys.stderr, "\x1b[1;31merror:\x1b[0m " if red else "error: ")
    say(text)


def drawn(text: str) -> None:
    """Write text rendered by `rich` to stdout, including its colour codes."""
    _write(sys.stdout, text)


def screen() -> Screen:
    """Describe stdout; its width is unlimited in a file or a pipe, unless COLUMNS is set."""
    from rich.console import Console

    from dpaudit_reports.formats import Screen

    console = Console()
    wide = console.is_terminal or os.environ.get("COLUMNS", "").isdecimal()
    return Screen(
        width=max(console.width, 20) if wide else None,
        encoding=getattr(sys.stdout, "encoding", None) or "utf-8",
        terminal=console.is_terminal and (is_terminal(sys.stdout) or bool(os.environ.get("FORCE_COLOR"))),
    )


@contextlib.contextmanager
def waiting(text: str, *, shown: bool) -> Iterator[None]:
    """Show what the program is doing."""
    if shown and is_terminal(sys.stderr):
        with drawn_line(f"{text} ..."):
            yield
        return
    if shown:
        say(f"{text} ...")
    yield


@contextlib.contextmanager
def drawn_line(text: str) -> Iterator[None]:
    """Show a line on a terminal's stderr during the `with` block, cut to the width of the terminal."""
    _write(sys.stderr, f"\r{printable(text)[: max(shutil.get_terminal_size().columns - 1, 1)]}\x1b[K")
    try:
        yield
    finally:
        _write(sys.stderr, "\r\x1b[2K")


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether the stream is a terminal that can move its cursor."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except (ValueError, AttributeError):
        return False


def _write(stream: IO[str] | None, text: str) -> None:
    """Write text and flush the stream; if that fails, discard its buffer and all later output to it."""
    if stream is None:
        return
    try:
        stream.write(encodable(text, getattr(stream, "encoding", None)))
        stream.flush()
    except UnicodeError:
        with contextlib.suppress(OSError, ValueError):
            stream.write(text.encode("ascii", "backslashreplace").decode("ascii"))
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            number = stream.fileno()
            if number in (1, 2) or stream is sys.stdout:
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, number)
                os.close(nothing)


def handle_termination() -> None:
    """Treat SIGTERM and SIGHUP, unless ignored, like Ctrl-C, so that results are written; the same again kills."""

    def interrupt(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        _signals.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupt)


def interrupted_code() -> int:
    """Return the exit code of an interrupted command: 128 + signal number, as in shells."""
    return 128 + (_signals[0] if _signals else signal.SIGINT)


def internal_error(error: BaseException) -> int:
    """Report an error of dpaudit itself, or a lack of memory, disk space or file handles; return the exit code."""
    if isinstance(error, ImportError) and error.name == "fcntl":  # on Windows
        complain(str(error))
        return WRONG_USAGE
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
    file, brief = "", ""
    with contextlib.suppress(Exception):  # file handles may have run out, or the traceback is too deep
        text = "".join(traceback.format_exception(error))
        if debug:
            say(text.rstrip())
        content = _bug_report(text).encode("utf-8", "backslashreplace")
        safe = folder is not None and folder.is_dir() and not folder.is_symlink()
        for place in [folder, None] if safe else [None]:  # None is the folder for temporary files
            with contextlib.suppress(OSError, RuntimeError):
                prefix = f"dpaudit-error-{datetime.now(UTC):%Y%m%d-%H%M%S}-"
                with tempfile.NamedTemporaryFile(prefix=prefix, suffix=".txt", dir=place, delete=False) as stream:
                    stream.write(content)
                file = stream.name
                break
    with contextlib.suppress(Exception):
        words = " ".join(str(error).split())[:200]
        brief = f": {words}" if words else ""
    return f"internal error, please report{f', and attach {file}' if file else ''}: {type(error).__name__}{brief}"


def _bug_report(text: str) -> str:
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
