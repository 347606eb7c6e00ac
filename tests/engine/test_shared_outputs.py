"""No run shares its output with another run: a mechanism may reuse its buffers.

Seeds are fixed, so nothing here fails by chance.  Most tests compare the evidence with that of a correct version of the
same mechanism: all counts must be equal.
"""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, MechanismError, Pair, PureDP, Verdict, audit, batched
from dpaudit.engine.independence import pool_words
from dpaudit.inference.fixed import exact_binomial
from dpaudit.result.evidence import fingerprint
from dpaudit.running.outcomes import detached_batch
from dpaudit.running.sampler import Sampler

from .shared_state import PAIR, Rng, audited, fresh


def one_array() -> Callable[..., Any]:
    buffer = np.empty(2)

    def release(dataset: list[float], rng: Rng) -> Any:
        buffer[:] = fresh(dataset, rng)
        return buffer

    return release


def array_per_dataset() -> Callable[..., Any]:
    buffers: dict[float, Any] = {}

    def release(dataset: list[float], rng: Rng) -> Any:
        buffer = buffers.setdefault(dataset[0], np.empty(2))
        buffer[:] = fresh(dataset, rng)
        return buffer

    return release


def one_list() -> Callable[..., Any]:
    kept = [0.0, 0.0]

    def release(dataset: list[float], rng: Rng) -> Any:
        kept[:] = fresh(dataset, rng).tolist()
        return kept

    return release


def one_dict() -> Callable[..., Any]:
    kept = {"values": np.empty(2)}

    def release(dataset: list[float], rng: Rng) -> Any:
        kept["values"][:] = fresh(dataset, rng)
        return kept

    return release


@dataclass
class Cell:
    values: Any


def one_object() -> Callable[..., Any]:
    kept = Cell(np.empty(2))

    def release(dataset: list[float], rng: Rng) -> Any:
        kept.values[:] = fresh(dataset, rng)
        return kept

    return release


COPIES: dict[Callable[..., Any], Callable[..., Any]] = {
    one_array: fresh,
    array_per_dataset: fresh,
    one_list: lambda dataset, rng: fresh(dataset, rng).tolist(),
    one_dict: lambda dataset, rng: {"values": fresh(dataset, rng)},
    one_object: lambda dataset, rng: Cell(fresh(dataset, rng)),
}


@functools.cache
def audited_copy(mechanism: Callable[..., Any], method: str) -> AuditResult:
    return audited(mechanism, method=method)


@pytest.mark.parametrize(("make", "method"), [*((make, "sequential") for make in COPIES), (one_array, "fixed")])
def test_an_output_buffer_that_is_used_again_changes_nothing(make: Callable[..., Any], method: str) -> None:
    reused, copied = audited(make(), method=method), audited_copy(COPIES[make], method)
    assert fingerprint(reused.evidence) == fingerprint(copied.evidence)
    assert reused.environment["outputs"] == copied.environment["outputs"]


def test_a_leak_through_one_output_buffer_is_found_whatever_the_seed() -> None:
    """The true mu is 10; the seeds are fixed."""
    for seed in range(2):
        kept = [0.0, 0.0]

        def release(dataset: list[float], rng: Rng, kept: list[float] = kept) -> list[float]:
            kept[0], kept[1] = dataset[0] + 0.1 * float(rng.normal()), float(rng.normal())
            return kept

        assert audited(release, attacks="logistic", seed=seed).violated


@pytest.mark.parametrize("kind", [list, np.empty, lambda _: {"a": [1]}, lambda _: np.zeros((3, 1))[:2]])
def test_a_batch_that_holds_one_object_for_several_runs_is_refused(kind: Any) -> None:
    kept = kind((2,))

    def same(dataset: list[float], n: int, rng: Rng) -> Any:
        return [kept for _ in range(n)]

    with pytest.raises(MechanismError, match=r"returned the same .* object for several runs .* return a new object"):
        audited(batched(same))
    with pytest.raises(MechanismError, match=r"returned the same .* object for several runs"):
        audited(batched(lambda dataset, n, rng: [(float(rng.normal()), kept) for _ in range(n)]))


