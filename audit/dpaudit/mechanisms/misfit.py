"""Tells why an object is not a mechanism.

The program in isolated environments loads this file by its path (see `worker`).  So this file needs only the standard
library of Python 3.8 or later.
"""

from __future__ import annotations

import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpaudit.values import Foreign


def misfit(found: Foreign, batched: bool = False) -> str:
    """Return why an object is not a mechanism, as words that follow the object's name in a message.

    The result is "" if the object is a mechanism or has an unknown signature.
    """
    if isinstance(found, type):
        return "is a class, but a mechanism is an instance: add `params: {}` in a config, or call the class in Python"
    many = getattr(found, "sample", found if batched else None)
    if many is None and not callable(found):
        kind = type(found).__name__
        return f"must be a callable (dataset, rng) -> output or have sample(dataset, n, rng), got {kind}"
    try:
        signature = inspect.signature(found if many is None else many)
    except (TypeError, ValueError):
        return ""
    short, long = ("dataset", "rng"), ("dataset", "n", "rng")
    wanted, other = (short, long) if many is None else (long, short)
    if _binds(signature, wanted):
        return ""
    problem = "takes {}, but a {}mechanism is called with ({})".format(
        signature, "" if many is None else "batched ", ", ".join(wanted)
    )
    if not _binds(signature, other):
        return problem
    if many is None:
        return problem + "; if it returns n outputs, set `batched: true` in the config, or use @batched in Python"
    return problem + "; if it returns one output, remove `batched`"


def _binds(signature: Foreign, values: tuple[str, ...]) -> bool:
    try:
        signature.bind(*values)
    except TypeError:
        return False
    return True
