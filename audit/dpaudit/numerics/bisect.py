"""Bisection: where a condition stops holding, between a point where it holds and one where it does not.

Each function returns both ends of the last bracket, and the caller takes the end on its safe side:

    bisect(holds, inside, outside).inside      the condition was seen to hold there
    bisect(holds, inside, outside).outside     the condition was seen to fail there

`inside` may be the smaller or the larger of the two.

Theorem (sides):
    If the condition holds at `inside` and fails at `outside`, it does so at the ends that are returned, too, and these
    lie between the ends given.  If it changes only once in between, the change lies between the ends returned.

Proof:
    A step evaluates the condition at a point between the ends, and moves the end with the same answer there.

An end that never moves is returned as it was given, unchecked.

Theorem (termination):
    Every search ends, whatever the condition answers, also without `steps` and `close`.

Proof:
    A step is made only if the middle lies strictly between the ends.  Between two doubles, and between two integers,
    there are finitely many others, and each step leaves fewer.  A middle that is NaN or infinite lies between no ends.

The arithmetic mean halves the bracket.  From 0 to 1 the search takes 1,074 steps where the condition holds at 0 alone,
which is down to the least positive double; between doubles of the same exponent it takes at most 53.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array

Point = TypeVar("Point")
Number = TypeVar("Number", int, float)
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Elements = TypeVar("Elements", Array, Integers)


class Bracket(NamedTuple, Generic[Point]):
    """The ends of a search."""

    inside: Point  # the last point where the condition held
    outside: Point  # the last point where it failed


def arithmetic_mean(a: float, b: float) -> float:
    """(a + b) / 2, infinite beyond 2^1023."""
    return (a + b) / 2


def geometric_mean(a: float, b: float) -> float:
    """The mean on a logarithmic scale, of two positive numbers."""
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
    """Where a condition on a number stops holding; see the module's theorems.

    Args:
        holds: The condition.
        inside: A number at which it holds.
        outside: A number at which it fails.
        steps: At most so many evaluations; unlimited unless given.
        close: Whether these values of `inside` and `outside` are close enough.  Unless given, the search goes on until
            no double lies between them.
        mean: Where to cut; `geometric_mean` for a logarithmic scale.
    """
    return _bisect(holds, inside, outside, steps, close, mean)


def bisect_integers(holds: Callable[[int], bool], inside: int, outside: int) -> Bracket[int]:
    """As `bisect`, for a condition on an integer, until `inside` and `outside` are neighbours."""
    return _bisect(holds, inside, outside, None, None, lambda a, b: (a + b) // 2)


def _bisect(
    holds: Callable[[Number], bool],
    inside: Number,
    outside: Number,
    steps: int | None,
    close: Callable[[Number, Number], bool] | None,
    mean: Callable[[Number, Number], Number],
) -> Bracket[Number]:
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


def bisect_each(
    holds: Callable[[Array], Flags],
    inside: Array,
    outside: Array,
    *,
    steps: int | None = None,
    close: Callable[[Array, Array], Flags] | None = None,
) -> Bracket[Array]:
    """As `bisect`, for each element of an array by itself: (...) numbers.

    `holds` gets all elements in each step, and is asked again about those whose search is over; that answer is ignored.
    """
    return _bisect_each(holds, inside, outside, steps, close, lambda a, b: (a + b) / 2)


def bisect_each_integer(holds: Callable[[Integers], Flags], inside: Integers, outside: Integers) -> Bracket[Integers]:
    """As `bisect_integers`, for each element of an array by itself.

    `holds` is asked again about elements whose search is over, at the smaller of their ends; that answer is ignored.
    """
    return _bisect_each(holds, inside, outside, None, None, lambda a, b: (a + b) // 2)


def _bisect_each(
    holds: Callable[[Elements], Flags],
    inside: Elements,
    outside: Elements,
    steps: int | None,
    close: Callable[[Elements, Elements], Flags] | None,
    mean: Callable[[Elements, Elements], Elements],
) -> Bracket[Elements]:
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


def last_that_holds(holds: Callable[[float], bool], *, precision: float, most: float = 64.0) -> float:
    """The largest x at which a condition holds, rounded down: a lower bound along a nested family.

    Theorem:
        If the condition holds up to some point x* > 0 and not beyond, the result is at most x*, and above x* minus
        `precision`, times x* where that exceeds 1.

    The search doubles from `precision` on, until it has passed `most`, and then bisects.  The result is 0 if the
    condition does not hold at `precision`, and `most` if it holds there.
    """
    inside, outside = 0.0, precision
    while holds(outside):
        inside, outside = outside, 2 * outside
        if inside >= most:
            return most
    found = bisect(holds, inside, outside, close=lambda low, high: high - low <= precision * max(1.0, low)).inside
    return min(found, most)
