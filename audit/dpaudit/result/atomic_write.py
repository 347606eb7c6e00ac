"""Atomic writing: a file has its old content or its new content, never a part of it.

`write_whole` writes a file that the user named, and follows a link there.  `placed` is for names that the user did not
type, in a folder where others may have left links, or may make them at any time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
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


@contextlib.contextmanager
def placed(file: Path) -> Iterator[Path]:
    """Provide a path for new content; when the `with` block ends without an exception, it replaces `file`.

    No link is followed, at any moment.  The folder is opened once, and the file is renamed within it.  Renaming
    replaces a link that appears in the meantime, not its target.

    Args:
        file: The file to write.  Links among the folders above `file.parent` are followed.

    Raises:
        OSError: If `file` or its folder is a link, if `file` is a folder, pipe or device, or if it cannot be written.
    """
    with open_folder(file.parent) as folder:
        mode = _checked_mode(file.name, folder)
        private = Path(tempfile.mkdtemp(prefix=".dpaudit-", dir=file.parent))
        try:
            yield private / file.name
            if mode is not None:
                os.chmod(private / file.name, mode)
            os.replace(f"{private.name}/{file.name}", file.name, src_dir_fd=folder, dst_dir_fd=folder)
            with contextlib.suppress(OSError):
                os.fsync(folder)
        finally:
            shutil.rmtree(private, ignore_errors=True)


@contextlib.contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """Provide the descriptor of a folder that is not a link.

    Raises:
        OSError: If it is a link, or cannot be opened.
    """
    if folder.is_symlink():
        raise OSError(errno.ELOOP, f"{folder} is a symbolic link to {os.readlink(folder)}")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)  # refuses a link made since
    try:
        yield handle
    finally:
        os.close(handle)


def _checked_mode(name: str, folder: int) -> int | None:
    """Return the permissions of a regular file; None if there is no file; raise OSError for any other kind."""
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