def converted(rare: Any, common: Any, kind: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """Returns one rare output in the fifth call, so that numpy converts all outputs of this call."""
    calls = iter(range(10**9))

    @batched
    def release(dataset: list[float], n: int, rng: Rng) -> Any:
        outputs = [common(rng) for _ in range(n)]
        return kind([*outputs[1:], rare] if next(calls) == 4 else outputs)

    return release


def text(rng: Rng) -> float:
    return float(rng.normal())


def large(rng: Rng) -> int:
    return 2**60 + int(rng.integers(1000))


@pytest.mark.parametrize("method", ["sequential", "fixed"])
@pytest.mark.parametrize(
    ("rare", "common", "kinds"),
    [("error", text, "numbers .* text"), (np.nan, large, r"floats .* integers beyond 2\^53")],
)
def test_a_batch_whose_values_numpy_converted_ends_the_audit_inconclusive(
    rare: Any, common: Any, kinds: str, method: str
) -> None:
    result = audited(converted(rare, common, np.array), trials=100, method=method)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert re.search(f"{kinds}.*Return a list or an object array", " ".join(result.warnings))
    # a list keeps the type of each output
    assert audited(converted(rare, common, list), trials=100, method=method).verdict is Verdict.NO_VIOLATION


def test_a_conversion_that_changes_no_score_is_allowed() -> None:
    small = converted(np.nan, lambda rng: int(rng.integers(1000)), np.array)
    assert audited(small, trials=100).verdict is Verdict.NO_VIOLATION


def test_arrays_of_several_calls_are_not_joined_into_one_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.running.sampler.CHUNK", 20)
    outcomes = Sampler(converted("error", text, np.array), [PAIR], seed=0).block(0, 0, 60)
    assert "one call returned only numbers and another call only text" in outcomes[1].failure
    assert not outcomes[1].outputs


@dataclass(frozen=True)
class Nothing:
    reason: str = "too few"


def test_a_batch_may_hold_one_immutable_object_for_several_runs() -> None:
    nothing, sentinel = Nothing(), ("none", 1)
    for value in (nothing, sentinel, None, "text", float, 2**80):
        assert detached_batch([value] * 3) == [value] * 3


def test_an_output_that_cannot_be_copied_ends_the_audit_in_words() -> None:
    with pytest.raises(MechanismError, match=r"returned an output that cannot be kept: a builtins\.generator cannot"):
        audited(lambda dataset, rng: (i for i in range(3)))


def test_values_that_become_many_after_they_were_few_are_still_counted_in_frozen_regions() -> None:
    def word(dataset: list[float], rng: Rng) -> str:
        return f"w{int(rng.integers(4 if rng.random() > 0.05 else 300))}"

    assert (
        audit(word, "pure(epsilon=1)", PAIR, attacks="plug_in_ratio", trials=400, seed=0).verdict
        is Verdict.NO_VIOLATION
    )


# --- outputs that never vary, and equal datasets: inconclusive, or a violation that names its cause


ZERO_OR_ONE = Pair([0], [1])
CLAIM = "pure(epsilon=1)"


def audit_of_pure(mechanism: Any, pairs: Any = ZERO_OR_ONE, **settings: Any) -> AuditResult:
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
    result = audit_of_pure(mechanism, method=method)
    assert result.violated
    assert result.bounds_valid
    runs = result.trials_used + int(result.environment.get("runs after the evidence", 0))
    assert f"all {runs:,} outputs of d0 were" in " ".join(result.warnings)
    assert "the mechanism has no noise or a fixed seed" in " ".join(result.warnings)


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_a_cache_in_an_object_is_inconclusive_with_any_number_of_runs(method: str) -> None:
    """The cache is one observation of each dataset.  The seed decides."""
    for pairs, trials in (([Pair([2], [3]), ZERO_OR_ONE], 100), (ZERO_OR_ONE, 600)):
        result = audit_of_pure(Keeps(), pairs, trials=trials, method=method)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert not result.bounds_valid
        assert (result.p_value, result.mu_lower) == (1.0, 0.0)
        assert result.detectable.claim == ""


@pytest.mark.parametrize(("epsilon", "confidence"), [(1.0, 0.999), pytest.param(2.0, 0.99, marks=pytest.mark.slow)])
def test_as_many_new_processes_as_the_exact_test_needs(epsilon: float, confidence: float) -> None:
    """Fewer processes would refute true claims: a cached randomised response repeats its output in most processes."""
    claim = PureDP(epsilon)
    result = audit(no_noise, claim, ZERO_OR_ONE, trials=600, seed=0, confidence=confidence, attacks="plug_in_ratio")
    assert result.violated
    k = result.confirmation.processes
    enough, fewer = (exact_binomial.p_value(claim, 0, n, n, n) for n in (k, k - 1))
    assert enough <= 1 - confidence < fewer
    alpha = 1 / (1 + math.exp(epsilon))  # outputs may agree with at least this probability
    assert (1 - alpha) ** (2 * k) <= 1 - confidence


@pytest.mark.parametrize(
    ("value", "method"), [(0.5, "sequential"), (None, "fixed"), ([], "sequential"), (float("nan"), "fixed")]
)
def test_constant_outputs_are_inconclusive(value: Any, method: str) -> None:
    result = audit_of_pure(lambda dataset, rng: (value,), method=method, attacks=["logistic", "plug_in_ratio"])
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert result.detectable.claim == ""
    assert any(words.startswith("every one of the 200 outputs was") for words in result.warnings)


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_equal_datasets_are_inconclusive_before_anything_runs(method: str) -> None:
    def never(dataset: Any, rng: np.random.Generator) -> float:
        raise AssertionError("it ran")

    for d0, d1 in (([1, 2], [1, 2]), (np.arange(5.0), np.arange(5.0)), ({"a": float("nan")}, {"a": float("nan")})):
        result = audit_of_pure(never, Pair(d0, d1), method=method)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert not result.bounds_valid
        assert result.trials_used == 0
        assert result.detectable.claim == ""
        assert "d0 and d1 are equal" in result.warnings[0]
        str(result)


def test_an_equal_pair_among_others_is_left_out_with_a_warning() -> None:
    result = audit_of_pure(a_fixed_seed, [Pair([1], [1], label="same"), ZERO_OR_ONE])
    assert result.violated
    assert len(result.pairs) == 1
    assert "d0 and d1 are equal" in result.warnings[0]
    assert "(pair same)" in result.warnings[0]


def test_datasets_that_only_look_alike_are_audited() -> None:
    """numpy writes both datasets as the same shortened text."""
    a, b = np.zeros(5000), np.zeros(5000)
    b[2500] = 1
    assert repr(a) == repr(b)
    assert audit_of_pure(lambda dataset, rng: float(dataset[2500]), Pair(a, b)).violated


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
        result = audit_of_pure(keeps(shape), method=method, trials=150)
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
