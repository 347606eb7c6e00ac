"""Caches for functions that are called repeatedly with the same arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

from dpaudit.numerics.arrays import Array

P = ParamSpec("P")
T = TypeVar("T")


def kept(size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator like `lru_cache`; it computes results for arguments that cannot be hashed each time."""

    def decorate(compute: Callable[P, T]) -> Callable[P, T]:
        known = lru_cache(maxsize=size)(compute)

        @wraps(compute)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                hash(args)
            except TypeError:
                return compute(*args, **kwargs)
            return known(*args, **kwargs)  # type: ignore[arg-type]

        return wrapper

    return decorate


def read_only(array: Array) -> Array:
    """Make an array read-only, so that a cached result cannot be changed, and return the same array."""
    array.flags.writeable = False
    return array
