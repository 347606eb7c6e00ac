"""Outputs with few distinct values are located by their bits, and scores do not change.  No test fails by chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, Pair, audit, batched
from dpaudit.outputs import Outputs, Recurring, Timed


def known(*arrays: Any) -> Recurring | None:
    return Recurring.of(*(Outputs.read(array) for array in arrays))


@pytest.mark.parametrize(
    "outputs",
    [
        np.array([3, -1, 3, 7, 2**62]),
        np.array([True, False, True]),
        np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324]),
        np.array([[1.5, 2.0], [1.5, -2.0], [3.0, 2.0]]),
        np.array([[0, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=np.int8),
        np.array([1.0, 2.0], dtype=np.float32),
    ],
    ids=["integers", "booleans", "floats", "pairs", "bits", "single precision"],
)
def test_every_value_is_found_again(outputs: Any) -> None:
    recurring = known(outputs[:1], outputs[1:])
    assert recurring is not None
    places = recurring.places(Outputs.read(outputs))
    assert places is not None
    assert np.asarray(recurring.values.array)[places].tobytes() == outputs.tobytes()
    assert len(recurring.values) == len({row.tobytes() for row in outputs})


def test_values_that_have_not_occurred_are_new() -> None:
    recurring = known(np.array([[0, 1], [1, 0]]))
    assert recurring is not None
    places = recurring.places(Outputs.read(np.array([[0, 1], [0, 0], [1, 0], [5, 1], [1, 1]])))
    assert places is not None
    assert (places < 0).tolist() == [False, True, False, True, True]


def test_outputs_of_another_kind_have_no_place() -> None:
    recurring = known(np.array([0, 1]))
    assert recurring is not None
    for other in (np.array([0.0, 1.0]), np.array([[0, 1]]), np.array([0, 1], dtype=np.int32), [0, 1], ["a"]):
        assert recurring.places(Outputs.read(other)) is None


@pytest.mark.parametrize(
    "outputs",
    [
        [0, 1, 0],  # each output of a list has its own type
        np.arange(1000.0),
        np.array([[i, j] for i in range(30) for j in range(30)]),
        [Timed(0, 0.1), Timed(1, 0.1)],
        np.zeros((5, 0)),
        ["yes", "no"],
    ],
    ids=["list", "many values", "many combinations", "timed", "empty rows", "labels"],
)
def test_other_outputs_are_scored_one_by_one(outputs: Any) -> None:
    assert known(outputs) is None


@batched
def responses(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
    return np.column_stack([(rng.random(n) < 0.3 + 0.4 * dataset[0]).astype(int), rng.geometric(0.5, n)])


def test_an_audit_without_recurring_values_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def result() -> Any:
        return audit(responses, GaussianDP(1.5), Pair([0], [1]), trials=800, seed=4, confidence=0.95)

    quick = result()
    monkeypatch.setattr(Recurring, "of", lambda *seen: None)
    plain = result()
    assert quick.evidence.fingerprint() == plain.evidence.fingerprint()
    assert quick.e_value == plain.e_value
