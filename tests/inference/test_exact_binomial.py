"""The exact test with a fixed number of trials: enumeration of all outcomes, and a reference implementation.

All tests are deterministic.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import bisect
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.fixed import evidence
from dpaudit.inference.fixed.binomial import clopper_pearson_lower, clopper_pearson_upper
from dpaudit.inference.fixed.evidence import Arc, Outcomes, largest_probability, slack
from dpaudit.inference.fixed.exact_binomial import epsilon_lower, mu_lower, p_value, parameter_lower
from dpaudit.numerics import Array

from .plain import ALPHAS, CLAIMS, law, plain_bound, plain_evidence, plain_p_value, tail

FEW = [CLAIMS[i] for i in (0, 4, 1, 7, 9, 10)]  # a claim of each family, and the one that allows nothing


def each_claim(*sizes: tuple[int, int]) -> list[Any]:
    """Every claim with every pair of numbers of outputs; for the few claims in turn, one pair is not slow."""
    usual = {(claim, sizes[i % len(sizes)]) for i, claim in enumerate(FEW)}
    return [
        pytest.param(
            claim, *size, marks=() if (claim, size) in usual else pytest.mark.slow, id=f"{size[0]}-{size[1]}-{claim}"
        )
        for size in sizes
        for claim in CLAIMS
    ]


# --- comparison with a slow reference implementation


def test_the_reference_law_is_binomial() -> None:
    for n in (1, 8):
        assert law(n, ALPHAS) == pytest.approx(binom.pmf(np.arange(n + 1)[:, None], n, ALPHAS), rel=1e-12)


@pytest.mark.parametrize(("claim", "n0", "n1"), [*each_claim((7, 6), (4, 9)), (PureDP(1.0), 1, 1), (CLAIMS[-1], 1, 1)])
def test_the_p_value_agrees_with_the_reference_implementation(claim: TradeoffFunction, n0: int, n1: int) -> None:
    for x in range(0, n0 + 1, 3):
        for z in range(0, n1 + 1, 4):
            slow, fast = plain_p_value(claim, x, n0, z, n1), p_value(claim, x, n0, n1 - z, n1)
            assert slow * (1 - 1e-4) <= fast <= min(1.0, slow * 1.12)


@pytest.mark.parametrize("family", [GaussianDP, PureDP, lambda t: ApproxDP(epsilon=t, delta=0.05)])
def test_bounds_agree_with_the_reference_implementation(family: Callable[[float], TradeoffFunction]) -> None:
    n0, n1 = 14, 11
    for x, z in [(4, 3), (0, 8)]:
        fast, slow = parameter_lower(family, x, n0, n1 - z, n1, significance=0.05), plain_bound(family, x, n0, z, n1)
        assert slow - 0.003 <= fast < slow + 0.021


# --- the theorems, by enumeration


@lru_cache
def all_p_values(claim: TradeoffFunction, n0: int, n1: int) -> Array:
    return np.array([[p_value(claim, x, n0, n1 - z, n1) for z in range(n1 + 1)] for x in range(n0 + 1)])


@pytest.mark.parametrize(("claim", "n0", "n1"), each_claim((4, 3), (2, 6)))
def test_a_true_claim_gets_a_p_value_of_at_most_s_with_probability_at_most_s(
    claim: TradeoffFunction, n0: int, n1: int
) -> None:
    """Enumerates every attained s and many alpha, on the boundary of the claim and inside it."""
    p = all_p_values(claim, n0, n1)
    on_boundary = claim.symmetrized().beta(ALPHAS)
    rows = law(n0, ALPHAS)
    for beta in (on_boundary, on_boundary + 0.3 * (1 - on_boundary)):
        columns = law(n1, beta)
        for s in np.unique(p[p < 1]):
            assert (rows * ((p <= s) @ columns)).sum(axis=0).max() <= s * (1 + 1e-9)


def test_the_enumeration_detects_an_invalid_test() -> None:
    """The maximum size is close to the level, so halving the p-value makes the enumeration fail."""
    p, claim = all_p_values(GaussianDP(0.7), 2, 6) / 2, GaussianDP(0.7)
    sizes = [tail((p <= s).astype(float), 2, 6, ALPHAS, claim.beta(ALPHAS)).max() / s for s in np.unique(p[p < 0.3])]
    assert max(sizes) > 1.5


@pytest.mark.parametrize(
    ("family", "significance"), [(GaussianDP, 0.3), (lambda t: ApproxDP(epsilon=t, delta=0.1), 0.3), (LaplaceDP, 0.05)]
)
def test_a_bound_exceeds_the_truth_with_probability_at_most_the_significance(
    family: Callable[[float], TradeoffFunction], significance: float
) -> None:
    n0, n1 = 4, 3
    bounds = np.array(
        [
            [parameter_lower(family, x, n0, n1 - z, n1, significance=significance) for z in range(n1 + 1)]
            for x in range(n0 + 1)
        ]
    )
    largest = 0.0
    for t in np.unique(np.concatenate([np.linspace(0, 4, 21), bounds.ravel() * (1 - 1e-9)])):
        wrong = tail((bounds > t).astype(float), n0, n1, ALPHAS, family(float(t)).beta(ALPHAS)).max()
        largest = max(largest, float(wrong))
    assert largest <= significance
    assert largest > 0.6 * significance  # as sharp as the small number of outcomes allows


# --- the parts


@pytest.mark.parametrize("claim", [*CLAIMS, PureDP(700.0)], ids=str)
def test_evidence_is_monotone_and_its_search_finds_the_minimum(claim: TradeoffFunction) -> None:
    n0, n1 = 23, 17
    claim = claim.symmetrized()
    x, z = np.meshgrid(np.arange(n0 + 1), np.arange(n1 + 1), indexing="ij")
    found = np.minimum(*(a.evidence(x.ravel(), n0, z.ravel(), n1) for a in Arc.pair(claim, n0, n1, 0.0, 1.0)))
    found = found.reshape(x.shape)
    assert found == pytest.approx(plain_evidence(claim, n0, n1), abs=1e-9)
    assert np.all(np.diff(found, axis=0) <= 1e-12)
    assert np.all(np.diff(found, axis=1) <= 1e-12)


def test_evidence_falls_along_families() -> None:
    """The ranks of the bounds rely on this."""
    for family in (GaussianDP, PureDP, lambda t: ApproxDP(epsilon=t, delta=0.03)):
        evidence = np.array([plain_evidence(family(t), 13, 9) for t in np.linspace(0, 5, 60)])
        assert np.all(np.diff(evidence, axis=0) <= 1e-12)


@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(1.0), ApproxDP(epsilon=1.0, delta=0.05)], ids=str)
def test_a_region_holds_the_right_outcomes_and_its_probability_is_right(claim: TradeoffFunction) -> None:
    n0, n1 = 40, 31
    evidence = plain_evidence(claim, n0, n1)
    for level in (0.3, 1.35, 6.0):
        low, high = 0.1, 0.6
        region = Outcomes.of(claim, level, n0, n1, low, high)
        inside = evidence >= level - 1e-7
        counted = inside.sum(axis=1)[region.first : region.first + len(region.limits)]
        assert np.array_equal(counted, region.limits + 1)
        alpha = np.linspace(low, high, 40)
        beta = np.linspace(0.0, 0.9, 40)
        exact = tail(inside.astype(float), n0, n1, alpha, beta)
        found = np.asarray(region.probability(alpha, beta))
        assert np.all(found >= exact * (1 - 1e-12))
        assert found == pytest.approx(exact, rel=1e-7, abs=4 * math.exp(-region.budget))


@pytest.mark.parametrize(("n0", "n1"), [(300, 400), (5_000, 3_000), (700, 200_000), (20_000, 20_000)])
@pytest.mark.parametrize("long", [0, 3_000])
def test_tails_that_are_left_out_are_counted(n0: int, n1: int, long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference sums scipy's probabilities over all x; `long` selects one of two ways to start the sum over z."""
    monkeypatch.setattr(evidence, "_SUMMED", long)
    claim = GaussianDP(1.0)
    for low, high in ((0.25, 0.35), (0.01, 0.03), (0.9, 0.95)):
        region = Outcomes.of(claim, 1.35, n0, n1, low, high)
        alpha = np.linspace(low, high, 9)
        beta = np.concatenate([claim.beta(alpha[:5]), [0.0, 1e-9, 0.99, 1.0]])
        x = region.first + np.arange(len(region.limits))
        below = binom.cdf(region.limits, n1, beta[:, None])
        exact = np.asarray(binom.pmf(x, n0, alpha[:, None]) * below).sum(axis=1)
        before = np.where(region.first > 0, binom.cdf(region.first - 1, n0, alpha), 0.0)  # counted as inside
        found = region.probability(alpha, beta)
        assert np.all(found >= exact * (1 - 1e-9))
        assert np.all(found <= (exact + before) * (1 + 1e-7) + 4 * math.exp(-region.budget))


