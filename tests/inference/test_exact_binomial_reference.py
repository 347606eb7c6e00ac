"""Bounds of the exact test with a fixed number of trials: reference values, other tools, and limits of any bound.

All tests are deterministic.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from dpaudit.inference.fixed.binomial import clopper_pearson_lower, clopper_pearson_upper
from dpaudit.inference.fixed.exact_binomial import epsilon_lower, mu_lower


def test_clopper_pearson_bounds() -> None:
    # beta.ppf(.95, 6, 95); the value of jax_privacy.auditing._clopper_pearson_upper(5, 100, .05)
    assert clopper_pearson_upper(5, 100, significance=0.05) == pytest.approx(0.1022533776432745, rel=1e-12)
    for k, n in ((0, 1), (1, 1), (0, 50), (50, 50), (17, 50), (3, 100_000)):
        upper, lower = (bound(k, n, significance=0.01) for bound in (clopper_pearson_upper, clopper_pearson_lower))
        assert k == n or binom.cdf(k, n, upper) == pytest.approx(0.01, rel=1e-9)
        assert k == 0 or binom.sf(k - 1, n, lower) == pytest.approx(0.01, rel=1e-9)
        assert lower <= k / n <= upper
    assert clopper_pearson_upper(7, 7, significance=0.05) == 1.0
    assert clopper_pearson_lower(0, 0, significance=0.05) == 0.0


def pair_epsilon(x: int, n0: int, y: int, n1: int, delta: float, significance: float) -> float:
    """Compute the usual bound from two intervals, each with half of the significance."""
    alpha = clopper_pearson_upper(x, n0, significance=significance / 2)
    power = clopper_pearson_lower(y, n1, significance=significance / 2)
    return max(math.log((power - delta) / alpha), math.log((1 - alpha - delta) / (1 - power)))


def test_bounds_from_two_intervals_agree_with_other_tools() -> None:
    # jax_privacy.auditing, test_epsilon_clopper_pearson_explicit: quantiles of N(0, 1) and N(1, 1), threshold 0.5
    scores = ndtri((np.arange(1000) + 0.5) / 1000)
    x, y = int((scores > 0.5).sum()), int((scores + 1 > 0.5).sum())
    alpha, power = clopper_pearson_upper(x, 1000, significance=0.05), clopper_pearson_lower(y, 1000, significance=0.05)
    assert math.log(power / alpha) == pytest.approx(0.6904531341866593, abs=1e-6)
    # privacy_estimates, test_symmetry, method "beta": FN, FP, TN, TP = 12, 58, 200, 200; the lower end of 0.05
    assert pair_epsilon(58, 258, 200, 212, 1e-5, 0.025) == pytest.approx(1.9323114, abs=1e-6)
    # privacy_estimates, test_onesided_twosided_estimates: 923, 19, 982, 76, one-sided at 0.05
    assert pair_epsilon(19, 1001, 76, 999, 1e-5, 0.05) == pytest.approx(0.7170823, abs=1e-6)


def test_the_exact_bound_is_about_as_large_as_a_bayesian_one_without_guarantee() -> None:
    # privacy_estimates, method "joint-beta", for the same counts: 2.10606 and 0.98352
    assert epsilon_lower(58, 258, 200, 212, delta=1e-5, significance=0.025) >= 2.09
    assert epsilon_lower(19, 1001, 76, 999, delta=1e-5, significance=0.05) >= 0.975


@pytest.mark.parametrize(
    ("n", "least", "limit"),
    [(1_000, 0.900, 0.9043), (10_000, 0.969, 0.9696), pytest.param(100_000, 0.990, 0.9904, marks=pytest.mark.slow)],
)
def test_mu_lower_is_close_to_the_limit_of_any_valid_bound(n: int, least: float, limit: float) -> None:
    """Uses the median counts of mu = 1 at the midpoint; benchmarks/fixed_bounds.py computes medians over all counts."""
    mistakes = round(2 * n * float(ndtr(-0.5)))
    x, z = mistakes // 2, mistakes - mistakes // 2
    assert least <= mu_lower(x, n, n - z, n, significance=0.05) <= limit + 0.5 / math.sqrt(n) / 10


def test_bounds_of_rare_events_exceed_those_of_two_intervals() -> None:
    """Without half an output per cell, the likelihood ratio would give smaller bounds here."""
    for x, y, n in ((1, 23, 1_000), (0, 10, 1_000)):
        exact = epsilon_lower(x, n, y, n, delta=1e-5, significance=0.05)
        assert exact > pair_epsilon(x, n, y, n, 1e-5, 0.05) + 0.05
