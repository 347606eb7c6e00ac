"""Selection of the guessed canaries, and the count of right guesses."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.claims import PureDP
from dpaudit.inference.one_run import p_value_exact, refutes
from dpaudit.inference.scores.both_sides import guess

from .plain_scores import right_guesses


def test_the_extreme_scores_are_guessed() -> None:
    scores = np.array([3.0, -1.0, 0.0, 7.0, np.inf, -np.inf, 2.0])
    assert guess(scores, 4).tolist() == [0, -1, 0, 1, 1, -1, 0]
    assert guess(scores, 3).tolist() == [0, 0, 0, 1, 1, -1, 0]
    assert guess(scores, 7).tolist() == [1, -1, -1, 1, 1, -1, 1]
    assert guess(scores, 0).tolist() == [0] * 7
    assert guess(np.array([5.0]), 1).tolist() == [1]
    assert guess(np.zeros(0), 0).tolist() == []


def test_ties_depend_neither_on_the_order_of_the_list_nor_on_chance() -> None:
    """A list with the included canaries first must not make a constant score look like an attack."""
    m = 2000
    first_included = np.arange(m) < m // 2
    answers = guess(np.zeros(m), 1000)
    assert np.array_equal(answers, guess(np.zeros(m), 1000))
    _, right = right_guesses(answers, first_included)
    assert 400 < right < 600  # about 508; deterministic
    assert not refutes(PureDP(0.0), m, 1000, right, significance=0.05)


def test_more_guesses_than_canaries_are_rejected() -> None:
    with pytest.raises(ValueError, match="3 guesses, 2 canaries"):
        guess(np.array([0.0, 1.0]), 3)


def test_the_number_of_guesses_must_not_depend_on_the_output_if_delta_is_positive() -> None:
    """A mechanism that rarely chooses the r for which delta has most effect raises the error from 5 % to 9 %."""
    m, epsilon, delta, significance, share = 2000, 0.0, 2.4e-4, 0.05, 0.06
    critical = next(v for v in range(1, 1001) if p_value_exact(epsilon, delta, m, 1000, v) <= significance)
    assert p_value_exact(epsilon, delta, m, 10, 10) <= significance
    usual = float(p_value_exact(epsilon, 0.0, m, 1000, critical))  # r = 1000, perfectly private
    rare = float(p_value_exact(epsilon, delta / share, m, 10, 10))  # r = 10, with all of delta
    assert (1 - share) * usual + share * rare > 0.085
