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

_PACKAGES = ("dpaudit", "numpy", "scipy", "scikit-learn", "joblib", "pydantic", "PyYAML", "typer", "rich")


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
