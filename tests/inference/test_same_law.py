"""Tests whether outputs have the same law in every process: exact size, and what a process may keep."""

import itertools
import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from dpaudit.inference.independence import correlation
from dpaudit.inference.independence.correlation import two_sided
from dpaudit.inference.independence.same_law import differences, newcomers_p_value, repeats
from dpaudit.numerics import Array
from dpaudit.values import key

LEVEL = 1e-9  # about the level of each comparison in an audit
Rng = np.random.Generator


def compared(outputs: Any, process: Any, significance: float) -> list[str]:
    """Compare outputs that are rows of numbers."""
    columns = np.asarray(outputs, dtype=float).reshape(len(outputs), -1)
    keys: list[Hashable] = [key(one) for one in columns.tolist()]
    return differences(keys, columns, np.asarray(process), significance, np.random.default_rng(0))


@pytest.fixture
def sharp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute the p-values of all counts, also of those near their means."""
    monkeypatch.setattr(correlation, "NOTABLE", 0.0)


# --- under exchangeability


@pytest.mark.parametrize(("total", "marked", "drawn"), [(12, 5, 4), (12, 6, 6), (30, 3, 11), (9, 9, 4), (7, 2, 7)])
def test_the_p_value_of_a_count_is_valid(total: int, marked: int, drawn: int) -> None:
    """Enumerates all counts."""
    x = np.arange(max(0, drawn + marked - total), min(drawn, marked) + 1)
    mass = hypergeom.pmf(x, total, marked, drawn)
    p = np.array([two_sided(int(one), total, marked, drawn) for one in x])
    sides = np.minimum(hypergeom.cdf(x, total, marked, drawn), hypergeom.sf(x - 1, total, marked, drawn))
    assert p == pytest.approx(np.minimum(2 * sides, 1.0), rel=1e-5)
    for s in p:
        assert mass[p <= s].sum() <= s * (1 + 1e-12)


MULTISETS = {
    "distinct": np.arange(8.0),
    "two values": np.array([0.0] * 5 + [1.0] * 5),
    "few values": np.array([0.0, 0, 0, 1, 1, 2, 2, 2]),
    "pairs": np.repeat(np.arange(4.0), 2),
    "vectors": np.stack([np.arange(8.0), np.repeat([0.0, 1.0], 4)], axis=1),
    "missing": np.array([np.nan] * 3 + [0.5] * 2 + [1.0, 2.0, 3.0]),
}


@pytest.mark.usefixtures("sharp")
@pytest.mark.parametrize(
    ("name", "own"), [*((name, 3) for name in MULTISETS), pytest.param("two values", 5, marks=pytest.mark.slow)]
)
def test_differences_are_found_with_probability_at_most_the_level(name: str, own: int) -> None:
    """Enumerates which outputs belong to the first of two processes; given the outputs, all are equally likely."""
    outputs, found = MULTISETS[name], {0.2: 0, 0.5: 0}
    choices = list(itertools.combinations(range(len(outputs)), own))
    for chosen in choices:
        process = np.ones(len(outputs), dtype=np.intp)
        process[list(chosen)] = 0
        for level in found:
            found[level] += bool(compared(outputs, process, level))
    assert all(times <= level * len(choices) for level, times in found.items())
    if (name, own) == ("two values", 5):
        assert found[0.2] > 0  # the enumeration is not vacuous


def laws() -> Iterator[tuple[str, Callable[[Rng, int], Any]]]:
    yield "continuous", lambda rng, n: rng.laplace(size=n)
    yield "grid", lambda rng, n: rng.geometric(0.3, n) - rng.geometric(0.3, n)
    yield "rare", lambda rng, n: (rng.random(n) < 0.02).astype(float)
    yield "constant", lambda rng, n: np.full(n, 0.25)
    yield "vectors", lambda rng, n: rng.normal(size=(n, 3))


LAWS = dict(laws())


def in_processes(rng: Rng, draw: Callable[[Rng, int], Any], sizes: tuple[int, ...]) -> tuple[Any, Array]:
    return draw(rng, sum(sizes)), np.repeat(np.arange(len(sizes)), sizes)


@pytest.mark.usefixtures("sharp")
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("times", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_independent_runs_seem_to_differ_as_seldom_as_stated(name: str, times: int) -> None:
    """Fails by chance < 1 in 10**6 for each law, if 0.2 is exact; the tests are correlated, so it is an upper bound."""
    rng = np.random.default_rng(len(name))
    made = [in_processes(rng, LAWS[name], (40, 8, 8, 8)) for _ in range(times)]
    found = sum(bool(compared(*one, 0.2)) for one in made)
    assert found <= binom.isf(1e-6, times, 0.2)


# --- what a process keeps


def kept_noise(rng: Rng, n: int) -> Any:
    """The same noise in all runs of a process, with other noise that is smaller."""
    return rng.laplace() + 1e-3 * rng.normal(size=n)


def pool(rng: Rng, n: int) -> Any:
    return rng.choice(rng.laplace(size=5), n)


def cache(rng: Rng, n: int) -> Any:
    return np.full(n, rng.laplace())


def cache_of_half(rng: Rng, n: int) -> Any:
    return np.where(rng.random(n) < 0.5, rng.laplace(), rng.laplace(size=n))


def cached_part(rng: Rng, n: int) -> Any:
    return np.stack([rng.normal(size=n), np.full(n, rng.normal()), rng.normal(size=n)], axis=1)


@pytest.mark.parametrize("draw", [kept_noise, pool, cache, cache_of_half, cached_part])
@pytest.mark.parametrize("sizes", [(500, *[64] * 8), (40, *[64] * 8), (0, *[128] * 8)], ids=["long", "short", "new"])
def test_what_a_process_keeps_is_found(draw: Callable[[Rng, int], Any], sizes: tuple[int, ...]) -> None:
    """Fails by chance < 1 in 10**6: what is kept is continuous, so two processes hardly keep similar values."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        outputs = np.concatenate([draw(rng, n) for n in sizes if n])
        assert compared(outputs, np.repeat(np.arange(len(sizes)), sizes), LEVEL)


