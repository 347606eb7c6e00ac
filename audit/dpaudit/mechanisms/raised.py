"""Reads the exceptions of runs: their messages, and whether an analyst may see them as outcomes.

The program in isolated environments loads this file by its path (see `worker`), so that the same exceptions are
outcomes in both processes.  So this file needs only the standard library of Python 3.8 or later.
"""

from __future__ import annotations

import errno
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_MESSAGE = 20_000
"""Maximum length of an exception's message, in characters.  Without a limit, a message might hold a whole dataset."""

_MAX_CAUSES = 20  # maximum length of a chain of causes; a cyclic chain would never end
_NO_MEMORY = re.compile(r"out of memory|(can't|cannot|could not|unable to|failed to) allocate", re.IGNORECASE)
_MEMORY_GONE = re.compile("out of memory|(can't|cannot|could not) allocate memory", re.IGNORECASE)
_NOTHING_LEFT = frozenset([errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE])


def message_of(error: BaseException) -> str:
    """Return the message of an exception, or a note if `__str__` of the exception raises."""
    try:
        text = f"{error}"
        return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"
    except KeyboardInterrupt:
        raise
    except BaseException as another:
        return f"(its message is unavailable: __str__ raised {type(another).__name__})"


def of_code(error: BaseException) -> bool:
    """Return whether an exception says something about the code that raised it.

    An exception that is neither Python's own nor derived from Exception is meant for the caller of dpaudit, such as a
    test runner.
    """
    cancelled = type(error).__name__ == "CancelledError"  # compared by name to avoid the import of asyncio
    return isinstance(error, (Exception, SystemExit, GeneratorExit)) or cancelled


def about_memory(error: BaseException | None) -> bool:
    """Return whether an error or one of its causes reports a failed memory allocation.

    Compiled libraries report a failed allocation by errors other than MemoryError, such as torch's RuntimeError.
    """
    return any(
        isinstance(one, MemoryError)
        or (isinstance(one, OSError) and one.errno == errno.ENOMEM)
        or _NO_MEMORY.search(message_of(one))
        for one in _causes(error)
    )


def of_machine(error: BaseException | None, limited: bool = False) -> bool:
    """Return whether an error or one of its causes says that memory, disk space or file handles have run out.

    Such an error is no output of the mechanism: it depends on other programs, and on what earlier runs have left.
    """
    gone = _NO_MEMORY if limited else _MEMORY_GONE
    return any(
        isinstance(one, MemoryError)
        or (isinstance(one, OSError) and one.errno in _NOTHING_LEFT)
        or gone.search(message_of(one))
        for one in _causes(error)
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_MAX_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
