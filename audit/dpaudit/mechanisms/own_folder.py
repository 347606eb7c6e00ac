"""Refuses folders of environments into which another user of the machine could put code."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dpaudit.mechanisms.protocol import MechanismError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_own_folders(cache: Path, *inside: Path) -> None:
    """Create folders that only this user can write to, and check those that exist.

    Args:
        cache: The user's cache folder.  It may be one in which everybody can make files but only their owner can
            remove them, such as /tmp.
        inside: Folders in it, from the outermost on.

    Raises:
        MechanismError: If a folder belongs to another user than this one or root, or others can write to it.
        OSError: If a folder cannot be created or is not a folder.
    """
    for folder in (cache, *inside):
        folder.mkdir(mode=0o700, parents=folder == cache, exist_ok=True)
        _check(folder, sticky_allowed=folder == cache)


def _check(folder: Path, *, sticky_allowed: bool) -> None:
    about = folder.stat()
    if about.st_uid not in (os.geteuid(), 0):
        raise MechanismError(
            f"the cache folder {folder} belongs to another user (uid {about.st_uid}), who could change the packages in "
            "it; set DPAUDIT_CACHE to a folder of your own"
        )
    if about.st_mode & _OTHERS_WRITE and not (sticky_allowed and about.st_mode & stat.S_ISVTX):
        raise MechanismError(
            f"other users can write to the cache folder {folder} (mode {stat.S_IMODE(about.st_mode):o}), and may have "
            f"changed the packages in it; remove it and run again, or run `chmod go-w {folder}` if you trust all "
            "users, or set DPAUDIT_CACHE to a folder of your own"
        )
