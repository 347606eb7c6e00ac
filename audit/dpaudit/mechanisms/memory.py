"""Limits the memory of processes that run foreign code.  The operating system enforces the limits (RLIMIT_AS).

A limit applies to the address space of each single process.  It stops accidents, such as an array that is too large,
but is not a sandbox, because a program can start further processes.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.mechanisms.worker import address_space_limit
from dpaudit.settings.memory import memory_text

_SHELL = "/bin/sh"
_LIMITED = 'ulimit -v "$1" || exit 126; shift; exec "$@"'


def check_supported() -> None:
    """Check that this system enforces memory limits."""
    if sys.platform != "linux" or not os.access(_SHELL, os.X_OK) or not os.path.exists("/proc/self/statm"):
        raise MechanismError(
            f"memory limits need Linux with /proc and {_SHELL}, and this system ({sys.platform}) does not enforce "
            "them: remove `memory`, or run the audit on Linux, for example in a container"
        )


def advice(memory: int) -> str:
    """Return the sentence that explains a memory limit and states the remedy."""
    return (
        f"the memory is limited to {memory_text(memory)}: raise `memory`, or let the mechanism use less memory, "
        "for example with smaller datasets or batches"
    )


@contextmanager
def memory_limited(memory: int | None) -> Iterator[None]:
    """Limit the memory that this process may add while the `with` block runs.

    An allocation beyond the limit raises MemoryError, or ends the process if compiled code does not handle the failure.
    """
    if memory is None:
        yield
        return
    check_supported()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = [address_space_limit(memory), *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_AS, (min(allowed), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def limited_command(
    command: Sequence[str], memory: int, *, cwd: Path | None, env: Mapping[str, str] | None
) -> list[str]:
    """Return a command that starts a program with a limited address space.

    A shell sets the limit and then replaces itself by the program.  The shell gets the words of the command as
    arguments and never interprets them.
    """
    check_supported()
    program = command[0]
    path = (env or {}).get("PATH", os.environ.get("PATH"))
    found = str((cwd or Path()).absolute() / program) if "/" in program else shutil.which(program, path=path)
    if found is None or not os.path.exists(found):
        raise FileNotFoundError(2, "No such file or directory", program)
    if not os.access(found, os.X_OK) or os.path.isdir(found):
        raise PermissionError(13, "Permission denied", program)
    first = found if program.startswith("-") else program  # the shell would read a leading "-" as an option
    return [_SHELL, "-c", _LIMITED, _SHELL, str(memory // 1024), first, *command[1:]]
