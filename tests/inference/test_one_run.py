"""Many records in one run: the theorems against plain second versions, worst cases, and calibration at the boundary."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.sparse import coo_array
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TabulatedTradeoff, TradeoffFunction
from dpaudit.inference.guesses import default_guesses, guess, right_guesses
from dpaudit.inference.one_run import _shape, epsilon_lower_exact, mu_lower_one_run, p_value, p_value_exact, refutes
from dpaudit.numerics.arrays import Array

from .published_bound import epsilon_lower_one_run, p_value_approximate, refutes_by_recursion

# --- plain second versions -------------------------------------------------------------------------------------------


def plain_exact(epsilon: float, delta: float, m: int, r: int, v: int) -> float:
    """The theorem of `p_value_exact` by direct summation."""
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    mass = [math.comb(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
    above = sum(mass[v:])
    return min(1.0, above + m * delta * above * sum(mass[:v]) / (v * mass[v]))


def plain_approximate(epsilon: float, delta: float, m: int, r: int, v: int) -> float:
    """Steinke, Nasr & Jagielski 2023, Thm 5.2, by direct summation."""
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    mass = [math.comb(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
    steepest = max(sum(mass[v - i : v]) / i for i in range(1, v + 1))
    return min(1.0, sum(mass[v:]) + 2 * m * delta * steepest)


def plain_recursion(inverse: Callable[[float], float], m: int, r: int, v: int, significance: float) -> bool:
    """Mahloujifar, Melis & Chaudhuri 2024, in their R and H: refuted iff R + H > r/m."""
    right, wrong = significance * v / m, significance * (r - v) / m
    for i in range(v - 1, -1, -1):
        more = max(wrong, inverse(right))
        right, wrong = min(1.0, right + i / (r - i) * (more - wrong)), more
    return right + wrong > r / m


def inverse_of(claim: TradeoffFunction) -> Callable[[float], float]:
    """The inverse of a -> 1 - f(a): by its closed form, or f(1 - x), since f is its own inverse if it is symmetric."""
    if isinstance(claim, GaussianDP):
        mu = claim.mu()
        return lambda x: float(ndtr(ndtri(x) - mu))
    assert claim.symmetric
    return lambda x: claim.beta(1 - x) if x < 1 else 1.0


def bisected_inverse(claim: TradeoffFunction, x: Array) -> Array:
    """The inverse of a -> 1 - f(a), from below by bisection of beta."""
    low, high = np.zeros(len(x)), np.ones(len(x))
    for _ in range(40):
        middle = (low + high) / 2
        below = 1 - claim.beta(middle) <= x
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def least_refuted(refuted: Callable[[float], bool]) -> float:
    """The significance at which a monotone test begins to refute, by bisection; 1 if nowhere."""
    low, high = -30.0, 0.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(math.exp(middle)) else (middle, high)
    return math.exp(high)


def largest_chance(m: int, r: int, v: int, epsilons: Array, deltas: Array) -> float:
    """The largest P[v or more right] of any mechanism that is (epsilon, delta)-DP for all of the given pairs.

    A linear program.  Averaging a mechanism over permutations of the canaries and over flips of a coin together with
    the answer to it keeps its privacy and the number of right guesses, so that only the law of that number remains.
    """
    counts, k = r + 1, np.arange(1, r + 1)
    size = counts + 2 * r * len(epsilons)  # p_0, ..., p_r, and the positive parts of A - e^s B and of B - e^s A
    rows, columns, values, limits = [], [], [], []
    row = 0
    for j, (slope, gap) in enumerate(zip(np.exp(epsilons), deltas, strict=True)):
        start = counts + 2 * r * j
        for weight_right, weight_wrong, first in ((1.0, -slope, start), (-slope, 1.0, start + r)):
            rows += [row + k - 1] * 3
            columns += [k, k - 1, first + k - 1]
            values += [weight_right * k / m, weight_wrong * (r - k + 1) / m, -np.ones(r)]
            limits.append(np.zeros(r))
            row += r
        rows.append(np.full(2 * r, row))
        columns.append(np.arange(start, start + 2 * r))
        values.append(np.ones(2 * r))
        limits.append(np.array([gap]))
        row += 1
    matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(row, size))
    total = coo_array((np.ones(counts), (np.zeros(counts, int), np.arange(counts))), shape=(1, size))
    gain = np.zeros(size)
    gain[v:counts] = -1
    found = linprog(gain, matrix.tocsr(), np.concatenate(limits), total.tocsr(), [1.0], bounds=(0, None))
    assert found.success
    return -float(found.fun)


def largest_chance_of_all(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """The same with every output of every dataset as an unknown of its own, to check the symmetry argument."""
    inputs = list(itertools.product((-1, 1), repeat=m))
    outputs = [t for t in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, t)) == r]
    chance = {(u, t): i for i, (u, t) in enumerate(itertools.product(inputs, outputs))}
    gain = np.zeros(len(chance))
    upper, limits = [], []
    for (u, t), i in chance.items():
        gain[i] = -(sum(a == b for a, b in zip(u, t, strict=True)) >= v) / len(inputs)
    neighbours = [(u, (*u[:i], -u[i], *u[i + 1 :])) for u in inputs for i in range(m)]
    size = len(chance) + len(neighbours) * len(outputs)
    for pair, (u, other) in enumerate(neighbours):
        whole = np.zeros(size)
        for j, t in enumerate(outputs):
            excess = len(chance) + pair * len(outputs) + j
            line = np.zeros(size)
            line[chance[u, t]], line[chance[other, t]], line[excess] = 1, -math.exp(epsilon), -1
            upper.append(line)
            limits.append(0.0)
            whole[excess] = 1
        upper.append(whole)
        limits.append(delta)
    equal = np.zeros((len(inputs), size))
    for (u, _), i in chance.items():
        equal[inputs.index(u), i] = 1
    gain = np.concatenate([gain, np.zeros(size - len(chance))])
    found = linprog(gain, np.array(upper), limits, equal, np.ones(len(inputs)), bounds=(0, None))
    assert found.success
    return -float(found.fun)


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

# --- (epsilon, delta) ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_both_bounds_equal_their_formulas(counts: tuple[int, int, int]) -> None:
    for epsilon, delta in itertools.product((0.0, 0.3, 1.0, 4.0), (0.0, 1e-6, 1e-3, 0.1)):
        assert float(p_value_exact(epsilon, delta, *counts)) == pytest.approx(
            plain_exact(epsilon, delta, *counts), rel=1e-7
        )
        assert p_value_approximate(epsilon, delta, *counts) == pytest.approx(
            plain_approximate(epsilon, delta, *counts), rel=1e-9
        )


def test_published_values() -> None:
    # jax_privacy.auditing._one_run_p_value; a binomial tail
    assert p_value_approximate(1.0, 0.0, 100, 10, 9) == pytest.approx(0.20401201235612004, abs=1e-9)
    assert float(p_value_exact(1.0, 0.0, 100, 10, 9)) == pytest.approx(0.20401201235612004, abs=1e-9)
    # Steinke, Nasr & Jagielski 2023, the example that their program in appendix D prints
    assert epsilon_lower_one_run(1000, 600, 600, delta=1e-5, significance=0.05) == pytest.approx(5.2704, abs=1e-5)
    assert 5.2971 < epsilon_lower_exact(1000, 600, 600, delta=1e-5, significance=0.05) < 5.2972


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_the_exact_bound_is_the_largest_chance_of_any_mechanism(counts: tuple[int, int, int]) -> None:
    for epsilon, delta in itertools.product((0.0, 0.3, 1.0, 3.0), (0.0, 1e-4, 1e-2, 0.1)):
        largest = largest_chance(*counts, np.array([epsilon]), np.array([delta]))
        assert float(p_value_exact(epsilon, delta, *counts)) == pytest.approx(largest, abs=2e-7)


@pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2)])
def test_mechanisms_without_any_symmetry_reach_no_more(m: int, r: int, v: int) -> None:
    for epsilon, delta in ((0.0, 0.05), (1.0, 0.0), (1.0, 0.02), (2.0, 0.1)):
        assert float(p_value_exact(epsilon, delta, m, r, v)) == pytest.approx(
            largest_chance_of_all(m, r, v, epsilon, delta), abs=1e-7
        )


def test_the_mechanism_that_attains_the_bound_is_private() -> None:
    """The mechanism of the proof, written down output by output for all coins of 4 canaries."""
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


def test_the_published_bound_is_larger_wherever_a_claim_could_be_refuted() -> None:
    rng = np.random.default_rng(5)
    for _ in range(3000):
        r = int(rng.integers(1, 150))
        m, v = int(r * rng.choice([1, 2, 20])), int(rng.integers(1, r + 1))
        epsilon, delta = float(rng.choice([0.0, 0.1, 1.0, 4.0])), 10 ** rng.uniform(-7, -0.5) / m
        published = p_value_approximate(epsilon, delta, m, r, v)
        if published < 0.8:
            assert float(p_value_exact(epsilon, delta, m, r, v)) <= published * (1 + 1e-7)


def test_the_published_bound_fails_where_few_guesses_are_right() -> None:
    delta = 0.05  # m = r = 3, v = 1, epsilon = 0
    assert p_value_approximate(0.0, delta, 3, 3, 1) == pytest.approx(7 / 8 + 3 / 4 * delta)
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


def test_tails_too_small_for_a_number_do_not_refute() -> None:
    """P[W >= 8000] underflows, but with delta = 1/2 so many right guesses are likely."""
    assert float(p_value_exact(0.0, 0.5, 10_000, 10_000, 8000)) > 0.6
    assert float(p_value_exact(0.0, 0.0, 10_000, 10_000, 8000)) < 1e-200
    assert not refutes(GaussianDP(8.0), 10_000, 10_000, 9000, significance=0.05)
    assert mu_lower_one_run(10_000, 3000, 2400, significance=0.05) < 1


@pytest.mark.parametrize("lower", [epsilon_lower_one_run, epsilon_lower_exact])
def test_epsilon_lower_is_where_refutation_ends(lower: Callable[..., float]) -> None:
    p_of = {
        epsilon_lower_one_run: p_value_approximate,
        epsilon_lower_exact: lambda *args: float(p_value_exact(*args)),
    }[lower]
    for (m, r, v), delta, significance in itertools.product(COUNTS, (0.0, 1e-4), (0.01, 0.3)):
        bound = lower(m, r, v, delta=delta, significance=significance)
        assert p_of(bound + 2e-6 * max(1.0, bound), delta, m, r, v) > significance
        if bound > 0:
            assert p_of(bound, delta, m, r, v) <= significance


# --- f-DP ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_lines_lie_below_the_inverse_and_near_it(claim: TradeoffFunction) -> None:
    """The direction in which the inverse may err: a smaller g spares the claim."""
    shape, symmetric = _shape(claim.symmetrized()), claim.symmetrized()
    points = np.concatenate([np.geomspace(1e-9, 0.5, 200), 1 - np.geomspace(0.5, 1e-3, 50), [1.0]])
    for x, inverse in zip(points.tolist(), bisected_inverse(symmetric, points).tolist(), strict=True):
        found = shape.inverse(x)
        assert found == 0 or 1 - symmetric.beta(found) <= x * (1 + 1e-12) + 1e-15
        assert found >= inverse * (1 - 1e-3) - 1e-9 * x or x == 1  # where f is 0 the inverse is an interval


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_plain_inverses_are_those_by_bisection(claim: TradeoffFunction) -> None:
    x = np.append(np.linspace(0.0, 0.99, 34), 1.0)
    plain = [inverse_of(claim.symmetrized())(value) for value in x.tolist()]
    assert plain == pytest.approx(bisected_inverse(claim.symmetrized(), x), abs=1e-9)


def test_a_coarser_or_sunken_inverse_only_spares_the_claim() -> None:
    """Monotone in g: fewer lines, or lines that are lower, refute no more."""
    claim = GaussianDP(1.0)
    fine = _shape(claim)
    few = type(fine).of(fine.epsilon[::40], fine.delta[::40])
    low = type(fine).of(fine.epsilon, np.minimum(fine.delta * 1.05, 1.0))
    for m, r, v in COUNTS:
        least = least_refuted(lambda s, c=(m, r, v): fine.refutes(*c, s))
        for other in (few, low):
            assert least_refuted(lambda s, c=(m, r, v), o=other: o.refutes(*c, s)) >= least * (1 - 1e-9)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_recursion_equals_the_published_one(claim: TradeoffFunction) -> None:
    inverse = inverse_of(claim.symmetrized())
    for m, r, v in [(5, 5, 4), (10, 10, 10), (30, 12, 10)]:
        ours = least_refuted(lambda s, c=(m, r, v): refutes_by_recursion(claim, *c, significance=min(s, 1 - 1e-12)))
        plain = least_refuted(lambda s, c=(m, r, v): plain_recursion(inverse, *c, s))
        assert plain * (1 - 1e-7) <= ours <= plain * (1 + 3e-3)  # errs upwards only
        assert p_value(claim, m, r, v) <= min(ours, 1.0) * (1 + 1e-5)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_recursion_is_monotone_in_significance(claim: TradeoffFunction) -> None:
    for m, r, v in COUNTS:
        answers = [refutes_by_recursion(claim, m, r, v, significance=s) for s in np.geomspace(1e-9, 0.999, 60)]
        assert answers == sorted(answers)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_p_values_of_curves_are_at_least_the_largest_chance(claim: TradeoffFunction) -> None:
    """And not far above it.  The program knows the claim at 60 slopes only, so its value is a little too large."""
    symmetric = claim.symmetrized()
    largest = float(symmetric.epsilon(max(1e-9, float(symmetric.delta(math.inf)))))
    slopes = np.unique(np.append(np.linspace(0, largest, 60), np.log([1.5, 4.0])))
    for m, r, v in [(1, 1, 1), (10, 10, 10), (20, 20, 17), (30, 12, 10), (100, 10, 9)]:
        chance = largest_chance(m, r, v, slopes, np.asarray(symmetric.delta(slopes)))
        found = p_value(claim, m, r, v)
        assert found >= chance * (1 - 3e-3) - 1e-7
        assert found <= chance * 1.35 + 1e-7


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_refutes_is_the_p_value_against_the_significance(claim: TradeoffFunction) -> None:
    for m, r, v in COUNTS:
        p = p_value(claim, m, r, v)
        assert 0 < p <= 1
        if p < 0.9:
            assert refutes(claim, m, r, v, significance=p * (1 + 1e-5))
        assert not refutes(claim, m, r, v, significance=p * (1 - 1e-5))


def test_p_values_of_pure_and_approximate_claims_are_the_exact_ones() -> None:
    for m, r, v in COUNTS:
        for epsilon, delta in itertools.product((0.0, 1.0, 3.0), (0.0, 1e-3)):
            claim = ApproxDP(epsilon=epsilon, delta=delta)
            assert p_value(claim, m, r, v) == pytest.approx(float(p_value_exact(epsilon, delta, m, r, v)), rel=2e-6)


def test_mu_lower_is_where_refutation_ends() -> None:
    for m, r, v in COUNTS:
        bound = mu_lower_one_run(m, r, v, significance=0.05)
        assert not refutes(GaussianDP(bound + 2e-4 * max(1.0, bound)), m, r, v, significance=0.05)
        if bound > 0:
            assert refutes(GaussianDP(bound), m, r, v, significance=0.05)
    assert mu_lower_one_run(1000, 100, 100, significance=0.05) > 1


def test_evidence_falls_along_nested_claims() -> None:
    for m, r, v in COUNTS:
        p = [p_value(GaussianDP(mu), m, r, v) for mu in np.linspace(0, 3, 13)]
        assert np.all(np.diff(p) >= -1e-4 * np.array(p[1:]))


# --- extremes and bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_no_right_guess_and_no_guess_refute_nothing(claim: TradeoffFunction) -> None:
    for m, r in ((0, 0), (1, 0), (1, 1), (100, 0), (100, 60)):
        assert p_value(claim, m, r, 0) == 1
        assert not refutes(claim, m, r, 0, significance=0.999)
        assert p_value_approximate(0.0, 0.1, m, r, 0) == 1
        assert float(p_value_exact(0.0, 0.1, m, r, 0)) == 1
        assert mu_lower_one_run(m, r, 0, significance=0.05) == 0
        assert epsilon_lower_one_run(m, r, 0, delta=0.1, significance=0.05) == 0
        assert epsilon_lower_exact(m, r, 0, delta=0.0, significance=0.05) == 0


def test_perfect_privacy_is_guessing_by_coin() -> None:
    for claim in (PureDP(0.0), GaussianDP(0.0)):
        for r, v in ((1, 1), (10, 8), (50, 50)):
            assert p_value(claim, 100, r, v) == pytest.approx(float(binom.sf(v - 1, r, 0.5)), rel=1e-6)
        assert refutes(claim, 100, 5, 5, significance=0.05)
        assert not refutes(claim, 100, 4, 4, significance=0.05)


def test_one_canary_is_one_bit() -> None:
    """m = r = v = 1: the largest chance of a right guess is (1 + delta(0)) / 2, half the total variation above 1/2."""
    for claim in CLAIMS:
        expected = (1 + float(claim.symmetrized().delta(0.0))) / 2
        assert p_value(claim, 1, 1, 1) == pytest.approx(expected, rel=1e-3)
    assert epsilon_lower_exact(1, 1, 1, delta=0.0, significance=0.6) == pytest.approx(math.log(0.6 / 0.4), abs=1e-5)


def test_a_perfect_attack_certifies_as_much_as_so_many_coins_can() -> None:
    for r in (10, 100, 1000, 100_000):
        exact = math.log(0.05 ** (1 / r) / -math.expm1(math.log(0.05) / r))  # q^r = 0.05
        assert epsilon_lower_exact(r, r, r, delta=0.0, significance=0.05) == pytest.approx(exact, abs=1e-4)


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="got 4 right, 3 guesses, 5 canaries"):
        p_value(PureDP(1.0), 5, 3, 4)
    with pytest.raises(ValueError, match="counts must be"):
        refutes(PureDP(1.0), 5, 6, 4, significance=0.05)
    with pytest.raises(ValueError, match="significance must lie"):
        mu_lower_one_run(5, 4, 4, significance=0.0)
    with pytest.raises(ValueError, match="significance must lie"):
        epsilon_lower_exact(5, 4, 4, delta=0.0, significance=1.0)
    with pytest.raises(ValueError, match="delta in"):
        p_value_exact(1.0, 1.5, 5, 4, 4)
    with pytest.raises(ValueError, match="delta in"):
        p_value_approximate(-1.0, 0.1, 5, 4, 4)
    with pytest.raises(TypeError):
        p_value(PureDP(1.0), 5, 4, 3.5)  # type: ignore[arg-type]


# --- guesses ---------------------------------------------------------------------------------------------------------


def test_the_extreme_scores_are_guessed() -> None:
    scores = np.array([3.0, -1.0, 0.0, 7.0, np.inf, -np.inf, 2.0])
    assert guess(scores, 4).tolist() == [0, -1, 0, 1, 1, -1, 0]
    assert guess(scores, 3).tolist() == [0, 0, 0, 1, 1, -1, 0]
    assert guess(scores, 7).tolist() == [1, -1, -1, 1, 1, -1, 1]
    assert guess(scores, 0).tolist() == [0] * 7
    assert guess([5.0], 1).tolist() == [1]
    assert guess([]).tolist() == []


def test_right_guesses_are_counted() -> None:
    answers = np.array([1, 1, -1, -1, 0], dtype=np.int8)
    assert right_guesses(answers, [True, False, False, True, True]) == (4, 2)
    assert right_guesses(answers, np.array([1, 1, 0, 0, 0])) == (4, 4)
    with pytest.raises(ValueError, match="shape"):
        right_guesses(answers, [True])
    with pytest.raises(ValueError, match="booleans"):
        right_guesses(answers, [0.5, 1, 1, 0, 0])


def test_equal_scores_neither_follow_the_list_nor_chance() -> None:
    """A list with the included canaries first must not make a constant score look like an attack."""
    m = 2000
    first_included = np.arange(m) < m // 2
    answers = guess(np.zeros(m), 1000)
    assert np.array_equal(answers, guess(np.zeros(m), 1000))
    _, right = right_guesses(answers, first_included)
    assert 400 < right < 600  # a fixed number, and not by chance: 508 or so
    assert not refutes(PureDP(0.0), m, 1000, right, significance=0.05)


def test_nan_and_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="nan for canary 1"):
        guess([0.0, math.nan], 1)
    with pytest.raises(ValueError, match="shape"):
        guess(np.zeros((2, 2)), 1)
    with pytest.raises(ValueError, match="3 guesses, 2 canaries"):
        guess([0.0, 1.0], 3)


def test_the_default_number_of_guesses() -> None:
    assert [default_guesses(m) for m in (0, 1, 2, 10, 100, 1000, 10_000)] == [0, 1, 2, 9, 48, 267, 1500]
    assert np.count_nonzero(guess(np.arange(100.0))) == 48


def test_the_number_of_guesses_may_not_follow_the_output_if_delta_is_positive() -> None:
    """A mechanism that chooses r itself, rarely the one that delta helps most: 5 % would become 9 %."""
    m, epsilon, delta, significance, share = 2000, 0.0, 2.4e-4, 0.05, 0.06
    critical = next(v for v in range(1, 1001) if p_value_exact(epsilon, delta, m, 1000, v) <= significance)
    assert p_value_exact(epsilon, delta, m, 10, 10) <= significance
    usual = float(p_value_exact(epsilon, 0.0, m, 1000, critical))  # r = 1000, perfectly private
    rare = float(p_value_exact(epsilon, delta / share, m, 10, 10))  # r = 10, all of delta spent here
    assert (1 - share) * usual + share * rare > 0.085


# --- calibration at the boundary -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
def test_independent_randomised_responses_are_rarely_refuted(epsilon: float) -> None:
    """Exactly at the boundary, where the chance of refutation is a sum of binomial terms; no sampling."""
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    for m, r in ((1, 1), (30, 30), (200, 60)):
        law = binom.pmf(np.arange(r + 1), r, q)
        for significance in (0.01, 0.05, 0.3):
            refuted = [refutes(PureDP(epsilon), m, r, v, significance=significance) for v in range(r + 1)]
            assert law @ refuted <= significance
            if r == 60 and epsilon < 3:
                assert law @ refuted >= significance / 5  # so that the test could fail
            lower = [epsilon_lower_one_run(m, r, v, delta=0.0, significance=significance) for v in range(r + 1)]
            assert law @ (np.array(lower) > epsilon) <= significance


def test_false_refutations_of_pure_claims_by_scores() -> None:  # fails by chance < 1 in 10**6
    """Randomised responses with their ties, through `guess`, with the included canaries in no order."""
    rng, runs, m = np.random.default_rng(17), 400, 300
    q = math.exp(1.0) / (1 + math.exp(1.0))
    false = below = 0
    for _ in range(runs):
        included = rng.random(m) < 0.5
        answers = guess(np.where(rng.random(m) < q, included, ~included).astype(float))
        r, v = right_guesses(answers, included)
        false += refutes(PureDP(1.0), m, r, v, significance=0.05)
        below += refutes(PureDP(0.5), m, r, v, significance=0.05)
    assert false <= binom.ppf(1 - 1e-6, runs, 0.05)
    assert below > runs / 2


@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
def test_false_refutations_of_gaussian_claims(mu: float) -> None:  # fails by chance < 1 in 10**6
    rng, runs, m = np.random.default_rng(23), 400, 200
    false, covered = 0, 0
    refuted = cache(partial(refutes, significance=0.05))
    for _ in range(runs):
        included = rng.random(m) < 0.5
        r, v = right_guesses(guess(rng.normal(mu * included, 1.0)), included)
        false += refuted(GaussianDP(mu), m, r, v)
        covered += refuted(GaussianDP(mu / 3), m, r, v)
    assert false <= binom.ppf(1 - 1e-6, runs, 0.05)
    assert covered > runs / 10  # so that the test could fail


def test_correlated_gaussian_answers_are_rarely_refuted() -> None:  # fails by chance < 1 in 10**6
    """All canaries share the noise: x = sum of the included, and whether the sum is high answers for all of them."""
    rng, runs, m = np.random.default_rng(29), 2000, 20
    included = rng.random((runs, m)) < 0.5
    release = included.sum(axis=1) + rng.normal(size=runs)  # mu = 1 for each canary
    right = np.where(release > m / 2, included.sum(axis=1), m - included.sum(axis=1))
    refuted = [refutes(GaussianDP(1.0), m, m, v, significance=0.05) for v in range(m + 1)]
    false = sum(refuted[v] for v in right)
    assert false <= binom.ppf(1 - 1e-6, runs, 0.05)


def test_the_least_favourable_mechanism_is_refuted_as_often_as_allowed_and_no_more() -> None:
    """The law that attains the bound for the critical v: (epsilon, delta)-DP, so the p-value may not be beaten."""
    m, r, epsilon, delta, significance = 400, 100, 1.0, 1e-4, 0.05
    p = np.array([float(p_value_exact(epsilon, delta, m, r, v)) for v in range(r + 1)])
    critical = int(np.argmax(p <= significance))
    mass = binom.pmf(np.arange(r + 1), r, math.exp(epsilon) / (1 + math.exp(epsilon)))
    x, above = m * delta / (critical * mass[critical]), mass[critical:].sum()
    law = mass * np.where(np.arange(r + 1) >= critical, 1 + (1 - above) * x, 1 - above * x)
    refuted = law[p <= significance].sum()
    assert refuted == pytest.approx(p[critical], rel=1e-6)
    assert refuted <= significance


# --- jax_privacy's reference points ----------------------------------------------------------------------------------
# Source: jax_privacy, auditing_test.test_epsilon_one_run_close: 10,000 included and 10,000 left-out canaries, whose
# scores are the quantiles (i + 1/2) / 10,000 of N(shift, 1) and of N(0, 1); significance 0.05, delta 1e-6, guesses
# "included" above a threshold, Bonferroni over the corners of the observed curve.


def quantile_scores(shift: float) -> tuple[Array, Array]:
    quantiles = ndtri((np.arange(10_000) + 0.5) / 10_000)
    return shift + quantiles, quantiles


def corners(included: Array, left_out: Array) -> tuple[Array, Array]:
    """(guesses, right guesses) at the thresholds where the curve of counts, from none to all, has a corner."""
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


@pytest.mark.parametrize(("shift", "expected"), [(1.0, 1.13346), (4.0, 4.395568)])
def test_the_published_bound_gives_the_reference_points(shift: float, expected: float) -> None:
    guesses, right = corners(*quantile_scores(shift))
    level = 0.05 / len(guesses)
    tail = binom.sf(right - 1, guesses, 1 / (1 + math.exp(-expected)))
    best = [
        (p_value_approximate(expected * (1 - 1e-5), 1e-6, 20_000, int(r), int(v)), int(r), int(v))
        for r, v in zip(guesses[tail < level], right[tail < level], strict=True)
    ]
    p, r, v = min(best)
    assert p <= level
    assert epsilon_lower_one_run(20_000, r, v, delta=1e-6, significance=level) == pytest.approx(expected, rel=1e-5)


def test_no_difference_gives_nothing() -> None:
    """Reference point with shift 0: epsilon_one_run = 0."""
    guesses, right = corners(*quantile_scores(0.0))
    for r, v in zip(guesses, right, strict=True):
        assert epsilon_lower_one_run(20_000, int(r), int(v), delta=1e-6, significance=0.05 / len(guesses)) == 0


@pytest.mark.parametrize(("shift", "expected"), [(1.0, 2.164749), (4.0, 9.133752)])
def test_the_recursion_gives_the_reference_points(shift: float, expected: float) -> None:
    """epsilon_one_run_fdp: the largest Gaussian claim that the recursion refutes at some corner, read at delta."""
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


@pytest.mark.parametrize(("shift", "one_run", "fdp"), [(1.0, 1.13346, 2.164749), (4.0, 4.395568, 9.133752)])
def test_guessing_both_ends_certifies_more_than_the_reference(shift: float, one_run: float, fdp: float) -> None:
    """The same canaries, guessed at both ends, with one number of guesses fixed beforehand."""
    included, left_out = quantile_scores(shift)
    answers = guess(np.concatenate([included, left_out]))
    r, v = right_guesses(answers, np.arange(20_000) < 10_000)
    assert r == default_guesses(20_000)
    assert epsilon_lower_exact(20_000, r, v, delta=1e-6, significance=0.05) > 1.5 * one_run
    mu = mu_lower_one_run(20_000, r, v, significance=0.05)
    assert mu < shift
    assert GaussianDP(mu).epsilon(1e-6) > 1.25 * fdp
