"""Keeps foreign code from ending, replacing or copying this process, and from changing numpy's error state for dpaudit.

`os._exit(0)` in a mechanism would end the audit silently, with the exit code of "no violation found".  `os.execv` would
replace the audit by a program that chooses the exit code.  A copy made by forking would continue the audit, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from mmap import mmap
from typing import Any, NoReturn

import numpy as np

from dpaudit.values import Foreign

end_process = os._exit  # the original `os._exit`
_MODULES = (os, sys.modules[os.name])  # `posix` or `nt` defines these functions, and `os` holds the same functions
_owner = 0
_copies = mmap(-1, 8)  # number of copies that were ended, in memory that all forks share

_DEFAULT: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}  # of numpy
_foreign: dict[str, Any] = _DEFAULT


def _refusing(name: str, original: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    """Return a function that raises SystemExit in the process that called `refuse_exits`, and works in its forks."""

    def refused(*arguments: Foreign, **named: Foreign) -> NoReturn:
        if os.getpid() != _owner:
            original(*arguments, **named)
        first = next(iter((*arguments, *named.values())), 0)
        shown = repr(os.fsdecode(first) if isinstance(first, bytes) else first)[:100]
        raise SystemExit(f"os.{name}({shown}{', ...' if name != '_exit' else ''}) was called")

    return refused


# All other functions `os.exec*` and `os.spawn*` call the last two by their names.
_REFUSALS = {name: _refusing(name, getattr(os, name)) for name in ("_exit", "execv", "execve")}


def refuse_exits() -> None:
    """Make the functions that end or replace this process raise SystemExit from now on."""
    global _owner
    _owner = os.getpid()
    for module in _MODULES:
        vars(module).update(_REFUSALS)


@contextmanager
def exits_refused() -> Iterator[None]:
    """Make the functions that end or replace this process raise SystemExit inside the `with` block."""
    global _owner
    owner, before = _owner, [{name: vars(module)[name] for name in _REFUSALS} for module in _MODULES]
    refuse_exits()
    try:
        yield
    finally:
        _owner = owner
        for module, functions in zip(_MODULES, before, strict=True):
            vars(module).update(functions)


def current_folder() -> str:
    """Return the working directory, which foreign code may change or remove."""
    try:
        return os.getcwd()
    except OSError:
        return "a folder that no longer exists"


def copies() -> int:
    """Return the number of copies that were ended so far; copies that end at the same time may count as one."""
    return int.from_bytes(_copies, "little")


def end_copy() -> NoReturn:
    """End this process, a copy that a mechanism made by forking and that has just returned from it."""
    _copies[:] = (copies() + 1).to_bytes(len(_copies), "little")
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


@contextmanager
def own_error_state() -> Iterator[None]:
    """Use numpy's default error state inside the `with` block.  A state that the caller has set is for foreign code."""
    global _foreign
    before, given = _foreign, np.geterr()
    _foreign = before if given == _DEFAULT else {**given}
    try:
        with np.errstate(**_DEFAULT):
            yield
    finally:
        _foreign = before


@contextmanager
def foreign_error_state() -> Iterator[None]:
    """Use the error state that foreign code has set last, and restore dpaudit's own state at the end."""
    global _foreign
    limit = sys.getrecursionlimit()
    with np.errstate(**_foreign):
        try:
            yield
        finally:
            _foreign = {**np.geterr()}
            sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))  # writing a result needs some depth
