"""The tests of independence keep their level exactly, and detect the kinds of dependence that occur."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from dpaudit.inference.independence.correlation import few_stretches, neighbours, two_sided
from dpaudit.inference.independence.signs import (
    CHECKPOINTS,
    FIRST_SHARE,
    Memory,
    coupling,
    dependence,
    drift,
    log_equal,
    sequences,
)
from dpaudit.learning import Learner, symmetric_columns
from dpaudit.learning.attack import resolve_attacks
from dpaudit.values import key

Rng = np.random.Generator


def signs(outputs: Any, significance: float = 1e-9) -> list[str]:
    return dependence([key(output) for output in outputs], np.asarray(outputs, dtype=np.float64), significance)


# --- the theorems, by enumeration


@pytest.mark.parametrize(("total", "marked", "drawn"), [(9, 3, 4), (8, 8, 3), (7, 0, 3), (10, 5, 5), (6, 1, 1)])
def test_two_sided_tails_are_those_of_the_hypergeometric_law(total: int, marked: int, drawn: int) -> None:
    law = hypergeom(total, marked, drawn)
    support = range(max(0, marked + drawn - total), min(marked, drawn) + 1)
    for x in support:
        assert two_sided(x, total, marked, drawn) == pytest.approx(min(1, 2 * min(law.cdf(x), law.sf(x - 1))), rel=1e-5)
    for level in (0.01, 0.1, 0.3):
        assert sum(law.pmf(x) for x in support if two_sided(x, total, marked, drawn) <= level) <= level


@pytest.mark.parametrize(("n", "ones", "lag"), [(7, 3, 1), (8, 4, 2), (9, 3, 3), (8, 2, 5), (6, 5, 1)])
def test_neighbouring_ones_at_any_lag_are_hypergeometric(n: int, ones: int, lag: int) -> None:
    """Enumerates all arrangements."""
    found: Counter[int] = Counter()
    for places in itertools.combinations(range(n), ones):
        bits = np.zeros((1, n), dtype=bool)
        bits[0, list(places)] = True
        found[int(neighbours(bits, lag)[0])] += 1
    law = hypergeom(n, ones - 1, ones)
    for x in range(ones):
        assert found[x] / math.comb(n, ones) == pytest.approx(law.pmf(x), abs=1e-12)


@pytest.mark.parametrize("values", ["aabbcd", "aaabbc", "aabbcc", "aaaabb", "aabcdef"])
def test_bounds_for_outputs_that_come_again_hold_for_every_arrangement(values: str) -> None:
    n, orders = len(values), list(itertools.permutations(values))
    equal = sum(m * (m - 1) for m in Counter(values).values())
    pairs = [(0, 3), (1, 4), (2, 5)]
    often = Counter(sum(order[i] == order[j] for i, j in pairs) for order in orders)
    for k in range(4):
        share = sum(times for matches, times in often.items() if matches >= k) / len(orders)
        assert share <= math.exp(log_equal(k, len(pairs), equal, n)) + 1e-12
    again = sum(order[0] == order[2] and order[1] == order[3] for order in orders) / len(orders)
    assert again <= math.prod(equal / ((n - 2 * i) * (n - 2 * i - 1)) for i in range(2)) + 1e-12


def test_sequences_that_come_again_are_found_as_by_plain_search() -> None:
    """The tested lengths are powers of two.  The seeds are fixed."""
    rng = np.random.default_rng(0)
    for n in (30, 47, 64, 100):
        for kinds in (2, 5, 50):
            keys = rng.integers(0, kinds, n).tolist()
            longest = max(
                (
                    length
                    for length in (1, 2, 4, 8, 16, 32)
                    for i in range(n - 2 * length + 1)
                    for j in range(i + length, n - length + 1)
                    if keys[i : i + length] == keys[j : j + length]
                ),
                default=0,
            )
            words = sequences(keys, math.inf)
            assert words == ([f"a sequence of {longest} outputs was repeated"] if longest else [])


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2, 1), (4, 2), (2, 2, 1, 1), (5, 1, 1)])
def test_the_bound_for_few_stretches_holds_for_every_arrangement_and_is_near(sizes: tuple[int, ...]) -> None:
    labels = [i for i, size in enumerate(sizes) for _ in range(size)]
    orders = list(itertools.permutations(labels))
    stretches = Counter(1 + sum(a != b for a, b in itertools.pairwise(order)) for order in orders)
    for most in range(1, len(labels) + 1):
        share = sum(times for r, times in stretches.items() if r <= most) / len(orders)
        assert share <= few_stretches(most, sizes) <= max(1e-12, 8 * share)


def test_the_shares_of_the_level_add_up_to_one_at_most() -> None:
    shares = {}
    memory = Memory()
    for _ in range(4000):
        memory.add(np.zeros(97))
        shares[memory._step, memory._every] = memory.spread_share
    assert FIRST_SHARE * len(CHECKPOINTS) <= 0.5
    assert sum(shares.values()) <= 0.5
    assert len(shares) > 20


def test_tested_outputs_are_those_up_to_a_number_of_runs_that_is_fixed_beforehand() -> None:
    memory = Memory()
    memory.add(np.arange(63))
    assert memory.length == 50
    memory.add(np.arange(63, 10_000))
    assert memory.length == 4000
    assert memory.thinned[-1] < 100 * 1.2**25
    assert len(memory.thinned) > 2000


# --- the level

DRAWS: dict[str, Callable[[Rng, int], Any]] = {
    "binary 0.001": lambda rng, n: (rng.random(n) < 1e-3).astype(float),
    "binary 0.01": lambda rng, n: (rng.random(n) < 1e-2).astype(float),
    "rare signs": lambda rng, n: np.where(rng.random(n) < 0.002, rng.choice([-1.0, 1.0], n), 0.0),
    "geometric": lambda rng, n: rng.geometric(0.5, n).astype(float),
    "ties": lambda rng, n: np.round(rng.normal(size=n), 1),
    "coin": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "normal": lambda rng, n: rng.normal(size=n),
    "missing": lambda rng, n: np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_independent_runs_with_rare_or_tied_outcomes_are_never_suspected(name: str) -> None:
    """Fails by chance < 1 in 10**6: some 60 tests of 10**-9 each.  Once 1 in 20 audits of rare outcomes failed."""
    for seed in range(10 if "binary" in name else 2):
        rng = np.random.default_rng(seed)
        first, second = DRAWS[name](rng, 4000), DRAWS[name](rng, 4000)
        assert signs(first) == []
        assert drift(first) == []
        assert coupling(first, second) == []


LONG = [pytest.param(name, marks=pytest.mark.slow) for name in ("binary 0.001", "geometric", "coin", "normal")]


@pytest.mark.parametrize("name", ["binary 0.01", "rare signs", "ties", "missing", *LONG])
def test_the_level_of_the_tests_is_kept(name: str) -> None:
    """The tests have the level 0.2 here, so that rejections can be counted.  Fails by chance < 1 in 10**6."""
    audits, found = 40, [0, 0, 0]
    for seed in range(audits):
        rng = np.random.default_rng([7, seed])
        n = int(rng.integers(30, 300))
        first, second = DRAWS[name](rng, n), DRAWS[name](rng, n)
        found[0] += bool(signs(first, 0.2))
        found[1] += bool(drift(first, 0.2))
        found[2] += bool(coupling(first, second, 0.2))
    assert max(found) <= binom.ppf(1 - 1e-8, audits, 0.2)


# --- the power


def in_segments(rng: Rng, n: int, mean: float = 0.0) -> Any:
    """Return outputs of a generator that is copied or re-seeded: segments that begin with the same numbers."""
    noise = rng.normal(size=n)
    found: list[float] = []
    while len(found) < n:
        found.extend(noise[: rng.integers(8, 60)] + mean)
    return np.array(found[:n])


def autoregressive(rng: Rng, n: int, factor: float) -> Any:
    noise = rng.normal(size=n)
    for t in range(1, n):
        noise[t] += factor * noise[t - 1]
    return noise


DEPENDENT: dict[str, Callable[[Rng], Any]] = {
    "a pool of 60 draws in turn": lambda rng: np.resize(rng.normal(size=60), 2000),
    "a pool of 60 coins in turn": lambda rng: np.resize(rng.integers(0, 2, 60), 2000),
    "a pool of 60 draws in turn, 200 runs": lambda rng: np.resize(rng.normal(size=60), 200),
    "a pool of 60 rare outcomes in turn": lambda rng: np.resize(np.arange(60) == 7, 2000).astype(float),
    "a generator copied to workers": lambda rng: in_segments(rng, 400),
    "a generator copied to workers, whole numbers": lambda rng: np.round(in_segments(rng, 2000)),
    "the same seed in each of two halves": lambda rng: np.tile(rng.normal(size=40), 2),
    "each draw twice": lambda rng: np.repeat(rng.normal(size=200), 2),
    "autoregressive noise": lambda rng: autoregressive(rng, 4000, 0.3),
    "strongly autoregressive noise": lambda rng: autoregressive(rng, 400, 0.9),
    "noise that turns": lambda rng: autoregressive(rng, 1000, -0.7),
    "a random walk of 200 runs": lambda rng: np.cumsum(rng.normal(size=200)),
    "drifting noise": lambda rng: rng.normal(size=1000) + np.linspace(0, 2, 1000),
    "noise that widens": lambda rng: rng.normal(size=4000) * np.linspace(1, 2, 4000),
    "noise that comes and goes": lambda rng: rng.normal(size=4000) + np.sin(np.arange(4000) / 300),
    "a counter": lambda rng: np.arange(64.0),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_dependent_runs_are_noticed(name: str) -> None:
    """Each case fails by chance < 1 in 10**6; the seeds are fixed.  The tests have a sixtieth of the level, as in an
    audit of one pair."""
    for seed in range(3):
        outputs = DEPENDENT[name](np.random.default_rng(seed))
        assert signs(outputs, 1e-9 * FIRST_SHARE / 6), name


@pytest.mark.parametrize("shared", ["shift", "mirrored", "rare", "half"])
def test_common_randomness_of_the_two_datasets_is_noticed(shared: str) -> None:
    """Fails by chance < 1 in 10**6; the seeds are fixed."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=2000)
        other = {
            "shift": noise + 1,
            "mirrored": 1 - noise,
            "rare": (noise > 2.4).astype(float),
            "half": np.where(rng.random(2000) < 0.5, noise, rng.normal(size=2000)),
        }[shared]
        first = (noise > 2.4).astype(float) if shared == "rare" else noise
        assert "share their randomness" in coupling(first, other, 1e-9 * FIRST_SHARE / 6)[0]


