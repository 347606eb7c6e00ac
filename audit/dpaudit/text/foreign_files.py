"""Reads files that somebody else may have made: no pipe is waited for, no device is read, no memory is filled."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_foreign(path: str | Path, max_bytes: int) -> str:
    """The text of a regular file, as UTF-8.

    Args:
        path: The file, or a link to it.
        max_bytes: The largest size that is read.

    Raises:
        OSError: The file cannot be read, is no regular file, or is larger; `strerror` says which.
        UnicodeDecodeError: It is not UTF-8.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe without a writer opens at once
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "is no regular file (a folder, device or pipe)", str(path))
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"has more than {max_bytes:,} bytes, the largest size that is read", str(path))
    return content.decode("utf-8")
