"""Keeps runs of a generator separate, and tells the faults of the machine from those of the generator."""

from __future__ import annotations

import copy
import errno
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpaudit.values import Foreign, Output

_NOTHING_LEFT = frozenset([errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE])
_NO_MEMORY = re.compile("out of memory|(can't|cannot|could not) allocate memory", re.IGNORECASE)
_MAX_TEXT = 2_000  # characters of a message
_MAX_CAUSES = 20  # maximum length of a chain of causes; a cyclic chain would never end


def of_machine(error: BaseException) -> bool:
    """Return whether memory, disk space or file handles have run out, as `dpaudit.mechanisms.raised.of_machine`.

    An environment cannot import that function.
    """
    left = error  # type: BaseException | None
    for _ in range(_MAX_CAUSES):
        if left is None:
            return False
        if isinstance(left, MemoryError) or (isinstance(left, OSError) and left.errno in _NOTHING_LEFT):
            return True
        if _NO_MEMORY.search(text_of(left)):
            return True
        left = left.__cause__ or left.__context__
    return False


def text_of(error: BaseException) -> str:
    """Return the beginning of the message of an exception, or "" if the exception cannot state it."""
    try:
        return str(error)[:_MAX_TEXT]
    except Exception:
        return ""


def own(value: Foreign) -> Foreign:
    """Return a copy of nested lists and dicts, so that a run cannot change what the next run gets.

    Other objects are not copied: copies of a random generator would draw the same numbers in each run.
    """
    if type(value) is dict:
        return {name: own(part) for name, part in value.items()}
    return [own(part) for part in value] if type(value) is list else value


def copied(output: Output) -> Output:
    """Return a copy of an output, as the next run may overwrite a buffer in which the output lies."""
    try:
        return copy.deepcopy(output)
    except Exception:  # the caller refuses what cannot be copied, or detaches a tensor
        return output
