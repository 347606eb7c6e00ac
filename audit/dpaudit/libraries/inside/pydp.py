"""Reads and runs algorithms of PyDP."""

from __future__ import annotations

import functools
from importlib import import_module, metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dpaudit.values import Dataset, Foreign, JsonObject, Output

MODULE = "pydp"
"""The top-level module of the library."""


def called(call: str, arguments: Foreign) -> Foreign:
    """Bind the arguments of an algorithm."""
    module = import_module("pydp.algorithms.laplacian")
    if call.startswith("_") or not hasattr(module, call):
        raise LookupError(f"python-dp {metadata.version('python-dp')} has no algorithm {call}")
    return functools.partial(getattr(module, call), **(arguments or {}))


def facts(made: Foreign, d_in: Foreign = 1) -> JsonObject:
    """Return plain facts about an algorithm."""
    algorithm = made()
    found: JsonObject = dict(made.keywords)
    found.update(epsilon=algorithm.epsilon, delta=algorithm.delta, name=made.func.__name__)
    found.update(version=metadata.version("python-dp"), dtype=found.get("dtype", "int"))
    return found


def runner(made: Foreign) -> Callable[[Dataset, int], list[Output]]:
    """Return a function `(dataset, n)` that makes the algorithm once, and runs it n times."""
    algorithm = made()

    def run(dataset: Dataset, n: int) -> list[Output]:
        return [algorithm.quick_result(list(dataset)) for _ in range(n)]

    return run