def fixed_point(claim: TradeoffFunction) -> float:
    """Return the a with f(a) = a."""
    return float(bisect(lambda a: a - claim.beta(a), 0.0, 1.0, xtol=1e-15))


@pytest.mark.parametrize("n1", [400, pytest.param(20_000, marks=pytest.mark.slow)])  # with and without a sum over z
@pytest.mark.parametrize("claim", [*FEW[:4], PureDP(6.0), ApproxDP(epsilon=4.0, delta=1e-5)], ids=str)
def test_the_bound_holds_between_grid_points(claim: TradeoffFunction, n1: int) -> None:
    """By Lemma 2, the bound is above h everywhere, also at kinks and at the ends, but not far above."""
    n0 = 60
    for low, high in ((0.0, 0.05), (0.02, 0.4), (0.3, 1.0)):
        region = Outcomes.of(claim, 1.35, n0, n1, low, high)
        bound = largest_probability(region, claim, low, high)
        angle = np.linspace(math.asin(math.sqrt(low)), math.asin(math.sqrt(high)), 801)  # 10 to a cell
        alpha = np.concatenate([np.sin(angle) ** 2, low + (high - low) * np.geomspace(1e-9, 1, 200)])
        alpha = np.concatenate([alpha, np.clip([claim.beta(0.0), fixed_point(claim)], low, high)])  # the kinks
        largest = float(region.probability(alpha, claim.beta(alpha)).max())
        assert largest * (1 - 1e-9) <= bound <= largest + 1.01 * slack(largest) + 1e-6