# --- columns that treat all runs alike


class Memoriser:
    """An attack whose scores reveal the outputs to which it was fitted, and their order."""

    name = "memoriser"

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        known = {float(x): i for i, x in enumerate(np.concatenate([outputs0, outputs1]))}
        return lambda outputs: np.array([known.get(float(x), -1) for x in outputs], dtype=float)


def test_scores_for_tests_of_independence_do_not_know_the_order_of_the_runs() -> None:
    """The attack's scores are the positions of the outputs in its fit: perfect drift, unless their order is random."""
    rng = np.random.default_rng(0)
    outputs0, outputs1 = rng.normal(size=(2, 500))
    learner = Learner([Memoriser()], seed=0, pair=0)
    learner.learn(outputs0, outputs1)
    columns, scores = symmetric_columns(learner, list(outputs0), list(outputs1), rng, refit=True)
    assert columns[0][:, 0].tolist() == outputs0.tolist()
    assert columns[1][:, 0].tolist() == outputs1.tolist()
    for side, found in enumerate(scores):
        assert sorted(found[:, 0]) == list(range(500 * side, 500 * side + 500))
        assert dependence((), found) == []


@pytest.mark.parametrize(
    "outputs",
    [
        [1, 2.5, "x", None] * 20,
        [{"a": i % 7, "b": "x" * (i % 3)} for i in range(80)],
        [np.arange(i % 5) for i in range(80)],
        [np.full(30, i) for i in range(80)],
        [[i, -i] for i in range(80)],
        [2**70 + i for i in range(80)],
        [np.nan, np.inf] * 40,
    ],
    ids=["mixed", "dicts", "arrays of any length", "arrays", "lists", "large integers", "not finite"],
)
def test_outputs_of_any_kind_have_columns(outputs: Any) -> None:
    learner = Learner(resolve_attacks(["logistic", "plug_in_ratio"]), seed=0, pair=0)
    learner.learn(*learner.read(outputs, outputs[::-1]))
    columns, scores = symmetric_columns(learner, outputs, outputs[::-1], np.random.default_rng(0), refit=True)
    for side in (0, 1):
        assert columns[side].shape == (80, columns[0].shape[1])
        assert len(scores[side]) == 80
        assert columns[side].shape[1] <= 17
    assert np.array_equal(columns[0], columns[1][::-1], equal_nan=True)
