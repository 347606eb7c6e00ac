"""Tests of whether canaries are exchangeable, against slow plain versions of their statistics and p-values."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom, hypergeom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.scores import exchangeability, runs
from dpaudit.inference.scores.exchangeability import along_the_list, between_runs

from .plain import simulated_runs

Numbers = Sequence[float]
Scores = np.ndarray[tuple[int], np.dtype[np.float64]]


def ranks(scores: Numbers) -> list[float]:
    """Return mean ranks, between -1/2 and 1/2."""
    below = [sum(other < score for other in scores) for score in scores]
    equal = [sum(other == score for other in scores) for score in scores]
    return [(less + (same + 1) / 2) / (len(scores) + 1) - 0.5 for less, same in zip(below, equal, strict=True)]


def standardised(values: Numbers) -> list[float]:
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / deviation if deviation > 1e-9 else 0.0 for value in values]


def deviate(square: float, freedom: int) -> float:
    """Return the normal deviate of Wilson & Hilferty 1931."""
    return float((square / freedom) ** (1 / 3) - 1 + 2 / (9 * freedom)) / math.sqrt(2 / (9 * freedom))


def plain_between(scores0: Numbers, scores1: Numbers) -> Callable[[Sequence[int]], float]:
    """Return the statistic of `between_runs` as a function of the runs of all canaries."""
    place = ranks([*scores0, *scores1])
    signed = [-rank for rank in place[: len(scores0)]] + place[len(scores0) :]
    features = [standardised(values) for values in (place, [abs(rank) for rank in place], signed)]

    def statistic(runs: Sequence[int]) -> float:
        deviates = []
        for values in features:
            square = 0.0
            for label in set(runs):
                own = [value for value, run in zip(values, runs, strict=True) if run == label]
                square += sum(own) ** 2 / len(own)
            deviates.append(deviate(square, len(set(runs)) - 1))
        return max(deviates)

    return statistic


def plain_along(
    scores0: Numbers, scores1: Numbers, numbers_of_blocks: Sequence[int]
) -> Callable[[Sequence[int], Sequence[int]], float]:
    """Return the statistic of `along_the_list` as a function of the orders of both lists."""
    place = ranks([*scores0, *scores1])
    own = place[: len(scores0)], place[len(scores0) :]
    features = [[standardised(side) for side in own], [standardised([abs(rank) for rank in side]) for side in own]]

    def statistic(order0: Sequence[int], order1: Sequence[int]) -> float:
        deviates = []
        for sides in features:
            lists = [[side[i] for i in order] for side, order in zip(sides, (order0, order1), strict=True)]
            products = sum(sum(a * b for a, b in itertools.pairwise(side)) / math.sqrt(len(side)) for side in lists)
            deviates.append(deviate(products**2 / 2, 1))
            for blocks in numbers_of_blocks:
                sums = []
                for side in lists:
                    ends = [len(side) * b // blocks for b in range(blocks + 1)]
                    parts = [side[start:end] for start, end in itertools.pairwise(ends)]
                    sums.append([sum(part) / math.sqrt(len(part)) for part in parts])
                for sign in (1, -1):
                    square = sum((a + sign * b) ** 2 for a, b in zip(*sums, strict=True)) / 2
                    deviates.append(deviate(square, blocks - 1))
        return max(deviates)

    return statistic


def plain_p_value(observed: float, copies: Iterator[float]) -> float:
    """Return 1 / the number of the first copy that is at least the observed statistic; 1/2000 without one."""
    for number, copy in enumerate(itertools.islice(copies, 1999), start=1):
        if copy >= observed - 1e-9:
            return 1 / number
    return 1 / 2000


def small_scores(seed: int, n0: int, n1: int) -> tuple[Scores, Scores]:
    """Return scores with ties."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=n0), 1), np.round(rng.normal(0.5, 1.0, n1), 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shift", [0.0, 1.2])
def test_runs_are_compared_as_by_the_plain_version(seed: int, shift: float) -> None:
    """The same generator draws the same copies, so the p-values are equal.  No chance."""
    scores0, scores1 = small_scores(seed, 17, 14)
    run = np.arange(31) % 3
    scores0, scores1 = scores0 + shift * (run[:17] == 1), scores1 + shift * (run[17:] == 1)
    statistic, rng = plain_between(scores0.tolist(), scores1.tolist()), np.random.default_rng(seed)
    copies = (statistic(rng.permutation(run).tolist()) for _ in itertools.count())
    expected = plain_p_value(statistic(run.tolist()), copies)
    assert between_runs(scores0, scores1, run[:17], run[17:], rng=np.random.default_rng(seed)) == expected


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("drift", [0.0, 1.2])
def test_places_are_compared_as_by_the_plain_version(seed: int, drift: float) -> None:
    """The same generator draws the same copies, so the p-values are equal.  No chance."""
    scores0, scores1 = small_scores(seed, 23, 33)
    scores0, scores1 = scores0 + np.linspace(0, drift, 23), scores1 + np.linspace(0, drift, 33)
    statistic, rng = plain_along(scores0.tolist(), scores1.tolist(), (2, 4, 16)), np.random.default_rng(seed)
    places = [np.tile(np.arange(n), (2, 1)) for n in (23, 33)]
    copies = (statistic(*(rng.permutation(own, axis=1)[0].tolist() for own in places)) for _ in itertools.count())
    expected = plain_p_value(statistic(range(23), range(33)), copies)
    assert along_the_list(scores0, scores1, rng=np.random.default_rng(seed)) == expected


