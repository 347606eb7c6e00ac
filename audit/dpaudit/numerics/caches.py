"""Results that are kept, because the same arguments come again."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

from dpaudit.numerics.arrays import Array

P = ParamSpec("P")
T = TypeVar("T")


def kept(size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that keeps the latest results of a function.

    Unlike `lru_cache`, it computes the result each time if an argument cannot be hashed, such as a claim of a user's
    own class.

    Args:
        size: Maximum number of results that are kept.
    """

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
    """Return the array, which nobody can change any more: for results that are kept."""
    array.flags.writeable = False
    return array
