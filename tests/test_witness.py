"""The region a witness shows, and its words."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.claims import PureDP
from dpaudit.inference.grid import BINS, EDGES
from dpaudit.scoring import Learner
from dpaudit.witness import _cut, make_witness


def test_of_thresholds_that_part_the_outputs_alike_the_middle_one_is_shown() -> None:
    """So that outputs not seen yet fall on the side of those most like them."""
    counts0, counts1 = np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    low, high = 100, 201
    counts0[low], counts1[[low, high]] = 40, 20
    witness = make_witness(Learner([], 0, 0), PureDP(1.0), counts0, counts1, pair="a pair")
    assert witness is not None
    assert witness.threshold == EDGES[(low + high - 1) // 2]
    assert (witness.counts.false_positives, witness.counts.false_negatives) == (0, 20)


def test_thresholds_up_to_the_last_are_alike_where_no_output_is_beyond() -> None:
    counts = np.zeros(BINS, dtype=np.int64)
    counts[10] = 5
    assert make_witness(Learner([], 0, 0), PureDP(0.0), counts, counts, pair="a pair") is not None


@pytest.mark.parametrize("missing", [False, True])
def test_a_condition_says_whether_missing_values_meet_it(missing: bool) -> None:
    column = np.arange(100.0)
    inside = column < 30
    if missing:
        column[:10] = np.nan
    words, agreement = _cut("age", column, inside)
    assert words == "age below 29.5" + " or missing" * missing
    assert agreement == 1.0