# --- relations


def test_bounds_and_p_values_are_consistent() -> None:
    """They rank the outcomes differently, so they may differ slightly."""
    for x, y, n in ((9, 17, 25), (2, 40, 300)):
        bound = mu_lower(x, n, y, n, significance=0.05)
        assert 0.04 < p_value(GaussianDP(bound), x, n, y, n) < 0.0502
        bound = epsilon_lower(x, n, y, n, delta=0.01, significance=0.05)
        assert 0.03 < p_value(ApproxDP(epsilon=bound, delta=0.01), x, n, y, n) < 0.06


def test_exchanging_the_datasets_and_taking_the_complement_changes_little() -> None:
    for claim, x, y in ((GaussianDP(0.8), 8, 19), (ApproxDP(epsilon=0.5, delta=0.05), 13, 23)):
        assert p_value(claim, x, 30, y, 25) == pytest.approx(p_value(claim, 25 - y, 25, 30 - x, 30), rel=0.1)


def test_more_errors_are_less_evidence() -> None:
    p = all_p_values(PureDP(1.0), 4, 3)
    bounds = np.array([[mu_lower(x, 4, 3 - z, 3, significance=0.05) for z in range(4)] for x in range(5)])
    for axis in (0, 1):
        assert np.all(np.diff(p, axis=axis) >= -0.01)  # the rounding
        assert np.all(np.diff(bounds, axis=axis) <= 1e-9 + 0.003 / math.sqrt(3))


# --- extremes


def test_extreme_counts() -> None:
    for n in (1, 2, 100_000):
        assert p_value(PureDP(0.0), n, n, 0, n) == 1.0
        assert mu_lower(n, n, 0, n, significance=0.05) == 0.0
        assert mu_lower(n, n, n, n, significance=0.05) == 0.0
        assert mu_lower(0, n, 0, n, significance=0.05) == 0.0
        assert epsilon_lower(n, n, n, n, delta=0.0, significance=0.05) == 0.0
    assert p_value(PureDP(0.0), 0, 1, 1, 1) >= 0.25  # the largest probability of (0, 1) under alpha = 1 - beta
    assert p_value(GaussianDP(1.0), 0, 100_000, 100_000, 100_000) <= 1e-90
    assert p_value(GaussianDP(1.0), 0, 0, 3, 5) == 1.0
    assert p_value(GaussianDP(1.0), 0, 3, 0, 0) == 1.0
    assert mu_lower(0, 0, 3, 5, significance=0.05) == 0.0


def test_bounds_of_a_perfect_attack() -> None:
    """Without errors in n trials, bounds lie between those of two intervals and those of error rates 1/n."""
    for n in (50, 10_000):
        at_corner = clopper_pearson_upper(0, n, significance=0.025)
        assert -2 * ndtri(at_corner) <= mu_lower(0, n, n, n, significance=0.05) <= -2 * ndtri(1 / n)
        epsilon = epsilon_lower(0, n, n, n, delta=0.0, significance=0.05)
        assert math.log((1 - at_corner) / at_corner) <= epsilon <= math.log(n)


def test_a_delta_above_the_evidence_leaves_no_epsilon() -> None:
    assert epsilon_lower(0, 1_000, 30, 1_000, delta=0.05, significance=0.05) == 0.0
    assert epsilon_lower(0, 1_000, 100, 1_000, delta=0.05, significance=0.05) > 2.0


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="got 5 of 4"):
        p_value(PureDP(1.0), 5, 4, 1, 4)
    with pytest.raises(ValueError, match="got -1 of 4"):
        mu_lower(0, 4, -1, 4, significance=0.05)
    with pytest.raises(ValueError, match="significance must lie in"):
        mu_lower(0, 4, 1, 4, significance=1.0)
    with pytest.raises(ValueError, match="delta must lie in"):
        epsilon_lower(0, 4, 1, 4, delta=1.0, significance=0.05)


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
    """Uses the median counts of mu = 1 at the midpoint."""
    mistakes = round(2 * n * float(ndtr(-0.5)))
    x, z = mistakes // 2, mistakes - mistakes // 2
    assert least <= mu_lower(x, n, n - z, n, significance=0.05) <= limit + 0.5 / math.sqrt(n) / 10


def test_bounds_of_rare_events_exceed_those_of_two_intervals() -> None:
    """Without half an output per cell, the likelihood ratio would give smaller bounds here."""
    for x, y, n in ((1, 23, 1_000), (0, 10, 1_000)):
        exact = epsilon_lower(x, n, y, n, delta=1e-5, significance=0.05)
        assert exact > pair_epsilon(x, n, y, n, 1e-5, 0.05) + 0.05
