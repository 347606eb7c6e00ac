"""Writes to stdout and stderr without ever ending an audit.

A stream may be closed, or it may be a pipe without a reader, a file on a full disk, or a terminal without Unicode.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from dpaudit.text import encodable, printable, quoted_lines

if TYPE_CHECKING:
    from dpaudit_reports.formats.facts import Screen


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
    """Keep stdout for results, before foreign code runs: what it writes to descriptor 1 goes to stderr from now on.

    Replacing `sys.stdout` is not enough for compiled code and child processes.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if sys.stdout.fileno() == 1:
            finish()
            own = open(os.dup(1), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)  # noqa: SIM115
            os.dup2(2, 1)
            sys.stdout = own


def finish() -> None:
    """Flush stdout and stderr; drop text that cannot be written, so that an error does not change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            _drop(stream)


def show(text: str) -> None:
    """Write a line to stdout, with control characters and changes of the text direction escaped."""
    _write(sys.stdout, f"{printable(text)}\n")


def say(text: str) -> None:
    """Write a message to stderr, with control characters and changes of the text direction escaped.

    Lines after the first are indented, so that text from a file or a mechanism cannot pass for another message.
    """
    _write(sys.stderr, f"{quoted_lines(text)}\n")


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

    from dpaudit_reports.formats.facts import Screen

    found = Console()
    wide = found.is_terminal or os.environ.get("COLUMNS", "").isdecimal()
    return Screen(
        width=max(found.width, 20) if wide else None,
        encoding=_encoding(sys.stdout),
        terminal=found.is_terminal and (is_terminal(sys.stdout) or bool(os.environ.get("FORCE_COLOR"))),
    )


def _encoding(stream: IO[str] | None) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


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
    """Write text; drop it if the stream cannot be written."""
    if stream is None:
        return
    try:
        stream.write(encodable(text, _encoding(stream)))
        stream.flush()
    except UnicodeError:
        with contextlib.suppress(OSError, ValueError):
            stream.write(text.encode("ascii", "backslashreplace").decode("ascii"))
    except (OSError, ValueError):
        _drop(stream)


def _drop(stream: IO[str]) -> None:
    """Discard the stream's buffer and all later output to the stream."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        number = stream.fileno()
        if number in (1, 2) or stream is sys.stdout:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, number)
            os.close(nothing)
