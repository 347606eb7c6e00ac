"""Reads files from untrusted sources without waiting for a pipe, reading a device or filling the memory."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

MAX_FILE_BYTES = 2**28  # a file that somebody else may have written is read into memory


def open_foreign(path: str | Path) -> BufferedReader:
    """Open a regular file for reading."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # opening a pipe without a writer must not block
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file but a folder, device or pipe", str(path))
    return os.fdopen(handle, "rb")


def read_foreign(path: str | Path, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Read the text of a regular file, encoded as UTF-8."""
    with open_foreign(path) as file:
        # in pieces, because one call would reserve memory for the maximum size
        content = b"".join(iter(lambda: file.read(min(2**20, max_bytes + 1 - file.tell())), b""))
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"is larger than {max_bytes:,} bytes, the maximum size of a file to read", str(path))
    return content.decode("utf-8")
