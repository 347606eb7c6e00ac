"""The attack that clips one column to the interval between two medians."""

from __future__ import annotations

import numpy as np

from dpaudit.learning.attack import resolve_attacks


def test_medians_that_differ_by_less_than_a_float_can_halve_give_no_nan() -> None:
    scorer = resolve_attacks("median_clipped")[0].fit(
        np.zeros((9, 1)), np.full((9, 1), 5e-324), np.random.default_rng(0)
    )
    assert scorer(np.array([[0.0], [1.0], [np.inf]])).tolist() == [0.0, 0.0, 0.0]
    scorer = resolve_attacks("median_clipped")[0].fit(
        np.full((9, 1), -1.5e308), np.full((9, 1), 1.5e308), np.random.default_rng(0)
    )
    assert np.all(np.isfinite(scorer(np.array([[-1.5e308], [0.0], [1.5e308]]))))
