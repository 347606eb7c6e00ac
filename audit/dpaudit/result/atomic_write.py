"""Writes files atomically: a reader sees either the complete old content or the complete new content.

The next write into the folder removes the part file of a killed process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
import time
from pathlib import Path

_PART = re.compile(r"\.dpaudit-\w+\.part")
_DEAD = 3_600.0  # seconds; a process that has not finished a file by then was killed


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file that the user named: symbolic links are followed, and an existing file keeps its mode."""
    target = Path(os.path.realpath(path))
    # a special file such as /dev/stdout, or a folder, for which the system raises OSError
    if target.exists() and not target.is_file():
        target.write_bytes(_encoded(content))
    else:
        _write(target, content)


def write_placed(file: Path, content: str | bytes) -> None:
    """Write a file whose name dpaudit chose; links, which a foreign checkout may hold, and pipes are refused."""
    refuse_link(file.parent)
    refuse_link(file)
    if file.exists() and not file.is_file():
        raise OSError(errno.EINVAL, f"{file.name} is not a regular file")
    _write(file, content)


def remove_placed(file: Path) -> None:
    """Remove a file that `write_placed` wrote.  If the file does not exist, do nothing."""
    refuse_link(file.parent)
    file.unlink(missing_ok=True)


def refuse_link(path: Path) -> None:
    """Raise OSError if the last part of a path is a symbolic link."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, f"{path} is a symbolic link to {os.readlink(path)}")


def link_in(folder: Path) -> Path | None:
    """Return the first symbolic link on a relative path; of an absolute path, only the last part is checked."""
    above = () if folder.is_absolute() else folder.parents[-2::-1]
    return next((one for one in (*above, folder) if os.path.islink(one)), None)  # unlike is_symlink, for any name


def _write(target: Path, content: str | bytes) -> None:
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if _PART.fullmatch(entry.name) and time.time() - entry.stat(follow_symlinks=False).st_mtime > _DEAD:
                os.unlink(entry.path)
    try:
        mode = target.stat().st_mode & 0o777
    except OSError:  # a new file
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    handle, part = tempfile.mkstemp(prefix=".dpaudit-", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_encoded(content))
            stream.flush()
            os.chmod(handle if os.chmod in os.supports_fd else part, mode)
            os.fsync(handle)  # without fsync, a power cut may leave an empty file under the new name
        os.replace(part, target)
        with contextlib.suppress(OSError):  # not all systems can flush the names in a folder
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _encoded(content: str | bytes) -> bytes:
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
