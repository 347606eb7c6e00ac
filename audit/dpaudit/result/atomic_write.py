"""Writes files atomically: a reader sees either the complete old content or the complete new content.

A process that is killed while it writes leaves a part file, which the next write into the same folder removes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_PART = re.compile(r"\.dpaudit-\w+\.part")
_DEAD = 3_600.0  # seconds; a process that has not finished a file by then was killed

# Whether the system supports file names relative to an open folder.  Windows does not.
_BY_FOLDER = {os.open, os.rename, os.stat, os.unlink} <= os.supports_dir_fd


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file that the user named: symbolic links are followed, and an existing file keeps its mode."""
    target = Path(os.path.realpath(path))
    # a special file such as /dev/stdout, or a folder, for which the system raises OSError
    if target.exists() and not target.is_file():
        target.write_bytes(_encoded(content))
        return
    _remove_parts(target.parent)
    handle, part = tempfile.mkstemp(prefix=".dpaudit-", suffix=".part", dir=target.parent)
    try:
        _fill(handle, content)
        os.chmod(part, _mode(target))
        os.replace(part, target)
        _flush_folder(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def write_placed(file: Path, content: str | bytes) -> None:
    """Write a file whose name dpaudit chose, in a folder where other users may create links at any time.

    If another program creates a link after the check, renaming within the open folder replaces the link and leaves its
    target unchanged.
    """
    if not _BY_FOLDER:
        _checked_mode(str(file), None)
        write_whole(file, content)
        return
    with open_folder(file.parent) as folder:
        mode = _checked_mode(file.name, folder)
        _remove_parts(folder)
        part = f".dpaudit-{secrets.token_hex(8)}.part"
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        try:
            _fill(handle, content, _new_mode() if mode is None else mode)
            os.replace(part, file.name, src_dir_fd=folder, dst_dir_fd=folder)
            with contextlib.suppress(OSError):
                os.fsync(folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise


def remove_placed(file: Path) -> None:
    """Remove a file that `write_placed` wrote.  If the file does not exist, do nothing."""
    if not _BY_FOLDER:
        file.unlink(missing_ok=True)
        return
    with open_folder(file.parent) as folder, contextlib.suppress(FileNotFoundError):
        os.unlink(file.name, dir_fd=folder)


def link_in(folder: Path) -> Path | None:
    """Return the first symbolic link on a relative path; of an absolute path, only the last part is checked."""
    above = () if folder.is_absolute() else folder.parents[-2::-1]
    return next((one for one in (*above, folder) if os.path.islink(one)), None)  # unlike is_symlink, for any name


@contextlib.contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """Open a folder that is not a symbolic link, and provide its file descriptor."""
    if folder.is_symlink():
        raise OSError(errno.ELOOP, f"{folder} is a symbolic link to {os.readlink(folder)}")
    # O_NOFOLLOW also refuses a link that was created after the check
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield handle
    finally:
        os.close(handle)


def _remove_parts(folder: Path | int) -> None:
    """Remove the part files of killed processes from a folder, which may be a file descriptor."""
    within = folder if isinstance(folder, int) else None
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _PART.fullmatch(entry.name) and time.time() - entry.stat(follow_symlinks=False).st_mtime > _DEAD:
                os.unlink(entry.path, dir_fd=within)


def _checked_mode(name: str, folder: int | None) -> int | None:
    """Return the permissions of a regular file; None if the file does not exist."""
    try:
        mode = os.lstat(name, dir_fd=folder).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, f"{name} is a symbolic link to {os.readlink(name, dir_fd=folder)}")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"{name} is not a regular file")
    return mode & 0o777


def _flush_folder(folder: Path) -> None:
    """Flush the file names in a folder to the disk, if the system supports this operation."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _encoded(content: str | bytes) -> bytes:
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content


def _fill(handle: int, content: str | bytes, mode: int | None = None) -> None:
    """Write and close a new file, and set its permissions if `mode` is given."""
    with os.fdopen(handle, "wb") as stream:
        stream.write(_encoded(content))
        stream.flush()
        if mode is not None:
            os.fchmod(handle, mode)
        os.fsync(handle)  # without fsync, a power cut may leave an empty file under the new name


def _mode(target: Path) -> int:
    """Return the permissions of an existing file, or the default permissions of a new file."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        return _new_mode()


def _new_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
