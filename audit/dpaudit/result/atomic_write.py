"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    r"""Write a file in one step: readers find the old content or the new one, also if the disk is full.

    Text is written as UTF-8.  A lone surrogate, such as half of a character in a file name, is written as \udXXX,
    which JSON reads back as the same.  The mode of a file that is replaced is kept.  A symbolic link is followed:
    callers that did not get the path from the user check for links themselves.

    Raises:
        OSError: If the file cannot be written; nothing is left behind then.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # /dev/stdout; a folder is refused by the system
        target.write_bytes(data)
        return
    handle, part = tempfile.mkstemp(prefix=".dpaudit-", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())  # or a power cut leaves an empty file under the new name
        os.chmod(part, _mode(target))
        os.replace(part, target)
        _flush_folder(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _flush_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mode(target: Path) -> int:
    """Permissions of the file that is replaced, or those of a new one."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
