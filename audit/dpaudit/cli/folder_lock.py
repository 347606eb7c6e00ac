"""Reserves an output folder for one command, which writes the same files again and again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from dpaudit.cli.prepare_run import CommandSettings, NotReady

try:
    import fcntl
except ImportError:  # Windows, where folders cannot be locked
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def sole_use(command: CommandSettings) -> Iterator[None]:
    """Hold the output folder, which must exist, until the `with` block ends or this process dies."""
    if fcntl is None:
        yield
        return
    handle = os.open(command.output, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotReady(
                f"{command.shown or command.output} is in use by another sweep; wait until it ends, or name another "
                "folder with -o"
            ) from None
        yield
    finally:
        os.close(handle)
