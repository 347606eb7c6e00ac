"""A leak that neither the running time nor the output shows alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit import Pair, PureDP, audit
from dpaudit.outputs import Timed
from dpaudit_attacks.trees import Trees

PAIR = Pair([0], [1])


def counted(reported: bool) -> Callable[[list[int], np.random.Generator], Any]:
    """A number with Laplace noise of epsilon 1; its running time is the size of the noise, or independent of it."""

    def mechanism(dataset: list[int], rng: np.random.Generator) -> Timed:
        noise, other = rng.laplace(0.0, 1.0, 2)
        seconds = 1e-5 * (1 + abs(noise if reported else other)) * float(np.exp(rng.normal(0.0, 0.02)))
        return Timed(dataset[0] + float(noise), seconds)

    return mechanism


def test_noise_that_takes_as_long_as_it_is_large_is_refuted() -> None:
    """20 audits took 79 to 180 trials, and each further such number of trials multiplies the wealth by 20 again.

    Fails by chance < 1 in 10**6.
    """
    result = audit(counted(True), PureDP(1.0), PAIR, trials=2000, seed=1, confidence=0.95, confirm="never")
    assert result.violated
    assert result.witness is not None
    assert "time_and_output" in result.witness.attack


def test_a_time_that_has_nothing_to_do_with_the_noise_is_not() -> None:
    """The claim is true; at this confidence a false alarm has odds < 1 in 10**6."""
    assert not audit(counted(False), PureDP(1.0), PAIR, trials=600, confidence=1 - 1e-7, seed=0).violated


def test_trees_pass_over_columns_without_any_number() -> None:
    """scikit-learn refuses such columns, which are products of numbers of which one is always missing.

    The means of the other column are two standard deviations apart: fails by chance < 1 in 10**6.
    """
    rng = np.random.default_rng(0)
    rows = [np.column_stack([rng.normal(shift, 1, 600), np.full(600, np.nan)]) for shift in (0.0, 2.0)]
    scores = [Trees().fit(rows[0], rows[1], rng)(side) for side in rows]
    assert scores[1].mean() > scores[0].mean() + 1
    missing = np.full((50, 2), np.nan)
    assert np.array_equal(Trees().fit(missing, missing, rng)(missing), np.zeros(50))
