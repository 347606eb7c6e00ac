"""Lists and removes the environments in dpaudit's cache.

This module removes nothing outside the folder of environments, and follows no symbolic link.  Files in that folder that
dpaudit did not make are kept.  An environment that a process uses or builds is kept, too.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpaudit.mechanisms.environments import environments_folder, named_cache
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.values import Foreign

_STEM = r"py3\.\d{1,3}(?:\.\d{1,3})?-[0-9a-f]{16}"
_FOLDER = re.compile(rf"({_STEM})-\w{{1,20}}")
_POINTER = re.compile(rf"({_STEM})\.json")
_MAX_POINTER_BYTES = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedEnvironment:
    """The files of one environment in the cache."""

    stem: str
    folders: tuple[str, ...]
    size: int
    used: float
    about: str

    @property
    def path(self) -> Path:
        """The first folder of the environment, or the pointer file of an environment without a folder."""
        return environments_folder() / (self.folders[0] if self.folders else f"{self.stem}.json")


def cached_environments() -> list[CachedEnvironment]:
    """Return the environments in the cache, the least recently used first."""
    with _opened() as root:
        if root is None:
            return []
        folders: dict[str, list[str]] = {}
        for name in sorted(os.listdir(root)):
            mode = os.lstat(name, dir_fd=root).st_mode
            if (match := _FOLDER.fullmatch(name)) and stat.S_ISDIR(mode):
                folders.setdefault(match[1], []).append(name)
            elif (match := _POINTER.fullmatch(name)) and stat.S_ISREG(mode):
                folders.setdefault(match[1], [])
        found = [_described(root, stem, names) for stem, names in folders.items()]
    return sorted(found, key=lambda one: (one.used, one.stem))


def remove(one: CachedEnvironment) -> str:
    """Remove an environment.

    Returns:
        The reason why the environment was not removed, or "" if it was removed.
    """
    with _opened() as root:
        if root is None:
            return ""
        with contextlib.ExitStack() as stack:
            for ending in ("lock", "used"):  # processes that build or use the environment lock these files
                try:
                    stack.enter_context(_exclusive(root, f"{one.stem}.{ending}"))
                except BlockingIOError:
                    return "the environment is in use"
                except OSError as error:
                    return f"{one.stem}.{ending}: {error.strerror or error}"
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{one.stem}.json", dir_fd=root)  # so that no process finds half an environment
                for name in one.folders:
                    if _FOLDER.fullmatch(name):
                        shutil.rmtree(name, dir_fd=root)
            except OSError as error:
                return f"{error.filename}: {error.strerror or error}"
            except RecursionError:
                return "the folders are nested too deeply; remove them with rm -r"
    return ""


@contextlib.contextmanager
def _opened() -> Iterator[int | None]:
    """Open the folder of environments, and yield its file descriptor, or None if the folder does not exist."""
    folder = environments_folder()
    for one in (named_cache(), folder):
        if one.is_symlink():
            raise MechanismError(
                f"{one} is a symbolic link to {os.readlink(one)}, which dpaudit does not follow.  Set "
                "DPAUDIT_CACHE to the real path of the cache folder, without `/environments` at the end"
            )
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise MechanismError(f"{folder} cannot be read: {error.strerror or error}") from None
    try:
        yield root
    finally:
        os.close(root)


@contextlib.contextmanager
def _exclusive(root: int, name: str) -> Iterator[None]:
    handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=root)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _described(root: int, stem: str, names: list[str]) -> CachedEnvironment:
    times = [os.lstat(name, dir_fd=root).st_mtime for name in names]
    for ending in ("used", "json"):
        with contextlib.suppress(OSError):
            times.append(os.lstat(f"{stem}.{ending}", dir_fd=root).st_mtime)
    about = _about(root, f"{stem}.json")
    return CachedEnvironment(
        stem=stem,
        folders=tuple(names),
        size=sum(_size(root, name) for name in names),
        used=max(times, default=0.0),
        about=about or "an incomplete installation",
    )


def _about(root: int, name: str) -> str:
    """Return the packages and the Python version in a pointer file, or "" if the file is unreadable."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=root)
        with os.fdopen(handle, "rb") as file:
            about: Foreign = json.loads(file.read(_MAX_POINTER_BYTES))
        requires, version = about["requires"], about["python"]
        return f"{', '.join(map(str, requires)) or 'no packages'}, Python {version}"
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""


def _size(root: int, name: str) -> int:
    total = 0
    with contextlib.suppress(RecursionError):  # folders that are nested too deeply are not counted
        for _, _, files, folder in os.fwalk(name, dir_fd=root, follow_symlinks=False):
            for file in files:
                with contextlib.suppress(OSError):
                    total += os.lstat(file, dir_fd=folder).st_blocks * 512  # st_blocks counts units of 512 bytes
    return total
