"""The names in a function's code, including the functions inside it."""

from __future__ import annotations

import dis
import types
from functools import lru_cache

_MAX_KEPT = 4096  # functions; several searches of one audit read the same ones


@lru_cache(_MAX_KEPT)
def global_names(code: types.CodeType) -> frozenset[str]:
    """Return the global names that a function's code reads, including the functions inside it."""
    names = frozenset(step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    return names.union(*(global_names(part) for part in code.co_consts if isinstance(part, types.CodeType)))


def imported_names(code: types.CodeType) -> set[str]:
    """Return the modules that a function's code imports when it runs, including the functions inside it."""
    names = {str(step.argval) for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME" and step.argval}
    return names.union(*(imported_names(part) for part in code.co_consts if isinstance(part, types.CodeType)))


def attribute_names(code: types.CodeType) -> set[str]:
    """Return all global and attribute names in a function's code, including the functions inside it."""
    return set(code.co_names).union(
        *(attribute_names(part) for part in code.co_consts if isinstance(part, types.CodeType))
    )
