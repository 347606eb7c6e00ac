"""Outputs that never vary, and equal datasets: inconclusive, or a violation that names its cause."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, PureDP, Verdict, audit, batched
from dpaudit.engine.independence import pool_words
from dpaudit.inference.fixed import exact_binomial

PAIR = Pair([0], [1])
CLAIM = "pure(epsilon=1)"


def audited(mechanism: Any, pairs: Any = PAIR, **settings: Any) -> AuditResult:
    chosen: dict[str, Any] = {"trials": 100, "seed": 0, "confidence": 0.95, "attacks": "logistic"} | settings
    return audit(mechanism, CLAIM, pairs, **chosen)


class Keeps:
    """A mechanism that caches its outputs in an object."""

    def __init__(self) -> None:
        self.kept: dict[int, float] = {}

    def __call__(self, dataset: list[int], rng: np.random.Generator) -> float:
        return self.kept.setdefault(dataset[0], dataset[0] + float(rng.laplace()))


def a_fixed_seed(dataset: list[int], rng: np.random.Generator) -> float:
    return dataset[0] + float(np.random.default_rng(42).laplace())


@batched
def no_noise(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
    return np.full(n, float(dataset[0]))


@dataclass(frozen=True)
class Frozen:
    """A mechanism that cannot keep state."""

    scale: float

    def __call__(self, dataset: list[int], rng: np.random.Generator) -> tuple[float, ...]:
        return (dataset[0] * self.scale, self.scale)


@pytest.mark.parametrize(
    ("mechanism", "method"), [(a_fixed_seed, "sequential"), (no_noise, "fixed"), (Frozen(0.3), "sequential")]
)
def test_no_noise_or_a_fixed_seed_is_a_violation_that_names_its_cause(mechanism: Any, method: str) -> None:
    result = audited(mechanism, method=method)
    assert result.violated
    assert result.bounds_valid
    runs = result.trials_used + int(result.environment.get("runs after the evidence", 0))
    assert f"all {runs:,} outputs of d0 were" in " ".join(result.warnings)
    assert "the mechanism has no noise or a fixed seed" in " ".join(result.warnings)


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_a_cache_in_an_object_is_inconclusive_with_any_number_of_runs(method: str) -> None:
    """The cache is one observation of each dataset.  The seed decides."""
    for pairs, trials in (([Pair([2], [3]), PAIR], 100), (PAIR, 600)):
        result = audited(Keeps(), pairs, trials=trials, method=method)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert not result.bounds_valid
        assert (result.p_value, result.mu_lower) == (1.0, 0.0)
        assert result.detectable.claim == ""


@pytest.mark.parametrize(("epsilon", "confidence"), [(1.0, 0.999), pytest.param(2.0, 0.99, marks=pytest.mark.slow)])
def test_as_many_new_processes_as_the_exact_test_needs(epsilon: float, confidence: float) -> None:
    """Fewer processes would refute true claims: a cached randomised response repeats its output in most processes."""
    claim = PureDP(epsilon)
    result = audit(no_noise, claim, PAIR, trials=600, seed=0, confidence=confidence, attacks="plug_in_ratio")
    assert result.violated
    assert result.confirmation is not None
    k = result.confirmation.processes
    enough, fewer = (exact_binomial.p_value(claim, 0, n, n, n) for n in (k, k - 1))
    assert enough <= 1 - confidence < fewer
    alpha = 1 / (1 + math.exp(epsilon))  # outputs may agree with at least this probability
    assert (1 - alpha) ** (2 * k) <= 1 - confidence


@pytest.mark.parametrize(
    ("value", "method"), [(0.5, "sequential"), (None, "fixed"), ([], "sequential"), (float("nan"), "fixed")]
)
def test_constant_outputs_are_inconclusive(value: Any, method: str) -> None:
    result = audited(lambda dataset, rng: (value,), method=method, attacks=["logistic", "plug_in_ratio"])
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert result.detectable.claim == ""
    assert any(words.startswith("every one of the 200 outputs was") for words in result.warnings)


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_equal_datasets_are_inconclusive_before_anything_runs(method: str) -> None:
    def never(dataset: Any, rng: np.random.Generator) -> float:
        raise AssertionError("it ran")

    for d0, d1 in (([1, 2], [1, 2]), (np.arange(5.0), np.arange(5.0)), ({"a": float("nan")}, {"a": float("nan")})):
        result = audited(never, Pair(d0, d1), method=method)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert not result.bounds_valid
        assert result.trials_used == 0
        assert result.detectable.claim == ""
        assert "d0 and d1 are equal" in result.warnings[0]
        str(result)


def test_an_equal_pair_among_others_is_left_out_with_a_warning() -> None:
    result = audited(a_fixed_seed, [Pair([1], [1], label="same"), PAIR])
    assert result.violated
    assert len(result.pairs) == 1
    assert "d0 and d1 are equal" in result.warnings[0]
    assert "(pair same)" in result.warnings[0]


def test_datasets_that_only_look_alike_are_audited() -> None:
    """numpy writes both datasets as the same shortened text."""
    a, b = np.zeros(5000), np.zeros(5000)
    b[2500] = 1
    assert repr(a) == repr(b)
    assert audited(lambda dataset, rng: float(dataset[2500]), Pair(a, b)).violated


def test_the_command_line_exits_with_3_for_equal_datasets_and_constants(command: Any, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def same(dataset, rng):\n    return 1\n")
    config = (
        "name: n\nclaim: pure(epsilon=1)\nmechanism: {python: own.py:same}\ntrials: 100\npairs: [{d0: [D], d1: [1]}]\n"
    )
    for d0, words in (("1", "d0 and d1 are equal"), ("0", "every one of the 200 outputs was 1")):
        (tmp_path / "c.yaml").write_text(config.replace("D]", f"{d0}]"))
        done = command("run", "c.yaml", "--no-pdf")
        assert done.exit_code == 3, done.stderr
        assert words in done.stderr


def test_a_cache_of_one_part_of_the_output_is_inconclusive() -> None:
    """The cached part has one independent run on each dataset.  Apart from the cache, the claim is true.

    The seed decides.
    """

    def keeps(shape: Any) -> Any:
        kept: dict[int, float] = {}

        def release(dataset: list[int], rng: np.random.Generator) -> Any:
            noisy = [dataset[0] + float(rng.laplace(scale=2)) for _ in range(2)]
            return shape(kept.setdefault(dataset[0], noisy[0]), noisy[1])

        return release

    for shape, method in (
        (lambda a, b: [b, a], "fixed"),
        (lambda a, b: {"sum": [a], "mean": b}, "sequential"),
        (lambda a, b: np.array([b, a]), "fixed"),
    ):
        result = audited(keeps(shape), method=method, trials=150)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert not result.bounds_valid


def test_a_pool_is_told_from_grids_candidates_and_shared_values() -> None:
    rng = np.random.default_rng(0)
    pools = rng.normal(size=(2, 20))
    drawn = [list(rng.choice(pool, size=200)) for pool in pools]
    grids = [list(0.1 * rng.integers(-9, 9, size=200) + 0.1234567890123 * side) for side in (0, 1)]
    shared = [list(np.log(20 + rng.integers(9, size=200))) for _ in (0, 1)]
    whole = [list(rng.integers(9, size=200).astype(float)) for _ in (0, 1)]
    fresh_noise = [list(rng.normal(size=200)) for _ in (0, 1)]
    nothing = [[0], [1]]

    def strong(sides: Any, datasets: Any = nothing) -> bool:
        return bool(pool_words(sides, datasets))

    assert strong(drawn) is True
    assert strong([[[x, 1] for x in side] for side in drawn]) is True
    assert strong([[np.array([x, 1.0]) for x in side] for side in drawn]) is True
    assert strong(drawn, [list(pool) for pool in pools]) is False
    assert strong(grids) is False
    assert strong(shared) is False
    assert strong(whole) is False
    assert strong(fresh_noise) is False
    assert strong([["a", None, 0.5, float("nan")] * 9, [0.5] * 36]) is False
