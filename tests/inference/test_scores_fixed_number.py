"""Canaries of which a fixed number is included: compared with the worst mechanisms, and calibrated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from dpaudit.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.inference.scores import confident, dependence, fixed_number, runs, tight

from .plain_fixed_number import largest_drawn_chance, plain_biased_chance
from .plain_scores import Channel

EPSILONS = np.linspace(0.0, 3.0, 7)


@pytest.mark.parametrize(
    ("m", "k", "guesses"),
    [(13, 5, (4, 0)), (9, 2, (5, 0)), (12, 3, (3, 0)), (11, 8, (0, 4)), (8, 4, (2, 2)), (9, 4, (2, 3)), (9, 5, (2, 1))],
)
def test_no_mechanism_exceeds_the_p_value(m: int, k: int, guesses: tuple[int, int]) -> None:
    """Compares with the largest probability of all mechanisms, by a linear program over mechanisms."""
    for claim in (PureDP(1.0), ApproxDP(epsilon=0.5, delta=0.02), GaussianDP(0.7)):
        epsilons = np.array([claim.epsilon(0.02)]) if isinstance(claim, ApproxDP) else EPSILONS
        epsilons = np.array([1.0]) if isinstance(claim, PureDP) else epsilons
        r = sum(guesses)
        for v in range(1, r + 1):
            largest = largest_drawn_chance(claim, m, k, guesses, v, epsilons)
            if isinstance(claim, GaussianDP):  # the program knows the claim at a few epsilons only, which allows more
                largest *= 0.98
            assert fixed_number.p_value(claim, m, k, r, v) >= largest * (1 - 1e-7)
            assert fixed_number.p_value(claim, m, k, r, v, sharp=False) >= largest * (1 - 1e-7)


def test_the_program_over_mechanisms_knows_mechanisms_that_break_the_bound_for_coins() -> None:
    """If 4 of 8 are included, two guesses on each side are right together more often than coins allow."""
    claim = PureDP(0.0)
    largest = largest_drawn_chance(claim, 8, 4, (2, 2), 4, np.zeros(1))
    assert largest == pytest.approx(6 / 70, rel=1e-6)  # two given canaries are included, two others are not
    assert tight.p_value(claim, 8, 4, 4) < largest <= fixed_number.p_value(claim, 8, 4, 4, 4)


@pytest.mark.parametrize(("m", "k", "r", "v"), [(60, 20, 15, 12), (100, 10, 12, 5), (40, 31, 10, 8), (60, 3, 20, 5)])
def test_p_values_equal_those_of_a_plain_program(m: int, k: int, r: int, v: int) -> None:
    """Compares with the program over the law of right guesses; it has the epsilons of the bound."""
    for claim in (PureDP(0.8), ApproxDP(epsilon=0.5, delta=1e-3), GaussianDP(0.4)):
        epsilons = tight.epsilons(claim.symmetrized())
        plain = plain_biased_chance(claim, m, k, r, v, epsilons)
        assert fixed_number.p_value(claim, m, k, r, v) == pytest.approx(min(plain, 1.0), rel=2e-4)
        assert fixed_number.p_value(claim, m, k, r, v, sharp=False) >= min(plain, 1.0) * (1 - 1e-4)


def test_the_factor_is_that_of_the_binomial_law() -> None:
    for m, k in ((13, 5), (1000, 20), (1000, 990), (7, 1)):
        assert fixed_number.conditioning_factor(m, k) == pytest.approx(1 / binom.pmf(k, m, k / m), rel=1e-8)
    assert fixed_number.conditioning_factor(30, 15) == pytest.approx(dependence.number_factor(30, 15), rel=1e-6)


def test_bounds_are_where_the_p_value_is_the_significance() -> None:
    counts = (400, 60, 40, 34)
    mu = fixed_number.mu_lower(*counts, significance=0.05)
    assert fixed_number.p_value(GaussianDP(mu), *counts) <= 0.05 < fixed_number.p_value(GaussianDP(1.01 * mu), *counts)
    epsilon = fixed_number.epsilon_lower(*counts, delta=1e-5, significance=0.05)
    claims = [ApproxDP(epsilon=factor * epsilon, delta=1e-5) for factor in (1.0, 1.01)]
    assert fixed_number.p_value(claims[0], *counts) <= 0.05 < fixed_number.p_value(claims[1], *counts)
    assert fixed_number.mu_lower(400, 60, 40, 6, significance=0.05) == 0.0
    assert fixed_number.epsilon_lower(*counts, delta=1.0, significance=0.05) == 0.0


@pytest.mark.parametrize("included", [0, 30])
def test_none_or_all_included_is_refused(included: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 29 of 30 canaries must be included"):
        fixed_number.p_value(PureDP(1.0), 30, included, 5, 5)


def test_five_of_thirteen_canaries_without_any_information() -> None:
    """The bound for coins is too small for some numbers of guesses, and the theorem of runs is exact."""
    m, k, wrong = 13, 5, []
    for r in range(2, m + 1):
        low, high = r // 2, r - r // 2
        for v in range(r + 1):
            exact = 0.0
            for a in range(high + 1):  # included among the highest; the lowest are guessed to be left out
                exact += hypergeom(m, k, high).pmf(a) * hypergeom(m - high, k - a, low).cdf(low - v + a)
            wrong.append(exact / confident.p_value(PureDP(0.0), m, r, v))
        for v in range(max(0, r - 8), min(r, k) + 1):
            exact = float(hypergeom(m, k, r).sf(v - 1))
            assert exact * (1 - 1e-9) <= runs.p_value(PureDP(0.0), m - k, k, r, v) <= 1.04 * exact
    assert max(wrong) > 1.15


@pytest.mark.parametrize("kind", ["exact", "rounded", "scaled", "half", "cubed"])
def test_independent_canaries_with_different_laws_keep_the_level(kind: str) -> None:
    """Simulates 3,000 designs, 15 of 60 canaries included.  Fails by chance < 1 in 10**6 at the level of the count."""
    m, k, mu, rng = 60, 15, 1.0, np.random.default_rng(3)
    r = fixed_number.default_cut(m, k)
    coins = np.argsort(rng.random((3000, m)), axis=1) < k
    scores = Channel(kind).scores(coins, mu, rng)
    right = np.array([runs.count_high(s[~c], s[c], r, rng=rng) for s, c in zip(scores, coins, strict=True)])
    for v in range(math.ceil(r * k / m), k + 1):
        level = runs.p_value(GaussianDP(mu), m - k, k, r, v)
        assert np.count_nonzero(right >= v) <= binom.ppf(1 - 1e-7, 3000, min(level, 1.0))
        if kind == "exact" and level > 0.01:  # the theorem is attained, up to 3 % of rounding
            assert np.count_nonzero(right >= v) >= binom.ppf(1e-7, 3000, level / 1.04)


@pytest.mark.parametrize(("m", "k", "cut"), [(1000, 500, 500), (1000, 20, 100), (1000, 980, 900), (7, 3, 3)])
def test_the_default_cut_is_the_same_from_both_sides(m: int, k: int, cut: int) -> None:
    assert fixed_number.default_cut(m, k) == cut
    assert fixed_number.default_cut(m, m - k) in (m - cut, cut)
