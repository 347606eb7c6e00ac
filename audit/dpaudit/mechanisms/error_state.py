"""Keeps numpy's error state of foreign code, which `np.seterr` changes, apart from that of dpaudit's own work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_DEFAULT: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}  # of numpy
_foreign: dict[str, Any] = _DEFAULT


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
    """Use the error state that foreign code has set last, and restore dpaudit's own state at the end.

    Foreign code may also lower the recursion limit so far that dpaudit could not write a result.
    """
    global _foreign
    limit = sys.getrecursionlimit()
    with np.errstate(**_foreign):
        try:
            yield
        finally:
            _foreign = {**np.geterr()}
            sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))
