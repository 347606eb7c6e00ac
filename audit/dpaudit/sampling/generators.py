"""Finds random generators in datasets."""

from __future__ import annotations

import contextlib
import copy
import random
import sys

import numpy as np

from dpaudit.sampling.detached import CONTAINERS, IMMUTABLE, immutable
from dpaudit.values import Foreign


def generator_in(value: Foreign) -> str:
    """Return the type of a random generator inside `value`, or "" if there is none.

    Copies of one generator yield the same numbers.  So a dataset must not contain a generator.  A generator that a deep
    copy shares with the original is allowed.
    """
    if immutable(value) or (type(value) is np.ndarray and not value.dtype.hasobject):
        return ""
    with contextlib.suppress(RecursionError):  # the value contains itself or is deeply nested
        if _plain(value):
            return ""
    copies: dict[int, object] = {}
    try:
        copy.deepcopy(value, copies)
    except Exception:
        return ""
    torch = getattr(sys.modules.get("torch"), "Generator", random.Random)
    kinds = (random.Random, np.random.Generator, np.random.BitGenerator, np.random.RandomState, torch)
    found = [one for one in copies.values() if isinstance(one, kinds)]
    return f"{type(found[0]).__module__}.{type(found[0]).__qualname__}" if found else ""


def _plain(value: Foreign) -> bool:
    """Whether a value consists of containers and immutable values only."""
    kind = type(value)
    if kind is dict:
        return _plain(list(value)) and _plain(list(value.values()))
    return kind in IMMUTABLE or (
        kind in CONTAINERS and (IMMUTABLE.issuperset(map(type, value)) or all(map(_plain, value)))
    )
