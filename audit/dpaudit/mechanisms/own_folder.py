"""Refuses folders of environments into which another user of the machine could put code."""

from __future__ import annotations

import os
import stat
from functools import cache as kept_for_ever
from pathlib import Path

from dpaudit.mechanisms.protocol import MechanismError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@kept_for_ever
def resolved_cache(cache: Path) -> Path:
    """Return the cache folder with all symbolic links resolved.

    The result stays the same until this process ends, even if links change.
    """
    if cache.is_symlink() and (owner := cache.lstat().st_uid) not in _trusted():
        raise MechanismError(
            f"the cache folder {cache} is a link of another user (uid {owner}), who could replace the packages; set "
            "DPAUDIT_CACHE to a folder of your own"
        )
    return Path(os.path.realpath(cache))


def is_trusted(folder: Path) -> bool:
    """Whether a folder or link belongs to this user or root, or does not exist."""
    return not os.path.lexists(folder) or folder.lstat().st_uid in _trusted()


def make_own_folders(cache: Path, *inside: Path) -> None:
    """Create folders that only this user can write to, and check existing folders."""
    for folder in (cache, *inside):
        folder.mkdir(mode=0o700, parents=folder == cache, exist_ok=True)
        _check(folder, outermost=folder == cache)


def check_own_folders(cache: Path, *inside: Path) -> None:
    """Check folders as `make_own_folders` does, but create none."""
    for folder in (cache, *inside):
        _check(folder, outermost=folder == cache)


def _check(folder: Path, *, outermost: bool) -> None:
    about = folder.lstat()
    if stat.S_ISLNK(about.st_mode):
        raise MechanismError(
            f"the cache folder {folder} is a link, so the content may be replaced; remove the link, or set "
            "DPAUDIT_CACHE to the cache folder that you want"
        )
    if about.st_uid not in _trusted():
        raise MechanismError(
            f"the cache folder {folder} belongs to another user (uid {about.st_uid}), who could change the "
            "packages; set DPAUDIT_CACHE to a folder of your own"
        )
    if about.st_mode & _OTHERS_WRITE and not (outermost and about.st_mode & stat.S_ISVTX):
        raise MechanismError(
            f"other users can write to the cache folder {folder} (mode {stat.S_IMODE(about.st_mode):o}), and may have "
            f"changed the packages.  Remove the folder and run again, or run `chmod go-w {folder}` if you trust all "
            "users, or set DPAUDIT_CACHE to a folder of your own"
        )


def _trusted() -> tuple[int, int]:
    return os.geteuid(), 0
