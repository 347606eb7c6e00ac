"""Keeps foreign code from ending our process behind our back.

`os._exit(0)` in a mechanism would end the audit at once, without a word and with the exit code of "no violation found".
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

end_process = os._exit  # the true one


def _refused(status: int = 0) -> NoReturn:
    """Stands in for `os._exit` in the process that set it; a fork of that process ends as it asks to."""
    if os.getpid() != _owner:
        end_process(status)
    raise SystemExit(f"os._exit({status}) was called")


_owner = 0


def refuse_exits() -> None:
    """Turn `os._exit` into SystemExit in this process from now on."""
    global _owner
    _owner = os.getpid()
    os._exit = _refused


@contextmanager
def exits_refused() -> Iterator[None]:
    """Turn `os._exit` into SystemExit inside."""
    before = os._exit
    refuse_exits()
    try:
        yield
    finally:
        os._exit = before
