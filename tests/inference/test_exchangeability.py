"""Tests of whether canaries are exchangeable, against slow plain versions of their statistics and p-values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.inference.scores import exchangeability
from dpaudit.inference.scores.exchangeability import along_the_list, between_runs

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
    monkeypatch.setattr(exchangeability, "_LEAST", 4)
    monkeypatch.setattr(exchangeability, "_BLOCKS", (2, 4))
    scores0, scores1 = np.array([0.3, 2.0, -1.0, 0.3]), np.random.default_rng(seed).normal(size=5)
    statistic = plain_along(scores0.tolist(), scores1.tolist(), (2, 4))
    orders = itertools.product(itertools.permutations(range(4)), itertools.permutations(range(5)))
    every = [statistic(*both) for both in orders]
    share = float(np.mean(np.array(every) >= statistic(range(4), range(5)) - 1e-9))
    check_numbers_of_copies(lambda rng: along_the_list(scores0, scores1, rng=rng), share, seeds=1000)
