"""Atomic writing: a file has its old content or its new content, never a part of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    r"""Write a file in one step, so that readers find the old content or the new one, even if the disk is full.

    The mode of an existing file is kept.  A symbolic link is followed; callers that did not get the path from the user
    must check for links themselves.

    Args:
        path: The file.  A special file such as /dev/stdout is written directly.
        content: Bytes, or text to write as UTF-8.  A lone surrogate, such as half of a character in a file name, is
            written as \udXXX, which JSON reads back unchanged.

    Raises:
        OSError: If the file cannot be written.  No temporary file remains then.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # such as /dev/stdout; the system refuses a folder
        target.write_bytes(data)
        return
    handle, part = tempfile.mkstemp(prefix=".dpaudit-", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())  # otherwise a power cut may leave an empty file under the new name
        os.chmod(part, _mode(target))
        os.replace(part, target)
        _flush_folder(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, if the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mode(target: Path) -> int:
    """Return the permissions of an existing file, or those of a new one."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