def test_copies_that_equal_the_observed_scores_count() -> None:
    run = np.array([0, 0, 0, 1, 1, 1])
    assert between_runs(np.zeros(3), np.zeros(3), run[:3], run[3:], rng=np.random.default_rng(0)) == 1.0


def check_numbers_of_copies(p_value: Callable[[np.random.Generator], float], share: float, seeds: int) -> None:
    """Check how often the first copy, and none of the first three, is as large as observed; 1e-8 for each bound.

    `share` is the share of all arrangements whose statistic is at least the observed one.
    """
    assert 0.02 < share < 0.98  # so that the test could fail
    drawn = np.array([p_value(np.random.default_rng(seed)) for seed in range(seeds)])
    for found, chance in ((np.sum(drawn == 1), share), (np.sum(drawn < 1 / 3), (1 - share) ** 3)):
        assert binom.ppf(1e-8, seeds, chance) <= found <= binom.ppf(1 - 1e-8, seeds, chance)


@pytest.mark.parametrize("seed", range(2))
def test_the_copies_of_runs_are_all_assignments_equally_often(seed: int) -> None:
    """Enumerates the 560 assignments of 8 canaries to 3 runs.  Fails by chance < 1 in 10**6."""
    scores0, scores1 = small_scores(seed, 5, 3)
    run = np.array([0, 0, 1, 1, 2, 2, 0, 1])
    statistic = plain_between(scores0.tolist(), scores1.tolist())
    every = [statistic(runs) for runs in set(itertools.permutations(run.tolist()))]
    assert len(every) == 560
    share = float(np.mean(np.array(every) >= statistic(run.tolist()) - 1e-9))
    check_numbers_of_copies(lambda rng: between_runs(scores0, scores1, run[:5], run[5:], rng=rng), share, seeds=1000)


