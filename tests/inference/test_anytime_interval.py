"""Confidence intervals of a rate that are valid at any stopping time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.inference.fixed.binomial import clopper_pearson
from dpaudit.inference.sequential.bands import anytime_interval


@pytest.mark.parametrize("prior", [(0.5, 0.5), (3.0, 9.0), (40.0, 2.0)])
@pytest.mark.parametrize("rate", [0.02, 0.25, 0.5])
def test_the_interval_covers_the_rate_at_any_stopping_time(rate: float, prior: tuple[float, float]) -> None:
    """Computes the exact probability that any of the first 60 intervals misses the rate, by counting paths."""
    inside, missed = np.array([1.0]), 0.0  # probability of covered paths, by number of successes
    for n in range(1, 61):
        inside = np.append((1 - rate) * inside, 0.0) + np.append(0.0, rate * inside)
        for k in np.flatnonzero(inside):
            low, high = anytime_interval(int(k), n, significance=0.1, prior=prior)
            if not low <= rate <= high:
                missed += inside[k]
                inside[k] = 0.0
    assert math.isclose(missed + inside.sum(), 1.0)
    assert missed <= 0.1


def test_the_coverage_test_detects_intervals_for_a_fixed_number_of_trials() -> None:
    """Intervals of Clopper and Pearson miss the rate too often at some stopping time."""
    inside, missed = np.array([1.0]), 0.0
    for n in range(1, 61):
        inside = np.append(0.5 * inside, 0.0) + np.append(0.0, 0.5 * inside)
        for k in np.flatnonzero(inside):
            low, high = clopper_pearson(int(k), n, significance=0.1)
            if not low <= 0.5 <= high:
                missed += inside[k]
                inside[k] = 0.0
    assert missed > 0.1


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 500), (500, 500), (3, 1000), (250_000, 1_000_000)])
def test_the_interval_contains_the_observed_rate_and_the_clopper_pearson_interval(k: int, n: int) -> None:
    low, high = anytime_interval(k, n, significance=0.05)
    assert 0 <= low <= k / n <= high <= 1
    exact = clopper_pearson(k, n, significance=0.05)
    assert low <= exact[0] + 1e-12  # equal for one output
    assert high >= exact[1] - 1e-12
    assert (low == 0) == (k == 0)
    assert (high == 1) == (k == n)


def test_the_likelihood_ratio_of_the_mixture_at_both_ends_is_one_over_the_significance() -> None:
    """The reference integrates the likelihood numerically over a uniform prior."""
    k, n, significance = 7, 40, 0.05
    p = (np.arange(200_000) + 0.5) / 200_000
    mixture = float(np.mean(binom.pmf(k, n, p)))
    for end in anytime_interval(k, n, significance=significance, prior=(1.0, 1.0)):
        assert math.isclose(mixture / binom.pmf(k, n, end), 1 / significance, rel_tol=1e-6)


def test_impossible_arguments_are_refused() -> None:
    assert anytime_interval(0, 0, significance=0.05) == (0.0, 1.0)
    with pytest.raises(ValueError, match="a count must lie between"):
        anytime_interval(3, 2, significance=0.05)
    with pytest.raises(ValueError, match="significance must lie in"):
        anytime_interval(1, 2, significance=0.0)