def test_a_cache_on_top_of_an_earlier_process_is_found_by_its_values() -> None:
    """The first process varies, and each of the others repeats few values on a common grid."""
    rng = np.random.default_rng(0)
    outputs = np.concatenate([rng.integers(0, 50, 400), *[np.full(64, rng.integers(0, 50)) for _ in range(8)]])
    assert compared(outputs, np.repeat(np.arange(9), [400, *[64] * 8]), LEVEL)


@pytest.mark.parametrize("name", LAWS)
def test_honest_outputs_do_not_differ(name: str) -> None:
    """Fails by chance < 1 in 10**6: five comparisons at the level 1e-9."""
    rng = np.random.default_rng(7)
    for sizes in ((500, *[64] * 8), (40, *[64] * 8), (0, *[128] * 8), (100, 1), (4000, *[2] * 8)):
        assert not compared(*in_processes(rng, LAWS[name], sizes), LEVEL)


def test_one_process_cannot_differ_from_itself() -> None:
    outputs = np.arange(50.0)
    assert not compared(outputs, np.zeros(50, dtype=np.intp), 0.999)


def test_the_order_of_runs_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    outputs, process = np.concatenate([kept_noise(rng, 64) for _ in range(4)]), np.repeat(np.arange(4), 64)
    order = rng.permutation(256)
    assert compared(outputs, process, LEVEL) == compared(outputs[order], process[order], LEVEL)


def test_new_values_are_found_where_the_numbers_are_equal() -> None:
    """The first process repeats ten values, and the others never show any of them."""
    process, blind = np.repeat(np.arange(5), [400, *[16] * 4]), np.zeros((464, 1))
    for new, found in (("new", True), ("old", False)):
        keys: list[Hashable] = [f"old {i % 10}" for i in range(400)]
        keys += [f"{new} {i if found else i % 10}" for i in range(64)]
        assert bool(differences(keys, blind, process, LEVEL, np.random.default_rng(0))) == found


# --- repeats within a process


@pytest.mark.parametrize("keys", [[0, 0, 1, 1, 2, 3, 4, 5], [0] * 5 + [1, 2, 3], [0] * 8, [0, 0, 0, 1, 1, 2, 2, 3]])
@pytest.mark.parametrize("sizes", [(4, 4), (2, 3, 3), (1, 7)])
def test_the_p_value_of_repeats_is_valid(keys: list[Hashable], sizes: tuple[int, ...]) -> None:
    """Enumerates which outputs belong to which process; given the outputs, all are equally likely."""
    labels = np.repeat(np.arange(len(sizes)), sizes).tolist()
    p_values = [
        repeats(keys, np.array(process), np.random.default_rng(1))[2] for process in set(itertools.permutations(labels))
    ]
    for s in set(p_values):
        assert np.mean(np.array(p_values) <= s) <= s


@pytest.mark.parametrize("size", [3, 30, 1000])
def test_a_pool_in_each_process_is_found(size: int) -> None:
    """Each of eight processes draws 128 values from a pool of its own.

    The seed is fixed.  Other seeds fail < 1 in 10**9: fewer than 30 values would have to repeat where 60 are expected.
    """
    rng = np.random.default_rng(1)
    keys = [int(one) for k in range(8) for one in k * size + rng.integers(size, size=128)]
    process = np.repeat(np.arange(8), 128)
    within, pairs, p_value = repeats(keys, process, rng)
    assert within == pairs > 0
    assert p_value < 1e-12
    shared = [one % size for one in keys]
    assert repeats(shared, process, rng)[2] > 1e-9


@pytest.mark.parametrize("values", ["aabbccdde", "abcdefghi", "aaaaaaaab", "aabbbcccc"])
def test_the_p_value_is_valid_under_exchangeability(values: str) -> None:
    """Enumerates all equally likely choices of the new outputs."""
    n = len(values)
    for m in (1, 2, 3):
        found = []
        for chosen in itertools.combinations(range(n), m):
            new = [values[i] for i in chosen]
            found.append(newcomers_p_value([values[i] for i in range(n) if i not in chosen], new))
        for p in set(found):
            assert sum(q <= p for q in found) / len(found) <= p + 1e-12


def test_the_p_value_of_only_new_values_is_one_over_the_number_of_choices() -> None:
    known, new = ["a", "b"] * 50, [f"new {i}" for i in range(12)]
    assert newcomers_p_value(known, new) == pytest.approx(2 / math.comb(112, 12), rel=1e-6)
    assert newcomers_p_value(known, ["a", "b"] * 6) >= 1.0


def test_values_repeated_among_the_new_outputs_count() -> None:
    """The new outputs contain values that the known ones never show, some of them repeatedly."""
    rng = np.random.default_rng(0)
    known, new = rng.choice([3, 5, -1], size=4000).tolist(), [0, 0, 1, 1, 1, 2, 2, 4, 4, 3, 5, -1]
    assert newcomers_p_value(known, new) < 1e-9