@pytest.mark.parametrize("seed", range(2))
def test_the_copies_of_lists_are_all_orders_equally_often(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerates the 2,880 orders of lists of 4 and 5 scores, in 2 and 4 blocks.  Fails by chance < 1 in 10**6."""
    monkeypatch.setattr(exchangeability, "_TESTED_SCORES", 4)
    monkeypatch.setattr(exchangeability, "_BLOCKS", (2, 4))
    scores0, scores1 = np.array([0.3, 2.0, -1.0, 0.3]), np.random.default_rng(seed).normal(size=5)
    statistic = plain_along(scores0.tolist(), scores1.tolist(), (2, 4))
    orders = itertools.product(itertools.permutations(range(4)), itertools.permutations(range(5)))
    every = [statistic(*both) for both in orders]
    share = float(np.mean(np.array(every) >= statistic(range(4), range(5)) - 1e-9))
    check_numbers_of_copies(lambda rng: along_the_list(scores0, scores1, rng=rng), share, seeds=1000)


# --- scores: copies among them, and the worst-case law of the count of right guesses


def counts(scores: np.ndarray) -> np.ndarray:
    return np.unique(scores, return_counts=True)[1]


def test_weights_fulfil_the_condition_of_the_theorem() -> None:
    """Checks (1) for the rates of 4,000 atoms, with 200 multiplicities, by Poisson probabilities."""
    weights, x = exchangeability._weights(), np.geomspace(1e-4, 60.0, 4000)
    k = np.arange(200)
    log_mass = k * np.log(x)[:, None] - np.array([math.lgamma(i + 1) for i in k]) - x[:, None]
    gain = np.exp(log_mass) @ weights[:, np.minimum(k, 64)].T
    assert gain.max() <= 1e-12
    assert weights.min() > -1
    assert np.all(weights[:, 0] == 0)


@pytest.mark.parametrize("rate", [0.3, 1.0, 2.0, 3.0, 5.0, 20.0])
def test_independent_scores_rarely_look_copied(rate: float) -> None:
    """Simulates 1,000 pairs of sides, of Poisson sizes, for each rate of the atoms; a tenth of the scores has no atom.

    E >= 5 has probability 1/5 at most.  Fails by chance < 1 in 10**6.
    """
    rng, called = np.random.default_rng(4), 0
    for _ in range(1000):
        sides = []
        for n in map(int, rng.poisson(60, 2)):
            sides.append(np.where(rng.random(n) < 0.1, rng.random(n), rng.integers(int(60 / rate), size=n)))
        called += exchangeability._log_e(*map(counts, sides)) >= math.log(5)
    assert called <= binom.ppf(1 - 1e-6, 1000, 1 / 5)


def test_the_weights_of_lemma_a_leave_nothing_over() -> None:
    """At one rate of an atom the gain is exactly 0, so no larger weight is valid."""
    for c, (u, v) in [(2, (0.5, 0.5)), (3, (0.05, 0.9))]:
        x = math.sqrt(u * c * (c + 1) / v)
        b = 2 * math.sqrt(u * v * c / (c + 1))
        mass = [x**k / math.factorial(k) for k in (c - 1, c, c + 1)]
        assert -u * mass[0] + b * mass[1] - v * mass[2] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("times", [2, 3, 4, 6])
def test_copies_are_found(times: int) -> None:
    scores = np.random.default_rng(0).normal(size=(2, 20))
    assert exchangeability.repeats_p_value(*(counts(np.tile(side, times)) for side in scores)) <= 1e-6


def test_copies_of_scores_with_atoms_are_found() -> None:
    rng = np.random.default_rng(1)
    sides = np.round(rng.normal(size=(2, 500)), 2)
    assert exchangeability.repeats_p_value(*map(counts, sides)) == 1.0
    assert exchangeability.repeats_p_value(*(counts(np.tile(side, 2)) for side in sides)) <= 1e-6


def test_copies_of_a_part_and_of_varying_number_are_found() -> None:
    rng = np.random.default_rng(2)
    sides = rng.normal(size=(2, 400))
    assert exchangeability.repeats_p_value(*(counts(np.append(side, side[:200])) for side in sides)) <= 1e-6
    assert (
        exchangeability.repeats_p_value(*(counts(np.repeat(side, rng.integers(2, 4, 400))) for side in sides)) <= 1e-6
    )


def test_scores_that_all_differ_or_few_copies_are_no_evidence() -> None:
    assert exchangeability.repeats_p_value(np.ones(100, dtype=int), np.ones(100, dtype=int)) == 1.0
    assert exchangeability.repeats_p_value([2, 2, 2], [2, 2]) > 0.05
    assert exchangeability.repeats_p_value([1000, 1000], [900, 1100]) == 1.0


def test_without_privacy_loss_the_law_is_hypergeometric() -> None:
    for n0, n1, r, k in [(10, 10, 10, 8), (30, 20, 15, 10), (5, 40, 20, 20)]:
        exact = hypergeom.sf(k - 1, n0 + n1, n1, r)
        assert exact * (1 - 1e-9) <= runs.p_value(PureDP(0.0), n0, n1, r, k) <= 1.04 * exact


@pytest.mark.parametrize(
    "claim", [GaussianDP(1.0), LaplaceDP(1.0), PureDP(1.0), ApproxDP(epsilon=0.5, delta=0.1)], ids=str
)
@pytest.mark.parametrize(("n0", "n1"), [(40, 40), (50, 20)])
def test_the_most_distinguishable_pair_attains_the_bound(claim: TradeoffFunction, n0: int, n1: int) -> None:
    """Allows six standard errors of 4,000 draws and 4 % for the cells.  Fails by chance < 1 in 10**7."""
    r = (n0 + n1) // 2
    high = simulated_runs(claim, n0, n1, r, 4000, np.random.default_rng(2))
    for k in range(max(0, r - n0) + 1, min(r, n1) + 1, 3):
        share, ours = float(np.mean(high >= k)), runs.p_value(claim, n0, n1, r, k)
        assert abs(share - ours) <= 6 * np.sqrt(ours * (1 - ours) / 4000 + 1e-7) + 0.04 * ours


@pytest.mark.parametrize(("n0", "n1", "r", "k"), [(80, 20, 8, 6), (50, 50, 50, 32), (5, 4, 3, 2), (300, 200, 230, 120)])
@pytest.mark.parametrize("claim", [GaussianDP(1.27), LaplaceDP(0.8)])
def test_p_values_are_rounded_up(claim: TradeoffFunction, n0: int, n1: int, r: int, k: int) -> None:
    law = beta(r - k + 1, n0 - r + k)

    def integrand(share: float) -> float:
        return float(binom.sf(k - 1, n1, 1 - float(claim.beta(float(law.ppf(share))))))

    plain, error = quad(integrand, 0, 1, limit=200, epsabs=1e-7)
    assert plain - error <= runs.p_value(claim, n0, n1, r, k) < plain + 0.02


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 5 of 5 high scores must be of d1, got 6"):
        runs.p_value(PureDP(1.0), 10, 10, 5, 6)
