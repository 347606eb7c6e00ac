"""Confidence bands of the curve: coverage of known curves, and a reference implementation of the bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.claims import GaussianDP
from dpaudit.inference.grid import bin_counts
from dpaudit.inference.sequential.bands import anytime_band, upper_rate


def plain_upper_rate(k: int, n: int, significance: float) -> float:
    """Compute `upper_rate` by a scan over rates, with an explicit mixture."""
    tilts = [-0.002 * (12 / 0.002) ** (i / 23) for i in range(24)]
    for rate in np.linspace(k / n, 1, 20001)[:-1]:
        terms = [s * k - n * math.log(1 + rate * math.expm1(s)) - math.log(24) for s in tilts]
        if max(terms) + math.log(sum(math.exp(t - max(terms)) for t in terms)) >= -math.log(significance):
            return float(rate)
    return 1.0


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
    for _ in range(150):
        n = int(rng.integers(50, 3000))
        counts0, counts1 = bin_counts(rng.normal(-0.5, 1, n)), bin_counts(rng.normal(0.5, 1, n))
        alpha, _, upper = anytime_band(counts0, counts1, significance=0.05)
        missed += bool(np.any(upper < GaussianDP(1.0).beta(np.clip(alpha, 0, 1)) - 1e-12))
    assert missed <= binom.ppf(1 - 1e-6, 150, 0.05)


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
