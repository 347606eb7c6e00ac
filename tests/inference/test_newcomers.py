"""The p-value of values that occur in new processes only."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpaudit.inference.fixed.newcomers import p_value


@pytest.mark.parametrize("values", ["aabbccdde", "abcdefghi", "aaaaaaaab", "aabbbcccc"])
def test_the_p_value_is_valid_under_exchangeability(values: str) -> None:
    """Enumerates all equally likely choices of the new outputs."""
    n = len(values)
    for m in (1, 2, 3):
        found = []
        for chosen in itertools.combinations(range(n), m):
            new = [values[i] for i in chosen]
            found.append(p_value([values[i] for i in range(n) if i not in chosen], new))
        for p in set(found):
            assert sum(q <= p for q in found) / len(found) <= p + 1e-12


def test_the_p_value_of_only_new_values_is_one_over_the_number_of_choices() -> None:
    known, new = ["a", "b"] * 50, [f"new {i}" for i in range(12)]
    assert p_value(known, new) == pytest.approx(2 / math.comb(112, 12), rel=1e-6)
    assert p_value(known, ["a", "b"] * 6) >= 1.0


def test_values_repeated_among_the_new_outputs_count() -> None:
    """The new outputs contain values that the known ones never show, some of them repeatedly."""
    rng = np.random.default_rng(0)
    known, new = rng.choice([3, 5, -1], size=4000).tolist(), [0, 0, 1, 1, 1, 2, 2, 4, 4, 3, 5, -1]
    assert p_value(known, new) < 1e-9
