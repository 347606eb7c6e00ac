"""Reads files from untrusted sources without waiting for a pipe, reading a device or filling the memory."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_foreign(path: str | Path) -> BinaryIO:
    """Open a regular file for reading."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # opening a pipe without a writer must not block
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file but a folder, device or pipe", str(path))
    return os.fdopen(handle, "rb")


def read_foreign(path: str | Path, max_bytes: int) -> str:
    """Read the text of a regular file, encoded as UTF-8.

    Returns:
        The text.
    """
    with open_foreign(path) as file:
        # in pieces, because one call would reserve memory for the maximum size
        content = b"".join(iter(lambda: file.read(min(2**20, max_bytes + 1 - file.tell())), b""))
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"is larger than {max_bytes:,} bytes, the maximum size of a file to read", str(path))
    return content.decode("utf-8")
