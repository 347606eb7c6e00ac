"""No run shares its output with another run: a mechanism may reuse its buffers.

Seeds are fixed, so nothing here fails by chance.  Most tests compare the evidence with that of a correct version of the
same mechanism: all counts must be equal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, MechanismError, Verdict, audit, batched
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
