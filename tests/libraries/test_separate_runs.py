"""Runs of a generator share nothing, and a machine that has run out of something is no output of the generator."""

from __future__ import annotations

import errno
import random
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError, Pair, PureDP, audit
from dpaudit.libraries import audit_subject, synthesizer
from dpaudit.running.outcomes import of_machine

SCHEMA: dict[str, Any] = {"age": (0, 9)}
ROWS = [{"age": 3}, {"age": 4}]
FULL = [
    MemoryError("no"),
    OSError(errno.ENOSPC, "no"),
    RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory"),
]
OTHER = [ValueError("too few rows"), FileNotFoundError(errno.ENOENT, "no"), RuntimeError("cannot allocate the budget")]


class Generator:
    """A generator whose runs share the list of its argument and the array of its output."""

    shared = np.zeros(1)
    fails: BaseException | None = None

    def __init__(self, epsilon: float = 1.0, seen: list[int] | None = None) -> None:
        self.epsilon, self.seen = epsilon, [] if seen is None else seen

    def fit(self, rows: Any, asked: Any = None) -> None:
        if Generator.fails is not None and len(rows) == 2:
            raise Generator.fails
        for growing in (self.seen, [] if asked is None else asked["rows"], rows[0].get("visits", [])):
            growing.append(len(growing))
        self.sizes = [len(self.seen), 0 if asked is None else len(asked["rows"]), len(rows[0].get("visits", []))]

    def sample(self, rows: int) -> Any:
        Generator.shared += 1
        return {"n": Generator.shared[:], "sizes": self.sizes}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Generator, "fails", None)
    monkeypatch.setattr(Generator, "shared", np.zeros(1))


def subject(**settings: Any) -> Any:
    return synthesizer.subject(Generator, SCHEMA, table="rows", **settings)


def test_runs_share_neither_arguments_nor_cells_nor_outputs() -> None:
    found = subject(seen=[], fit_arguments={"asked": {"rows": []}})
    rows = [{"age": 3, "visits": [7]}]
    outputs = found.mechanism.sample(rows, 3, np.random.default_rng(0))
    assert [float(output["n"][0]) for output in outputs] == sorted({float(output["n"][0]) for output in outputs})
    assert [output["sizes"] for output in outputs] == [[1, 1, 2]] * 3
    assert rows == [{"age": 3, "visits": [7]}]


@pytest.mark.parametrize("error", FULL, ids=repr)
def test_a_machine_without_memory_or_space_is_no_output(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier runs decide how much is left, so such an error could refute a true claim."""
    assert of_machine(error)
    mechanism = subject().mechanism
    monkeypatch.setattr(Generator, "fails", error)
    with pytest.raises(type(error)):
        mechanism.sample(ROWS, 1, np.random.default_rng(0))

    def fails_on_one(dataset: int, rng: np.random.Generator) -> int:
        if dataset:
            raise error
        return int(rng.integers(2))

    with pytest.raises(MechanismError, match="is no outcome, because it depends on the machine"):
        audit(fails_on_one, PureDP(1.0), Pair(0, 1), trials=60, failures="outcome", seed=1)


@pytest.mark.parametrize("error", OTHER, ids=repr)
def test_other_errors_are_outputs(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not of_machine(error)
    mechanism = subject().mechanism
    monkeypatch.setattr(Generator, "fails", error)
    (output,) = mechanism.sample(ROWS, 1, np.random.default_rng(0))
    assert output["raised"] == type(error).__name__


def fails_on_two(made: Any, rows: Any) -> None:
    if len(rows) == 2:
        raise ValueError("two rows")


def drawn(made: Any, rows: int) -> float:
    return random.random()


def test_failures_are_respected_in_python_and_the_author_of_the_claim_is_recorded() -> None:
    pairs = [Pair(ROWS, ROWS[:1], relation="add_remove")]
    found = subject(pairs=pairs, fit=fails_on_two, sample=drawn)
    settings: dict[str, Any] = {"trials": 100, "seed": 1, "confidence": 0.9, "confirm": "never"}
    for failures in ({}, {"failures": "outcome"}):
        result = audit_subject(found, **failures, **settings)
        assert result.violated  # every output of d0 is the exception, so that this does not depend on chance
        assert result.provenance.claim_stated_by == "the constructor of the generator"
    with pytest.raises(MechanismError, match="raised ValueError: two rows"):
        audit_subject(found, failures="stop", **settings)
    assert subject(claim="pure(epsilon=9)").claim_stated_by is None
