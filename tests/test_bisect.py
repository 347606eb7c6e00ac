"""Bisection agrees with plain scans at both ends of the bracket, and every search terminates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.numerics import (
    Array,
    Bracket,
    Flags,
    Integers,
    bisect,
    bisect_each,
    bisect_each_integer,
    bisect_integers,
    geometric_mean,
    last_that_holds,
)

FINITE = st.floats(-8e307, 8e307)  # the sum of two is finite, too
SMALL = st.integers(-50, 50)


def plain(holds: Callable[[int], bool], inside: int, outside: int) -> Bracket[int]:
    """Scan the integers one by one, starting at the inner end."""
    step = 1 if inside < outside else -1
    at = inside
    while at + step != outside and holds(at + step):
        at += step
    return Bracket(at, at + step)


def turning(edge: float, *, below: bool) -> Callable[[float], bool]:
    """Return a condition that changes once: it holds up to the edge, or from the edge upwards."""
    return (lambda x: x <= edge) if below else (lambda x: x >= edge)


@given(SMALL, SMALL, SMALL, st.booleans())
def test_integers_are_found_as_by_a_scan(a: int, b: int, edge: int, below: bool) -> None:
    holds = turning(edge, below=below)
    inside, outside = sorted((a, b), reverse=not below)
    if not holds(inside) or holds(outside):
        return
    assert bisect_integers(holds, inside, outside) == plain(holds, inside, outside)


@given(FINITE, FINITE, FINITE, st.booleans())
def test_the_ends_are_neighbours_with_different_answers(a: float, b: float, edge: float, below: bool) -> None:
    holds = turning(edge, below=below)
    inside, outside = sorted((a, b), reverse=not below)
    if not holds(inside) or holds(outside):
        return
    found = bisect(holds, inside, outside)
    assert holds(found.inside)
    assert not holds(found.outside)
    assert found.outside == math.nextafter(found.inside, outside)


@settings(max_examples=40)
@given(FINITE, FINITE, st.lists(st.booleans(), min_size=1), st.sampled_from([lambda a, b: (a + b) / 2, geometric_mean]))
def test_every_search_ends_within_its_ends(
    a: float, b: float, answers: list[bool], mean: Callable[[float, float], float]
) -> None:
    """The condition may answer at random.  The limit of 2,200 steps is twice that of the longest known search."""
    inside, outside = (abs(a), abs(b)) if mean is geometric_mean else (a, b)
    asked: list[float] = []

    def holds(x: float) -> bool:
        asked.append(x)
        return answers[len(asked) % len(answers)]

    found = bisect(holds, inside, outside, mean=mean)
    assert len(asked) <= 2_200
    assert all(min(inside, outside) < x < max(inside, outside) for x in asked)
    assert {*found} <= {inside, outside, *asked}


def test_the_longest_search_between_0_and_1() -> None:
    asked: list[float] = []
    found = bisect(lambda x: bool(asked.append(x)), inside=0.0, outside=1.0)  # type: ignore[func-returns-value]
    assert found == (0.0, 5e-324)
    assert len(asked) == 1_074


@pytest.mark.parametrize(
    ("inside", "outside"), [(math.nan, 1.0), (0.0, math.nan), (0.0, math.inf), (-math.inf, math.inf), (1.0, 1.0)]
)
def test_nothing_lies_between_such_ends(inside: float, outside: float) -> None:
    def never(x: float) -> bool:
        raise AssertionError(x)

    np.testing.assert_equal(tuple(bisect(never, inside, outside)), (inside, outside))
    with np.errstate(invalid="ignore"):
        arrays = bisect_each(never, np.array([inside]), np.array([outside]))  # type: ignore[arg-type]
    np.testing.assert_equal(np.concatenate(arrays), [inside, outside])


def test_a_bracket_that_overflows_is_returned_as_it_is() -> None:
    assert bisect(lambda x: x <= 1.5e308, 1.2e308, 1.7e308) == (1.2e308, 1.7e308)


def test_an_end_that_never_moved_is_unchecked() -> None:
    assert bisect(lambda _: True, 0.0, 1.0).outside == 1.0
    assert bisect(lambda _: False, 0.0, 1.0, steps=3) == (0.0, 0.125)


@given(st.floats(1e-300, 1e300))
def test_the_geometric_mean_needs_few_steps_on_any_scale(edge: float) -> None:
    asked: list[float] = []

    def holds(x: float) -> bool:
        asked.append(x)
        return x <= edge

    found = bisect(holds, 1e-308, 1e308, close=lambda low, high: high / low <= 1.001, mean=geometric_mean)
    assert found.inside <= edge < found.outside <= 1.001 * found.inside
    assert len(asked) <= 21  # log2(log(10^616) / log(1.001))


@settings(max_examples=40)
@given(st.lists(st.tuples(SMALL, SMALL, SMALL), max_size=20))
def test_each_integer_is_found_as_if_alone(rows: list[tuple[int, int, int]]) -> None:
    rows = [(min(a, b), max(a, b), edge) for a, b, edge in rows if min(a, b) <= edge < max(a, b)]
    low, high, edge = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))

    def holds(x: Integers) -> Flags:
        return np.asarray(x <= edge)

    found = bisect_each_integer(holds, low, high)
    assert found.inside.tolist() == edge.tolist()
    assert found.outside.tolist() == (edge + 1).tolist()
    turned = bisect_each_integer(lambda x: ~holds(x), high, low)
    assert turned.inside.tolist() == (edge + 1).tolist()
    assert turned.outside.tolist() == edge.tolist()


@settings(max_examples=20)
@given(st.lists(st.floats(0.0, 1e300), max_size=20), st.sampled_from([None, 7, 60]), st.sampled_from([0.0, 1e-3]))
def test_each_element_is_found_as_if_alone(edges: list[float], steps: int | None, width: float) -> None:
    edge = np.array(edges)

    def close(x: Array, y: Array) -> Flags:
        return np.asarray(np.abs(x - y) <= width * np.abs(y))

    found = bisect_each(lambda x: x <= edge, np.zeros_like(edge), np.full_like(edge, 1e301), steps=steps, close=close)
    for i, one in enumerate(edges):
        alone = bisect(
            turning(one, below=True), 0.0, 1e301, steps=steps, close=lambda x, y: abs(x - y) <= width * abs(y)
        )
        assert (found.inside[i], found.outside[i]) == alone


@pytest.mark.parametrize("precision", [1e-4, 1e-6])
@pytest.mark.parametrize("edge", [0.0, 3e-7, 3e-5, 0.31234567, 0.7, 1.0000001, 7.7, 12.3, 63.999, 64.0, 70.0, 1e9])
def test_the_last_that_holds_is_just_below_the_edge(edge: float, precision: float) -> None:
    found = last_that_holds(lambda x: x <= edge, precision=precision)
    true = min(edge, 64.0)
    assert found <= true
    assert found >= true - precision * max(1.0, true)
    assert found == 0 or found >= precision
