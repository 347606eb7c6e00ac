"""Cached values of an audit of scores belong to the audited claim, whatever class a user's claim has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, audit_scores
from dpaudit.inference.scores import confident, level_tails, runs

from .scored import of_canaries


class Unhashable(GaussianDP):
    """A claim of a user's own class may have a field that cannot be hashed."""

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("independence", ["runs", "canaries", None])
def test_a_claim_that_cannot_be_hashed_is_tested_all_the_same(independence: Any) -> None:
    scores = of_canaries(60, 2.0, 5)
    found = [audit_scores(*scores, claim(1.0), independence=independence) for claim in (GaussianDP, Unhashable)]
    assert found[0].p_value == found[1].p_value < 1


def test_arrays_that_are_kept_cannot_be_changed_by_a_claim() -> None:
    cells = [
        *confident._cells(60, 37, 7.0),
        *runs._cells(10.0, 20.0, 7.0),
        confident._rates(GaussianDP(1.0), 60, 37, 7.0),
    ]
    for kept in (level_tails._cells(60, (10, 37), 7.0), level_tails._rates(GaussianDP(1.0), 60, (10, 37), 7.0)):
        cells += [value for name in kept.__slots__ if isinstance(value := getattr(kept, name), np.ndarray)]
    assert not any(array.flags.writeable for array in cells)
