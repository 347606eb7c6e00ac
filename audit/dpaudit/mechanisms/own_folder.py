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
    """Return the cache folder without links, the same one until this process ends, wherever its links go later.

    Args:
        cache: The user's cache folder as an absolute path; it need not exist.

    Raises:
        MechanismError: If it is a link of another user than this one or root, who could let it go elsewhere.
    """
    if cache.is_symlink() and (owner := cache.lstat().st_uid) not in _trusted():
        raise MechanismError(
            f"the cache folder {cache} is a link of another user (uid {owner}), who could exchange the packages; set "
            "DPAUDIT_CACHE to a folder of your own"
        )
    return Path(os.path.realpath(cache))


def make_own_folders(cache: Path, *inside: Path) -> None:
    """Create folders that only this user can write to, and check those that exist.

    Args:
        cache: The user's cache folder, from `resolved_cache`.  It may be one in which everybody can make files but
            only their owner can remove them, such as /tmp.
        inside: Folders in it, from the outermost on.

    Raises:
        MechanismError: If a folder belongs to another user than this one or root, others can write to it, or if it is a
            link.
        OSError: If a folder cannot be created or is not a folder.
    """
    for folder in (cache, *inside):
        folder.mkdir(mode=0o700, parents=folder == cache, exist_ok=True)
        _check(folder, outermost=folder == cache)


def check_own_folders(cache: Path, *inside: Path) -> None:
    """Check folders as `make_own_folders` does, without creating any.

    Raises:
        MechanismError: As for `make_own_folders`.
        OSError: If a folder does not exist.
    """
    for folder in (cache, *inside):
        _check(folder, outermost=folder == cache)


def _check(folder: Path, *, outermost: bool) -> None:
    about = folder.lstat()
    if stat.S_ISLNK(about.st_mode):
        raise MechanismError(
            f"the cache folder {folder} is a link, so its content may be exchanged; remove it, or set DPAUDIT_CACHE to "
            "the cache folder that you want"
        )
    if about.st_uid not in _trusted():
        raise MechanismError(
            f"the cache folder {folder} belongs to another user (uid {about.st_uid}), who could change the packages in "
            "it; set DPAUDIT_CACHE to a folder of your own"
        )
    if about.st_mode & _OTHERS_WRITE and not (outermost and about.st_mode & stat.S_ISVTX):
        raise MechanismError(
            f"other users can write to the cache folder {folder} (mode {stat.S_IMODE(about.st_mode):o}), and may have "
            f"changed the packages in it; remove it and run again, or run `chmod go-w {folder}` if you trust all "
            "users, or set DPAUDIT_CACHE to a folder of your own"
        )


def _trusted() -> tuple[int, int]:
    return os.geteuid(), 0
