"""Reads the exceptions of runs: their messages and places, and whether an analyst may see them as outcomes.

The program in isolated environments loads this file by its path (see `worker`), so that the same exceptions are
outcomes in both processes.  So this file needs only the standard library of Python 3.8 or later.
"""

from __future__ import annotations

import errno
import linecache
import re
import sysconfig
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

MAX_MESSAGE = 20_000
"""Maximum length of an exception's message, in characters.  Without a limit, a message might hold a whole dataset."""

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


def in_words(error: BaseException) -> str:
    """Return the class and message of an exception, even if `__str__` of the exception raises."""
    message = message_of(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def raised(error: BaseException) -> str:
    """Return the type and message of an exception, and the place in the user's own file that raised it."""
    return f"{in_words(error)}{place(error)}"


def place(error: BaseException) -> str:
    """Return the place of the last frame in the user's own code, such as ", at m.py:2, in f: return d[5]", or ""."""
    found = ""
    at = error.__traceback__
    while at is not None:
        code, line = at.tb_frame.f_code, at.tb_lineno
        if _own(code.co_filename):
            source = linecache.getline(code.co_filename, line).strip()
            name = "" if code.co_name == "<module>" else f", in {code.co_name}"
            found = f", at {Path(code.co_filename).name}:{line}{name}{': ' if source else ''}{source[:100]}"
        at = at.tb_next
    return found


def _own(file: str) -> bool:
    """Whether a file is the user's own, and not a file of dpaudit, Python or an installed package."""
    if file.startswith("<"):
        return False
    path, paths = Path(file), sysconfig.get_paths()
    folders = {Path(paths["stdlib"]), Path(paths["platstdlib"]), Path(__file__).resolve().parents[1]}
    return not ({"site-packages", "dist-packages"} & {*path.parts} or folders & {*path.parents})


def of_code(error: BaseException) -> bool:
    """Whether an exception says something about the code that raised it.

    An exception that is neither Python's own nor derived from Exception is meant for the caller of dpaudit, such as a
    test runner.
    """
    cancelled = type(error).__name__ == "CancelledError"  # compared by name to avoid the import of asyncio
    return isinstance(error, (Exception, SystemExit, GeneratorExit)) or cancelled


def about_memory(error: BaseException | None) -> bool:
    """Whether an error or one of its causes reports a failed memory allocation, as torch does by a RuntimeError."""
    return _reports(error, (errno.ENOMEM,), _NO_MEMORY)


def of_machine(error: BaseException | None, limited: bool = False) -> bool:
    """Whether an error says that memory, disk space or handles have run out, which depends on other programs."""
    return _reports(error, _NOTHING_LEFT, _NO_MEMORY if limited else _MEMORY_GONE)


def _reports(error: BaseException | None, numbers: Container[int | None], words: re.Pattern[str]) -> bool:
    for _ in range(20):  # a cyclic chain of causes would never end
        if error is None:
            return False
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in numbers):
            return True
        if words.search(message_of(error)):
            return True
        error = error.__cause__ or error.__context__
    return False
