"""Ends the copies of this process that foreign code makes by forking, so that no copy continues the audit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
from typing import NoReturn

from dpaudit.mechanisms.exits import end_process

# Number of copies that were ended, in memory that all forks share.  Copies that end at the same time may be counted as
# one.
_COPIES = mmap(-1, 8)


def copies() -> int:
    """Return the number of copies that were ended so far."""
    return int.from_bytes(_COPIES, "little")


def end_copy() -> NoReturn:
    """End this process, a copy that a mechanism made by forking.

    Call this function as soon as the mechanism returns or raises.  Otherwise the copy would make the remaining runs and
    fork again in each of them.
    """
    _COPIES[:] = (copies() + 1).to_bytes(len(_COPIES), "little")
    end_process(0)


@contextmanager
def only_this_process() -> Iterator[None]:
    """End each forked copy of this process at the end of the `with` block."""
    process = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != process:
            end_copy()
