"""Removes temporary files and folders that a killed process left.

A process locks each temporary file or folder while it uses it.  The system releases the lock when the process ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # on Windows, leftovers are kept
    fcntl = None  # type: ignore[assignment]

PART_FILE = re.compile(r"\.dpaudit-\w+\.part")
_FOLDER_PREFIX = "dpaudit-empty-"
_FOLDER = re.compile(rf"{_FOLDER_PREFIX}\w+")
_MIN_AGE = 60.0  # seconds; a process locks a file much sooner after creating it


def hold(handle: int) -> None:
    """Lock an open temporary file or folder until it is closed, so that no other process removes it."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_leftovers(folder: str | os.PathLike[str] | int, names: re.Pattern[str] = PART_FILE) -> None:
    """Remove the temporary files and folders of dead processes.  Errors are ignored.

    Only files and folders of this user that are older than a minute and that no process holds are removed.  Symbolic
    links are kept.
    """
    if fcntl is None:
        return
    with contextlib.suppress(OSError), _opened(folder) as root:
        for name in os.listdir(root):
            if names.fullmatch(name):
                with contextlib.suppress(OSError):
                    _remove_if_left(name, root)


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """Provide a new empty folder in the system's temporary folder, and remove it and leftovers of dead processes."""
    remove_leftovers(tempfile.gettempdir(), _FOLDER)
    with tempfile.TemporaryDirectory(prefix=_FOLDER_PREFIX) as folder, _opened(folder) as handle:
        hold(handle)
        yield folder


@contextlib.contextmanager
def _opened(folder: str | os.PathLike[str] | int) -> Iterator[int]:
    if isinstance(folder, int):
        yield folder
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


def _remove_if_left(name: str, root: int) -> None:
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=root)
    try:
        about = os.fstat(handle)
        if about.st_uid != os.getuid() or time.time() - about.st_mtime < _MIN_AGE:
            return
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises OSError if a process holds the file
        if stat.S_ISREG(about.st_mode):
            os.unlink(name, dir_fd=root)
        elif stat.S_ISDIR(about.st_mode):
            shutil.rmtree(name, dir_fd=root)
    finally:
        os.close(handle)
