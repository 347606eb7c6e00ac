"""The search for the releases at which the verdict changes, on simulated histories; no test uses randomness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest

from dpaudit.engine.release_search import most_audits, next_release
from dpaudit.result.releases import State, changes, decided, stretches_of

STATES = {"b": State.BAD, "g": State.GOOD, "o": State.OPEN, "s": State.SKIPPED}


def searched(history: str, most: int | None = None, named: Sequence[int] = ()) -> tuple[list[State | None], list[int]]:
    """Search a history, such as "ggbb" for two good releases before two bad ones.

    Returns:
        The states that the search knows at its end, and the releases in the order in which it tried them.
    """
    states: list[State | None] = [None] * len(history)
    tried: list[int] = []
    audited, limit = 0, most_audits(len(history), len(named)) if most is None else most
    while audited < limit and (number := next_release(states, named)) is not None:
        assert states[number] is None, "no release is tried twice"
        states[number] = STATES[history[number]]
        audited += states[number] is not State.SKIPPED
        tried.append(number)
    return states, tried


def exact(states: Sequence[State | None]) -> list[tuple[int, int]]:
    """Return the changes between two releases with no other release between them."""
    return [(one.before, one.after) for one in changes(states) if one.after == one.before + 1]


@pytest.mark.parametrize(("before", "after"), ["gb", "bg"])
def test_a_single_change_is_located_within_the_audits_of_the_theorem(before: str, after: str) -> None:
    for n in (2, 3, 4, 7, 16, 17, 33):
        for at in range(1, n):
            states, tried = searched(before * at + after * (n - at), most=math.ceil(math.log2(n)) + 2)
            assert exact(states) == [(at - 1, at)], (n, at)
            assert tried[:2] == [0, n - 1], "the ends come first"


def test_the_default_is_never_less_than_the_theorem_and_never_more_than_the_releases() -> None:
    assert [most_audits(n) for n in (1, 2, 3, 6, 8, 9, 27, 100, 1000)] == [1, 2, 3, 6, 8, 9, 12, 16, 22]
    assert all(most_audits(n) >= min(n, 2 * math.ceil(math.log2(n)) + 1) for n in range(1, 200))


def test_a_history_without_a_change_is_looked_at_in_evenly_spaced_releases() -> None:
    for history in ("g" * 33, "b" * 33):
        states, tried = searched(history)
        assert not changes(states)
        assert len(tried) == most_audits(33) == 14
        known = decided(states)
        assert max(b - a for a, b in pairwise(known)) <= 4


def test_a_bug_that_was_introduced_and_mended_is_found_between_two_good_ends() -> None:
    for n in (3, 8, 17):
        for first in range(1, n // 2 + 1):
            for last in range(n // 2, n - 1):
                states, _ = searched("g" * first + "b" * (last - first + 1) + "g" * (n - last - 1))
                assert exact(states) == [(first - 1, first), (last, last + 1)], (n, first, last)
    states, _ = searched("ggbgg")
    assert [one.state for one in stretches_of(states)] == [State.GOOD, State.BAD, State.GOOD]


def test_a_short_stretch_is_found_if_a_config_names_a_release_in_it() -> None:
    history = "g" * 13 + "bb" + "g" * 20
    states, tried = searched(history, named=[14])
    assert exact(states) == [(12, 13), (14, 15)]
    assert tried[:3] == [14, 0, 34]


def test_a_second_change_is_found_by_the_audits_that_remain_after_the_first_one() -> None:
    states, _ = searched("g" * 4 + "b" * 8 + "g" * 8 + "b" * 7, most=20)
    assert exact(states) == [(3, 4), (11, 12), (19, 20)]


@pytest.mark.parametrize("passed", ["s", "o"])
def test_neighbours_take_the_place_of_ends_and_middles_without_a_verdict(passed: str) -> None:
    history = passed * 3 + "gg" + passed + "gbb" + passed * 2
    states, _ = searched(history, most=len(history))
    assert exact(states) == [(6, 7)]
    assert decided(states) == [3, 4, 6, 7, 8]


def test_if_nothing_can_be_audited_every_release_is_tried_once() -> None:
    assert sorted(searched("sssss")[1]) == [0, 1, 2, 3, 4]
    assert len(searched("ooooooooo", most=4)[1]) == 4, "inconclusive audits count"
    assert searched("b")[1] == [0]
