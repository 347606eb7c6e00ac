"""Reads and runs algorithms of PyDP."""

from __future__ import annotations

import functools
from importlib import import_module, metadata
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpaudit.values import Dataset, JsonObject, Output

MODULE = "pydp"  # the top-level module of the library


def called(call: str, arguments: Any) -> Any:
    module = import_module("pydp.algorithms.laplacian")
    if call.startswith("_") or not hasattr(module, call):
        raise LookupError(f"python-dp {metadata.version('python-dp')} has no algorithm {call}")
    return functools.partial(getattr(module, call), **(arguments or {}))


def facts(made: Any, d_in: Any = 1) -> JsonObject:
    algorithm = made()
    found: JsonObject = dict(made.keywords)
    found.update(epsilon=algorithm.epsilon, delta=algorithm.delta, name=made.func.__name__)
    found.update(version=metadata.version("python-dp"), dtype=found.get("dtype", "int"))
    return found


def sample(made: Any, dataset: Dataset, n: int) -> list[Output]:
    algorithm = made()
    return [algorithm.quick_result(list(dataset)) for _ in range(n)]
