"""Limits of the memory of processes that run foreign code.  The operating system enforces them (RLIMIT_AS).

A limit applies to the address space of each process by itself.  It stops accidents, such as an array that is too large;
it is not a sandbox, because a program can start further processes.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dpaudit.mechanisms.protocol import MechanismError, message_of
from dpaudit.mechanisms.worker import address_space_limit
from dpaudit.settings.memory import memory_text

_SHELL = "/bin/sh"
_LIMITED = 'ulimit -v "$1" || exit 126; shift; exec "$@"'


def check_supported() -> None:
    """Check that this system enforces limits of memory.

    Raises:
        MechanismError: If this system does not enforce them.
    """
    if sys.platform != "linux" or not os.access(_SHELL, os.X_OK) or not os.path.exists("/proc/self/statm"):
        raise MechanismError(
            f"memory limits need Linux with /proc and {_SHELL}, and this system ({sys.platform}) does not enforce "
            "them: remove `memory`, or run the audit on Linux, for example in a container"
        )


def advice(memory: int) -> str:
    """Return the sentence that explains a limit and what to do about it."""
    return (
        f"its memory is limited to {memory_text(memory)}: raise `memory`, or let the mechanism use less, "
        "for example with smaller datasets or batches"
    )


_NO_MEMORY = re.compile(r"out of memory|(can't|cannot|could not|unable to|failed to) allocate", re.IGNORECASE)
_MAX_CAUSES = 20  # errors that are followed from an error to those that led to it


def about_memory(error: BaseException | None) -> bool:
    """Return whether an error, or one that led to it, says that memory could not be allocated.

    Compiled libraries report a failed allocation by errors other than MemoryError, such as torch's RuntimeError.

    Args:
        error: What a run raised.
    """
    for _ in range(_MAX_CAUSES):
        if error is None:
            return False
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if _NO_MEMORY.search(message_of(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def memory_limited(memory: int | None) -> Iterator[None]:
    """Limit the memory that this process may add while the `with` block runs.

    An allocation beyond the limit raises MemoryError, or ends the process if compiled code does not handle it.

    Args:
        memory: Bytes in addition to what the process has now; None: no limit.

    Raises:
        MechanismError: If this system does not enforce limits.
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
    """Return a command that starts a program whose address space is limited.

    A shell sets the limit before it becomes the program.  It gets the words as arguments and never interprets them.

    Args:
        command: The program and its arguments.
        memory: Maximum address space, in bytes.
        cwd: The working directory of the program; None: that of this process.
        env: Environment variables of the program in addition to those of this process.

    Raises:
        MechanismError: If this system does not enforce limits.
        FileNotFoundError: If there is no such program; the shell's own message would be harder to understand.
    """
    check_supported()
    program = command[0]
    path = (env or {}).get("PATH", os.environ.get("PATH"))
    found = str((cwd or Path()).absolute() / program) if "/" in program else shutil.which(program, path=path)
    if found is None or not os.path.exists(found):
        raise FileNotFoundError(2, "No such file or directory", program)
    if not os.access(found, os.X_OK) or os.path.isdir(found):
        raise PermissionError(13, "Permission denied", program)
    first = found if program.startswith("-") else program  # the shell would take it as an option
    return [_SHELL, "-c", _LIMITED, _SHELL, str(memory // 1024), first, *command[1:]]
