"""Three levels of confidence: the p-value is an upper bound, nearly exact, for the most distinguishable pair."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction, parse_claim
from dpaudit.inference.scores import confident, level_tails, levels
from dpaudit.inference.scores.both_sides import guess
from dpaudit.inference.scores.families import family_of
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect_integers

from .plain_scores import Channel, plain_levels, right_guesses, simulated_wrong

M, NUMBERS = 12, (3, 7)


def law(*blocks: tuple[int, int, float]) -> Array:
    """Return the law of a sum of weighted binomial variables with (size, weight, rate)."""
    found = np.ones(1)
    for size, weight, rate in blocks:
        spread = np.zeros(size * weight + 1)
        spread[::weight] = binom.pmf(range(size + 1), size, rate)
        found = np.convolve(found, spread)
    return found


@pytest.mark.parametrize("claim", [GaussianDP(0.5), GaussianDP(2.0), LaplaceDP(1.0)], ids=str)
def test_p_values_agree_with_quadrature_and_are_not_smaller(claim: TradeoffFunction) -> None:
    most = levels.most_points(M, NUMBERS)
    plain = plain_levels(claim, M, NUMBERS, nodes=8)
    for wrong in (1, 4, 9):
        ours = levels.p_value(claim, M, NUMBERS, most - wrong)
        assert plain[wrong] * (1 - 2e-4) <= ours <= 1.08 * plain[wrong]


@pytest.mark.parametrize("claim", [GaussianDP(1.5), ApproxDP(epsilon=1.0, delta=0.05)], ids=str)
def test_the_most_distinguishable_pair_attains_the_bound(claim: TradeoffFunction) -> None:
    """Allows six standard errors of 4,000 draws and 6 % for the cells.  Fails by chance < 1 in 10**8."""
    m, numbers = 60, (10, 37)
    wrong = simulated_wrong(claim, m, 4000, np.random.default_rng(1))
    total = wrong @ np.repeat(levels.WEIGHTS, [10, 27, 23])
    for most in np.quantile(total, [0.02, 0.1, 0.4]).astype(int).tolist():
        share, ours = float(np.mean(total <= most)), levels.p_value(claim, m, numbers, 154 - most)
        assert abs(share - ours) <= 6 * np.sqrt(ours * (1 - ours) / 4000) + 0.06 * ours


def test_the_sum_is_smallest_if_larger_weights_have_smaller_errors() -> None:
    """Compares all orders of random error rates."""
    rng, weights = np.random.default_rng(2), (5, 5, 3, 1)
    for _ in range(5):
        rates = np.sort(rng.random(4) / 2)
        best, *others = (
            np.cumsum(law(*((1, w, e) for w, e in zip(weights, order, strict=True)))) for order in permutations(rates)
        )
        assert all(np.all(best >= other - 1e-12) for other in others)


@pytest.mark.parametrize(("m", "numbers"), [(100, (16, 62)), (8, (1, 5)), (4, (1, 2))])
def test_pure_claims_have_the_law_of_a_weighted_sum(m: int, numbers: levels.Numbers) -> None:
    sizes = np.diff([0, *numbers, m]).tolist()
    exact = np.cumsum(law(*zip(sizes, levels.WEIGHTS, [float(expit(-1.5))] * 3, strict=True)))
    for wrong in range(0, levels.most_points(m, numbers) // 3, m // 4):
        ours = levels.p_value(PureDP(1.5), m, numbers, levels.most_points(m, numbers) - wrong)
        assert exact[wrong] <= ours <= exact[wrong] * 1.02 + 1e-11


def test_tiny_p_values_are_not_too_small() -> None:
    exact = expit(0.5) ** 300
    assert exact <= levels.p_value(PureDP(0.5), 300, (48, 186), levels.most_points(300, (48, 186))) <= 1.2 * exact
    assert 0 < levels.p_value(PureDP(0.0), 9000, (900, 5000), levels.most_points(9000, (900, 5000))) < 1e-280


def test_left_out_nodes_change_the_result_by_less_than_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    found = levels.p_value(GaussianDP(1.0), 2000, (320, 1240), 3700)
    monkeypatch.setattr(level_tails, "_LEAST_SHARE", 1e-17)
    assert levels.p_value(GaussianDP(1.0), 2000, (320, 1240), 3700) == pytest.approx(found, rel=1e-8)


@pytest.mark.parametrize("name", ["exact", "rounded", "half"])
def test_true_claims_are_rarely_refuted_whatever_the_scores(name: str) -> None:
    """Simulates 300 audits on the boundary or inside.  Fails by chance < 1 in 10**6 at the stated level."""
    rng, m = np.random.default_rng(5), 100
    numbers = levels.default_numbers(m)
    most = levels.most_points(m, numbers)
    least = bisect_integers(lambda v: levels.p_value(GaussianDP(1.0), m, numbers, v) <= 0.05, most, 0).inside
    refuted = 0
    for _ in range(300):
        coins = rng.random(m) < 0.5
        scores = Channel(name).scores(coins, 1.0, rng)
        one, two, three = (right_guesses(guess(scores, r), coins)[1] for r in (*numbers, m))
        refuted += levels.points((one, two, three)) >= least
    assert refuted <= binom.ppf(1 - 1e-6, 300, 0.05)


def test_p_values_rise_as_claims_weaken_and_fall_with_right_guesses() -> None:
    p_value = partial(levels.p_value, m=500, numbers=(80, 310))
    values = [p_value(GaussianDP(mu), right=950) for mu in np.linspace(0.1, 3.0, 12)]
    assert values == sorted(values)
    values = [p_value(GaussianDP(1.0), right=right) for right in range(640, 1281, 64)]
    assert values == sorted(values, reverse=True)
    assert values[0] == 1.0


@pytest.mark.parametrize(("m", "right"), [(20, 40), (1000, 1900), (100_000, 190_000)])
def test_bounds_are_where_the_p_value_is_the_significance(m: int, right: int) -> None:
    numbers = levels.default_numbers(m)
    mu = levels.mu_lower(m, numbers, right, significance=0.05)
    assert levels.p_value(GaussianDP(mu), m, numbers, right) <= 0.05
    assert levels.p_value(GaussianDP(1.001 * mu + 1e-4), m, numbers, right) > 0.05


def test_nothing_is_refuted_by_guesses_of_which_half_are_wrong() -> None:
    assert levels.mu_lower(100, (16, 62), 127, significance=0.05) == 0.0


def test_a_family_in_text_gives_the_same_bound() -> None:
    arguments = 400, (64, 248), 800
    twice = levels.parameter_lower(family_of("repeated(gaussian(mu=?), n=4)"), *arguments, significance=0.05)
    assert 2 * twice == pytest.approx(levels.mu_lower(*arguments, significance=0.05), rel=5e-4)


def test_bounds_of_gaussian_scores_are_larger_than_with_one_number_of_guesses() -> None:
    """The counts are the means for Gaussian scores, rounded."""
    for m, mu in ((300, 0.5), (1000, 1.0), (10_000, 3.0)):
        numbers = levels.default_numbers(m)
        one, two, three = (m * confident.wrong_share(GaussianDP(mu), np.array([*numbers, m]) / m)).tolist()
        wrong = 2 * one + 2 * two + three
        ours = levels.mu_lower(m, numbers, round(levels.most_points(m, numbers) - wrong), significance=0.05)
        assert ours > 1.002 * confident.mu_lower(m, numbers[1], round(numbers[1] - two), significance=0.05)


def test_levels_suit_all_claims_but_approximate_ones() -> None:
    for text in ("gaussian(mu=1)", "laplace(epsilon=1)", "zcdp(rho=0.5)", "repeated(laplace(epsilon=1), n=3)"):
        assert levels.suits(parse_claim(text))
    for claim in (PureDP(1.0), ApproxDP(epsilon=1.0, delta=1e-5)):
        assert not levels.suits(claim)


@pytest.mark.parametrize("numbers", [(0, 5), (5, 5), (6, 5), (5, 10)])
def test_levels_without_guesses_are_refused(numbers: levels.Numbers) -> None:
    with pytest.raises(ValueError, match="1 <= r1 < r2 < canaries"):
        levels.p_value(GaussianDP(1.0), 10, numbers, 5)


def test_impossible_totals_are_refused() -> None:
    with pytest.raises(ValueError, match="right <= guesses"):
        levels.p_value(GaussianDP(1.0), 10, (2, 6), 27)
