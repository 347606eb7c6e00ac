"""Intervals and bands that hold at any stopping time, and the selection among e-values of many audits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.claims import GaussianDP
from dpaudit.inference.e_bh import e_bh
from dpaudit.inference.fixed.binomial import clopper_pearson
from dpaudit.inference.grid import bin_counts
from dpaudit.inference.sequential.bands import anytime_band, anytime_interval, upper_rate


@pytest.mark.parametrize(
    ("rate", "prior"), [(0.02, (0.5, 0.5)), (0.25, (3.0, 9.0)), (0.25, (0.5, 0.5)), (0.5, (40.0, 2.0))]
)
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


def plain(e_values: list[float], rate: float) -> list[int]:
    """Find the largest k such that k e-values are at least m / (k rate); return their positions."""
    m = len(e_values)
    for k in range(m, 0, -1):
        if sum(e >= m / (k * rate) for e in e_values) >= k:
            cutoff = sorted(e_values, reverse=True)[k - 1]
            return [i for i, e in enumerate(e_values) if e >= cutoff][:k]
    return []


def test_agrees_with_a_plain_version() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        e_values = np.exp(rng.normal(2, 3, rng.integers(1, 12))).tolist()
        assert e_bh(e_values, false_discovery_rate=0.1) == plain(e_values, 0.1)


def test_the_false_discovery_rate_is_at_most_the_stated_one() -> None:
    """Simulates 2,000 suites in which ten true claims rarely have large e-values.  Fails by chance < 1 in 10**6."""
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(2_000):
        true = np.where(rng.random(10) < 0.01, 100.0, 0.0)
        named = e_bh([*true.tolist(), 1e9, 1e9], false_discovery_rate=0.2)
        shares.append(np.mean([i < 10 for i in named]))
    assert np.mean(shares) <= 0.2 + 5 * 0.2 / math.sqrt(2_000)


@pytest.mark.parametrize(("e_values", "rate"), [([math.nan], 0.1), ([-1.0], 0.1), ([1.0], 0.0), ([1.0], 1.0)])
def test_impossible_input_is_refused(e_values: list[float], rate: float) -> None:
    with pytest.raises(ValueError, match=r"e-values must be|false_discovery_rate must lie"):
        e_bh(e_values, false_discovery_rate=rate)


def plain_upper_rate(k: int, n: int, significance: float) -> float:
    """Compute `upper_rate` by a scan over rates, with an explicit mixture."""
    tilts = -0.002 * (12 / 0.002) ** (np.arange(24) / 23)
    rates = np.linspace(k / n, 1, 20001)[:-1, None]
    wealth = np.logaddexp.reduce(tilts * k - n * np.log1p(rates * np.expm1(tilts)) - math.log(24), axis=1)
    refuted = np.flatnonzero(wealth >= -math.log(significance))
    return float(rates[refuted[0], 0]) if len(refuted) else 1.0


@pytest.mark.parametrize(("k", "n"), [(0, 10), (10, 10), (3, 10), (0, 1000), (1, 1000), (500, 1000), (999, 1000)])
def test_the_bound_agrees_with_the_reference_implementation(k: int, n: int) -> None:
    assert float(upper_rate(k, n, significance=0.01)) == pytest.approx(plain_upper_rate(k, n, 0.01), abs=1e-4)


def test_the_bound_holds_at_all_times_simultaneously() -> None:
    """At most 5 % of 400 paths may exceed the bound at any of 80 times.  Fails by chance < 1 in 10**6."""
    rng = np.random.default_rng(5)
    left = 0
    for rate in (0.03, 0.5):
        successes = np.cumsum(rng.random((200, 2000)) < rate, axis=1)
        looks = np.unique(np.geomspace(1, 2000, 80).astype(int))
        bounds = np.array([upper_rate(successes[:, n - 1], n, significance=0.05) for n in looks])
        left += int(np.sum(bounds.min(axis=0) < rate))
    assert left <= binom.ppf(1 - 1e-6, 400, 0.05)


def test_the_band_covers_the_curve_of_gaussian_noise() -> None:
    """The score is the exact likelihood ratio, so the curve is G_1.  Fails by chance < 1 in 10**6."""
    rng = np.random.default_rng(9)
    missed = 0
    for _ in range(60):
        n = int(rng.integers(50, 3000))
        counts0, counts1 = bin_counts(rng.normal(-0.5, 1, n)), bin_counts(rng.normal(0.5, 1, n))
        alpha, _, upper = anytime_band(counts0, counts1, significance=0.05)
        missed += bool(np.any(upper < GaussianDP(1.0).beta(np.clip(alpha, 0, 1)) - 1e-12))
    assert missed <= binom.ppf(1 - 1e-6, 60, 0.05)


def test_the_band_is_near_the_curve_with_many_trials() -> None:
    rng = np.random.default_rng(1)
    counts0, counts1 = bin_counts(rng.normal(-0.5, 1, 200_000)), bin_counts(rng.normal(0.5, 1, 200_000))
    alpha, beta, upper = anytime_band(counts0, counts1, significance=0.05)
    curve = GaussianDP(1.0).beta(np.clip(alpha, 0, 1))
    assert np.max(np.abs(beta - curve)) < 0.01
    assert np.max(upper - curve) < 0.02


def test_without_trials_the_band_is_trivial() -> None:
    nothing = np.zeros_like(bin_counts(np.zeros(0)))
    alpha, beta, upper = anytime_band(nothing, nothing, significance=0.05)
    assert alpha.tolist() == [1.0, 1.0, 0.0]
    assert np.all(upper >= 1 - alpha - 1e-12)
    assert len(alpha) == len(beta) == len(upper)
