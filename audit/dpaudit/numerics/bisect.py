"""Bisection methods that locate the point at which a condition changes from true to false.

Each function returns both ends of the final bracket.  The caller chooses the end that keeps the result valid:

    bisect(holds, inside, outside).inside      a point at which the condition was evaluated as true
    bisect(holds, inside, outside).outside     a point at which the condition was evaluated as false

The argument `inside` may be smaller or larger than the argument `outside`.

Theorem (sides):
    Suppose that the condition holds at `inside` and fails at `outside`.  Then the condition holds at the returned
    `inside` and fails at the returned `outside`.  Both returned points lie between the two given points.  If the
    condition changes only once between the given points, it changes between the returned points.

Proof:
    Each step evaluates the condition at a point between `inside` and `outside`.  If the condition holds, the point
    replaces `inside`; otherwise, it replaces `outside`.

The condition is never evaluated at the given `inside` or `outside`, because the caller knows its values there.  The
functions for arrays make one exception: they still evaluate elements whose bisection has ended, and ignore the values.

Theorem (termination):
    Every bisection terminates for every condition, even if `steps` and `close` are None.

Proof:
    A step is made only if the midpoint lies strictly between the ends of the bracket.  Only finitely many doubles lie
    between two doubles, and only finitely many integers between two integers.  Each step reduces the number of doubles
    or integers between the ends.  A midpoint that is NaN or infinite never lies strictly between the ends.

The arithmetic mean halves the bracket.  A bisection between two doubles with the same exponent takes at most 53 steps.
A bisection between 0 and 1 takes 1,074 steps if the condition holds only at 0, because it continues to the smallest
positive double.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from dpaudit.numerics.arrays import Array, Flags, Integers

Point = TypeVar("Point")


class Bracket(NamedTuple, Generic[Point]):
    """The two ends of the final bracket of a bisection."""

    inside: Point  # last point at which the condition was true
    outside: Point  # last point at which the condition was false


def arithmetic_mean(a: float, b: float) -> float:
    """Return the arithmetic mean (a + b) / 2, which is infinite if the sum a + b overflows."""
    return (a + b) / 2


def geometric_mean(a: float, b: float) -> float:
    """Return the geometric mean sqrt(a b) of two positive numbers."""
    return math.sqrt(a) * math.sqrt(b)


def bisect(
    holds: Callable[[float], bool],
    inside: float,
    outside: float,
    *,
    steps: int | None = None,
    close: Callable[[float, float], bool] | None = None,
    mean: Callable[[float, float], float] = arithmetic_mean,
) -> Bracket[float]:
    """Locate the number at which a condition changes from true to false."""
    for _ in repeat(None) if steps is None else repeat(None, steps):
        if close is not None and close(inside, outside):
            break
        middle = mean(inside, outside)
        if not min(inside, outside) < middle < max(inside, outside):
            break
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return Bracket(inside, outside)


def bisect_integers(holds: Callable[[int], bool], inside: int, outside: int) -> Bracket[int]:
    """Locate the integer at which a condition changes from true to false; the ends of the bracket differ by 1."""
    found = bisect(lambda x: holds(int(x)), inside, outside, mean=lambda a, b: (a + b) // 2)
    return Bracket(int(found.inside), int(found.outside))


def bisect_each(
    holds: Callable[[Array], Flags],
    inside: Array,
    outside: Array,
    *,
    steps: int | None = None,
    close: Callable[[Array, Array], Flags] | None = None,
    mean: Callable[[Array, Array], Array] = lambda a, b: (a + b) / 2,
) -> Bracket[Array]:
    """Apply `bisect` to each element of an array independently."""
    for _ in repeat(None) if steps is None else repeat(None, steps):
        middle = mean(inside, outside)
        open_ = (np.minimum(inside, outside) < middle) & (middle < np.maximum(inside, outside))
        if close is not None:
            open_ &= ~close(inside, outside)
        if not open_.any():
            break
        yes = holds(middle)
        inside, outside = np.where(open_ & yes, middle, inside), np.where(open_ & ~yes, middle, outside)
    return Bracket(inside, outside)


def bisect_each_integer(holds: Callable[[Integers], Flags], inside: Integers, outside: Integers) -> Bracket[Integers]:
    """Apply `bisect_integers` to each element of an array independently."""
    found = bisect_each(holds, inside, outside, mean=lambda a, b: (a + b) // 2)  # type: ignore[arg-type]
    return found  # type: ignore[return-value]


def last_that_holds(holds: Callable[[float], bool], *, precision: float, most: float = 64.0) -> float:
    """Compute a lower bound of the largest number at which a condition holds.

    The condition must change only once from true to false.  The search starts at x = `precision` and doubles x until
    the condition fails at x or x reaches `most`.  It then bisects the last interval.

    Args:
        holds: Function that returns whether a number satisfies the condition.
        precision: Absolute precision of a result of at most 1, and relative precision of a larger result.
        most: Maximum value of the result.

    Returns:
        The lower bound, between 0 and `most`.  It is 0 if the condition fails at `precision`.

    Theorem:
        Suppose that the condition holds for all x <= x* and fails for all x > x*, where x* > 0.  Let m = min(x*,
        `most`).  Then the result is at most m, and it is greater than m - `precision` * max(1, m).
    """
    inside, outside = 0.0, precision
    while holds(outside):
        inside, outside = outside, 2 * outside
        if inside >= most:
            return most
    found = bisect(holds, inside, outside, close=lambda low, high: high - low <= precision * max(1.0, low)).inside
    return min(found, most)
