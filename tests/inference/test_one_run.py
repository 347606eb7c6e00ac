"""Bounds for one run with many canaries, compared with reference implementations."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TabulatedTradeoff, TradeoffFunction
from dpaudit.inference.one_run import p_value, p_value_exact, shape_of
from dpaudit.inference.scores.rank_bounds import Path, RankTest
from dpaudit.inference.scores.rank_laws import Inclusion
from dpaudit.inference.scores.ranks import Blocks
from dpaudit.numerics import Array

from .plain import (
    bisected_inverse,
    inverse_of,
    largest_chance,
    largest_chance_of_all,
    least_refuted,
    plain_exact,
    plain_recursion,
    refutes_by_recursion,
)

COUNTS = [(1, 1, 1), (5, 5, 4), (10, 10, 10), (20, 5, 5), (20, 20, 17), (30, 12, 10), (100, 10, 9), (60, 40, 35)]
CLAIMS: list[TradeoffFunction] = [
    PureDP(0.0),
    PureDP(1.0),
    PureDP(8.0),
    ApproxDP(epsilon=1.0, delta=1e-3),
    ApproxDP(epsilon=0.0, delta=0.1),
    GaussianDP(0.0),
    GaussianDP(0.3),
    GaussianDP(1.0),
    GaussianDP(4.0),
    LaplaceDP(1.0),
    TabulatedTradeoff(alpha=(0.0, 0.1, 1.0), beta=(1.0, 0.6, 0.0)),
]


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_the_exact_bound_equals_its_formula(counts: tuple[int, int, int]) -> None:
    for epsilon, delta in itertools.product((0.0, 0.3, 1.0, 4.0), (0.0, 1e-6, 1e-3, 0.1)):
        assert float(p_value_exact(epsilon, delta, *counts)) == pytest.approx(
            plain_exact(epsilon, delta, *counts), rel=1e-7
        )


def test_published_values() -> None:
    # jax_privacy.auditing._one_run_p_value; a binomial tail
    assert float(p_value_exact(1.0, 0.0, 100, 10, 9)) == pytest.approx(0.20401201235612004, abs=1e-9)
    # the program of Steinke, Nasr & Jagielski 2023, appendix D, prints the smaller bound 5.2704
    at_the_bound = p_value_exact([5.2971, 5.2972], 1e-5, 1000, 600, 600)
    assert at_the_bound[0] <= 0.05 < at_the_bound[1]


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_the_exact_bound_is_the_maximum_probability_over_mechanisms(counts: tuple[int, int, int]) -> None:
    for epsilon, delta in itertools.product((0.0, 0.3, 1.0, 3.0), (0.0, 1e-4, 1e-2, 0.1)):
        largest = largest_chance(*counts, np.array([epsilon]), np.array([delta]))
        assert float(p_value_exact(epsilon, delta, *counts)) == pytest.approx(largest, abs=2e-7)


@pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2)])
def test_asymmetric_mechanisms_do_not_exceed_the_maximum(m: int, r: int, v: int) -> None:
    for epsilon, delta in ((0.0, 0.05), (1.0, 0.0), (1.0, 0.02), (2.0, 0.1)):
        assert float(p_value_exact(epsilon, delta, m, r, v)) == pytest.approx(
            largest_chance_of_all(m, r, v, epsilon, delta), abs=1e-7
        )


def test_the_mechanism_that_attains_the_bound_is_private() -> None:
    """Enumerates all outputs of the mechanism in the proof for all coins of 4 canaries."""
    m, r, v, epsilon, delta = 4, 3, 2, 0.7, 0.03
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    mass = binom.pmf(np.arange(r + 1), r, q)
    above, x = mass[v:].sum(), m * delta / (v * mass[v])
    law = mass * np.where(np.arange(r + 1) >= v, 1 + (1 - above) * x, 1 - above * x)
    outputs = [t for t in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, t)) == r]

    def chances(coins: tuple[int, ...]) -> Array:
        right = [sum(a == b for a, b in zip(coins, t, strict=True)) for t in outputs]
        return np.array([law[k] / (math.comb(m, r) * math.comb(r, k)) for k in right])

    for coins in itertools.product((-1, 1), repeat=m):
        assert chances(coins).sum() == pytest.approx(1.0)
        for i in range(m):
            flipped = (*coins[:i], -coins[i], *coins[i + 1 :])
            excess = np.maximum(chances(coins) - math.exp(epsilon) * chances(flipped), 0).sum()
            assert excess <= delta * (1 + 1e-12)
    assert law[v:].sum() == pytest.approx(float(p_value_exact(epsilon, delta, m, r, v)))


def test_few_right_guesses_are_bounded_where_the_published_formula_fails() -> None:
    """For m = r = 3, v = 1 and epsilon = 0, Thm 5.2 of Steinke, Nasr & Jagielski 2023 states 7/8 + 3/4 delta only."""
    delta = 0.05
    assert largest_chance_of_all(3, 3, 1, 0.0, delta) == pytest.approx(7 / 8 + 7 / 8 * delta)
    assert float(p_value_exact(0.0, delta, 3, 3, 1)) == pytest.approx(7 / 8 + 7 / 8 * delta)


def test_p_values_rise_with_epsilon_and_delta_and_fall_with_right_guesses() -> None:
    epsilons, deltas = np.linspace(0, 30, 400), np.geomspace(1e-12, 1, 60)
    for m, r, v in [*COUNTS, (5000, 2000, 1990), (10_000, 3000, 1700)]:
        table = p_value_exact(epsilons[:, None], deltas[None, :], m, r, v)
        assert np.all(np.diff(table, axis=0) >= -1e-7 * table[1:])
        assert np.all(np.diff(table, axis=1) >= -1e-7 * table[:, 1:])
    by_count = [float(p_value_exact(0.5, 1e-4, 100, 40, v)) for v in range(41)]
    assert np.all(np.diff(by_count) <= 1e-9)


def test_underflowing_tails_do_not_refute() -> None:
    """P[W >= 8000] underflows, but with delta = 1/2 this many right guesses are likely."""
    assert float(p_value_exact(0.0, 0.5, 10_000, 10_000, 8000)) > 0.6
    assert float(p_value_exact(0.0, 0.0, 10_000, 10_000, 8000)) < 1e-200
    assert p_value(GaussianDP(8.0), 10_000, 10_000, 9000) > 0.05
    assert p_value(GaussianDP(1.0), 10_000, 3000, 2400) > 0.05


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_lines_are_close_below_the_inverse(claim: TradeoffFunction) -> None:
    """The inverse may only be too small, since a smaller g spares the claim."""
    shape, symmetric = shape_of(claim.symmetrized()), claim.symmetrized()
    points = np.concatenate([np.geomspace(1e-9, 0.5, 200), 1 - np.geomspace(0.5, 1e-3, 50), [1.0]])
    for x, inverse in zip(points.tolist(), bisected_inverse(symmetric, points).tolist(), strict=True):
        found = shape.inverse(x)
        assert found == 0 or 1 - symmetric.beta(found) <= x * (1 + 1e-12) + 1e-15
        assert found >= inverse * (1 - 1e-3) - 1e-9 * x or x == 1  # where f is 0 the inverse is an interval


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_closed_form_inverses_agree_with_bisection(claim: TradeoffFunction) -> None:
    x = np.append(np.linspace(0.0, 0.99, 34), 1.0)
    plain = [inverse_of(claim.symmetrized())(value) for value in x.tolist()]
    assert plain == pytest.approx(bisected_inverse(claim.symmetrized(), x), abs=1e-9)


def test_a_coarser_or_lower_inverse_only_spares_the_claim() -> None:
    """The test is monotone in g: fewer or lower lines never refute more."""
    claim = GaussianDP(1.0)
    fine = shape_of(claim)
    few = type(fine).of(fine.epsilon[::40], fine.delta[::40])
    low = type(fine).of(fine.epsilon, np.minimum(fine.delta * 1.05, 1.0))
    for m, r, v in COUNTS:
        least = least_refuted(partial(fine.refutes, m, r, v))
        for other in (few, low):
            assert least_refuted(partial(other.refutes, m, r, v)) >= least * (1 - 1e-9)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_recursion_equals_the_published_one(claim: TradeoffFunction) -> None:
    inverse = inverse_of(claim.symmetrized())
    for m, r, v in [(5, 5, 4), (10, 10, 10), (30, 12, 10)]:

        def refutes(s: float, m: int = m, r: int = r, v: int = v) -> bool:
            return refutes_by_recursion(claim, m, r, v, significance=min(s, 1 - 1e-12))

        ours = least_refuted(refutes)
        plain = least_refuted(partial(plain_recursion, inverse, m, r, v))
        assert plain * (1 - 1e-7) <= ours <= plain * (1 + 3e-3)  # too large, never too small
        assert p_value(claim, m, r, v) <= min(ours, 1.0) * (1 + 1e-5)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_recursion_is_monotone_in_significance(claim: TradeoffFunction) -> None:
    for m, r, v in COUNTS:
        answers = [refutes_by_recursion(claim, m, r, v, significance=s) for s in np.geomspace(1e-9, 0.999, 60)]
        assert answers == sorted(answers)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_p_values_of_curves_are_at_least_the_maximum_probability(claim: TradeoffFunction) -> None:
    """They are not far above it.  The linear program uses 60 slopes only, so its value is slightly too large."""
    symmetric = claim.symmetrized()
    largest = float(symmetric.epsilon(max(1e-9, float(symmetric.delta(math.inf)))))
    slopes = np.unique(np.append(np.linspace(0, largest, 60), np.log([1.5, 4.0])))
    for m, r, v in [(1, 1, 1), (10, 10, 10), (20, 20, 17), (30, 12, 10), (100, 10, 9)]:
        chance = largest_chance(m, r, v, slopes, np.asarray(symmetric.delta(slopes)))
        found = p_value(claim, m, r, v)
        assert found >= chance * (1 - 3e-3) - 1e-7
        assert found <= chance * 1.35 + 1e-7


def test_p_values_of_pure_and_approximate_claims_are_the_exact_ones() -> None:
    for m, r, v in COUNTS:
        for epsilon, delta in itertools.product((0.0, 1.0, 3.0), (0.0, 1e-3)):
            claim = ApproxDP(epsilon=epsilon, delta=delta)
            assert p_value(claim, m, r, v) == pytest.approx(float(p_value_exact(epsilon, delta, m, r, v)), rel=2e-6)


def test_evidence_falls_along_nested_claims() -> None:
    for m, r, v in COUNTS:
        p = [p_value(GaussianDP(mu), m, r, v) for mu in np.linspace(0, 3, 13)]
        assert np.all(np.diff(p) >= -1e-4 * np.array(p[1:]))


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_no_right_guesses_refute_nothing(claim: TradeoffFunction) -> None:
    for m, r in ((0, 0), (1, 0), (1, 1), (100, 0), (100, 60)):
        assert p_value(claim, m, r, 0) == 1
        assert float(p_value_exact(0.0, 0.1, m, r, 0)) == 1


def test_guesses_under_perfect_privacy_are_fair_coins() -> None:
    for claim in (PureDP(0.0), GaussianDP(0.0)):
        for r, v in ((1, 1), (10, 8), (50, 50)):
            assert p_value(claim, 100, r, v) == pytest.approx(float(binom.sf(v - 1, r, 0.5)), rel=1e-6)


def test_one_canary_is_one_guess() -> None:
    """For m = r = v = 1 the maximum is (1 + delta(0)) / 2: 1/2 plus half the total variation."""
    for claim in CLAIMS:
        expected = (1 + float(claim.symmetrized().delta(0.0))) / 2
        assert p_value(claim, 1, 1, 1) == pytest.approx(expected, rel=1e-3)


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="got 4 right, 3 guesses, 5 canaries"):
        p_value(PureDP(1.0), 5, 3, 4)
    with pytest.raises(ValueError, match="counts must be"):
        p_value(PureDP(1.0), 5, 6, 4)
    with pytest.raises(ValueError, match="delta in"):
        p_value_exact(1.0, 1.5, 5, 4, 4)
    with pytest.raises(TypeError):
        p_value(PureDP(1.0), 5, 4, 3.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
def test_independent_randomised_responses_are_rarely_refuted(epsilon: float) -> None:
    """On the boundary the probability of refutation is a sum of binomial terms, which is computed exactly."""
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    for m, r in ((1, 1), (30, 30), (200, 60)):
        law = binom.pmf(np.arange(r + 1), r, q)
        p = np.array([p_value(PureDP(epsilon), m, r, v) for v in range(r + 1)])
        for significance in (0.01, 0.05, 0.3):
            refuted = p <= significance
            assert law @ refuted <= significance
            if r == 60 and epsilon < 3:
                assert law @ refuted >= significance / 5  # so that the test could fail


def test_correlated_gaussian_answers_are_rarely_refuted() -> None:  # fails by chance < 1 in 10**6
    """All canaries share the noise of one sum; a high sum means the guess "included" for every canary."""
    rng, runs, m = np.random.default_rng(29), 2000, 20
    included = rng.random((runs, m)) < 0.5
    release = included.sum(axis=1) + rng.normal(size=runs)  # mu = 1 for each canary
    right = np.where(release > m / 2, included.sum(axis=1), m - included.sum(axis=1))
    refuted = [p_value(GaussianDP(1.0), m, m, v) <= 0.05 for v in range(m + 1)]
    false = sum(refuted[v] for v in right)
    assert false <= binom.ppf(1 - 1e-6, runs, 0.05)


def test_the_least_favourable_mechanism_is_refuted_with_the_stated_probability() -> None:
    """Uses the (epsilon, delta)-DP law that attains the bound for the critical v."""
    m, r, epsilon, delta, significance = 400, 100, 1.0, 1e-4, 0.05
    p = np.array([float(p_value_exact(epsilon, delta, m, r, v)) for v in range(r + 1)])
    critical = int(np.argmax(p <= significance))
    mass = binom.pmf(np.arange(r + 1), r, math.exp(epsilon) / (1 + math.exp(epsilon)))
    x, above = m * delta / (critical * mass[critical]), mass[critical:].sum()
    law = mass * np.where(np.arange(r + 1) >= critical, 1 + (1 - above) * x, 1 - above * x)
    refuted = law[p <= significance].sum()
    assert refuted == pytest.approx(p[critical], rel=1e-6)
    assert refuted <= significance


def test_the_number_of_guesses_must_not_depend_on_the_output_if_delta_is_positive() -> None:
    """A mechanism that rarely chooses the r for which delta has most effect raises the error from 5 % to 9 %."""
    m, epsilon, delta, significance, share = 2000, 0.0, 2.4e-4, 0.05, 0.06
    critical = next(v for v in range(1, 1001) if p_value_exact(epsilon, delta, m, 1000, v) <= significance)
    assert p_value_exact(epsilon, delta, m, 10, 10) <= significance
    usual = float(p_value_exact(epsilon, 0.0, m, 1000, critical))  # r = 1000, perfectly private
    rare = float(p_value_exact(epsilon, delta / share, m, 10, 10))  # r = 10, with all of delta
    assert (1 - share) * usual + share * rare > 0.085


def quantile_scores(shift: float) -> tuple[Array, Array]:
    quantiles = ndtri((np.arange(10_000) + 0.5) / 10_000)
    return shift + quantiles, quantiles


def corners(included: Array, left_out: Array) -> tuple[Array, Array]:
    """Return (guesses, right guesses) at the corners of the concave hull of all thresholds."""
    thresholds = np.append(np.unique(np.concatenate([included, left_out])), np.inf)[::-1]
    right = len(included) - np.searchsorted(np.sort(included), thresholds)
    wrong = len(left_out) - np.searchsorted(np.sort(left_out), thresholds)
    kept: list[tuple[int, int]] = []
    for point in zip(wrong.tolist(), right.tolist(), strict=True):
        while len(kept) > 1 and (kept[-1][0] - kept[-2][0]) * (point[1] - kept[-2][1]) >= (
            kept[-1][1] - kept[-2][1]
        ) * (point[0] - kept[-2][0]):
            kept.pop()
        kept.append(point)
    found = np.array(kept)
    return found.sum(axis=1), found[:, 1]


@pytest.mark.parametrize(("shift", "expected"), [(1.0, 2.164749), (4.0, 9.133752)])
def test_the_recursion_agrees_with_the_reference_values(shift: float, expected: float) -> None:
    """epsilon_one_run_fdp is the epsilon at delta of the largest Gaussian claim that is refuted at some corner."""
    guesses, right = corners(*quantile_scores(shift))
    level = 0.05 / len(guesses)

    def refuted_somewhere(epsilon: float) -> bool:
        mu = brentq(lambda mu: float(GaussianDP(mu).delta(epsilon)) - 1e-6, 0.01, 20.0, xtol=1e-14)
        return any(
            refutes_by_recursion(GaussianDP(mu), 20_000, int(r), int(v), significance=level)
            for r, v in zip(guesses, right, strict=True)
            if v
        )

    assert refuted_somewhere(expected * (1 - 1e-4))
    assert not refuted_somewhere(expected * (1 + 1e-5))


@pytest.mark.parametrize(("shift", "expected"), [(1.0, 1.13346), (4.0, 4.395568)])
def test_the_order_of_scores_certifies_more_than_the_reference(shift: float, expected: float) -> None:
    """Nothing is assumed about the scores."""
    scores = np.concatenate(quantile_scores(shift))
    blocks = Blocks(10_000, 10_000)
    right = tuple(blocks.right(np.argsort(-scores, kind="stable") < 10_000).tolist())
    assert RankTest(Inclusion(blocks), right, Path(1e-6), 0.05).epsilon_lower(1e-6, significance=0.05) > 1.5 * expected
