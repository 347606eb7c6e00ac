"""Reports errors of dpaudit itself, with one line for the user and a file to attach to a bug report."""

from __future__ import annotations

import contextlib
import platform
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path

from dpaudit.cli.terminal import say
from dpaudit.text.masking import masked, masked_command

_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "pydantic", "PyYAML", "typer", "rich")


def command_line() -> str:
    """Return the command line, quoted for a shell, with a mask in place of anything that looks like a secret."""
    return masked_command(["dpaudit", *sys.argv[1:]])


def report_internal_error(error: BaseException, folder: Path | None = None, *, debug: bool = False) -> str:
    """Write a file for a bug report, and return a line that names it.

    Returns:
        A line for the user.  The function never raises, even if the disk is full.
    """
    try:
        text = "".join(traceback.format_exception(error))
        if debug:
            say(text.rstrip())
        file = _written(_about(text), folder)
    except Exception:  # file handles may have run out, or the traceback is too deep
        file = None
    return f"internal error, please report{f', and attach {file}' if file else ''}: {_brief(error)}"


def _about(text: str) -> str:
    from dpaudit.text.version import __version__

    lines = [
        f"dpaudit ended with an internal error on {datetime.now(UTC):%Y-%m-%d at %H:%M:%S} UTC.",
        "This file holds the command line, the versions and the traceback.  Text that looks like a secret is masked.",
        "Check this file for private data before you publish it.",
        "",
        f"command: {command_line()}",
        f"Python {platform.python_version()}, {platform.platform()}",
        f"dpaudit {__version__}",
        *(f"{name} {version}" for name in _PACKAGES if (version := _version(name))),
        "",
        *map(masked, text.split("\n")),
    ]
    return "\n".join(lines)


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _brief(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())[:200]
    except Exception:
        text = ""
    return f"{type(error).__name__}{': ' if text else ''}{text}"


def _written(text: str, folder: Path | None) -> Path | None:
    data = text.encode("utf-8", "backslashreplace")
    for place in (folder, None):
        if place is not None and (place.is_symlink() or not place.is_dir()):
            continue
        with contextlib.suppress(OSError, RuntimeError):
            with tempfile.NamedTemporaryFile(
                prefix=f"dpaudit-error-{datetime.now(UTC):%Y%m%d-%H%M%S}-", suffix=".txt", dir=place, delete=False
            ) as stream:
                stream.write(data)
            return Path(stream.name)
    return None
