"""The p-value of values that only new processes show."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpaudit.inference.fixed.newcomers import p_value


@pytest.mark.parametrize("values", ["aabbccdde", "abcdefghi", "aaaaaaaab", "aabbbcccc"])
def test_it_is_a_p_value_under_every_order(values: str) -> None:
    """All choices of the new ones among exchangeable outputs, each equally likely: no chance is left."""
    n = len(values)
    for m in (1, 2, 3):
        found = []
        for chosen in itertools.combinations(range(n), m):
            new = [values[i] for i in chosen]
            found.append(p_value([values[i] for i in range(n) if i not in chosen], new))
        for p in set(found):
            assert sum(q <= p for q in found) / len(found) <= p + 1e-12


def test_new_values_in_every_process_are_as_unlikely_as_one_order_among_all() -> None:
    known, new = ["a", "b"] * 50, [f"new {i}" for i in range(12)]
    assert p_value(known, new) == pytest.approx(2 / math.comb(112, 12), rel=1e-6)
    assert p_value(known, ["a", "b"] * 6) >= 1.0


def test_values_that_come_again_among_the_new_ones_count_too() -> None:
    """Whole numbers, of which a pool holds a few."""
    rng = np.random.default_rng(0)
    known, new = rng.choice([3, 5, -1], size=4000).tolist(), [0, 0, 1, 1, 1, 2, 2, 4, 4, 3, 5, -1]
    assert p_value(known, new) < 1e-9
