"""No run shares its dataset with another run or with the audit: every run gets a copy.

Seeds are fixed, so nothing here fails by chance.  Most tests compare the evidence with that of a correct version of the
same mechanism: all counts must be equal.
"""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import Pair, batched
from dpaudit.result.evidence import fingerprint
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.outcomes import detached

from .shared_state import FILE, Rng, audited


@dataclass
class Table:
    rows: list[list[float]] = field(default_factory=list)


DATASETS: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    # d0, d1, and a function that returns a view of the numbers in a dataset
    "array": (np.zeros(2), np.array([0.0, 1.0]), lambda dataset: dataset),
    "list of arrays": ([np.zeros(2)], [np.array([0.0, 1.0])], lambda dataset: dataset[0]),
    "dict": ({"x": np.zeros(2)}, {"x": np.array([0.0, 1.0])}, lambda dataset: dataset["x"]),
    "object array": (
        np.array([np.zeros(2), None], dtype=object),
        np.array([np.ones(2), None], dtype=object),
        lambda dataset: dataset[0],
    ),
}


def adds(get: Callable[[Any], Any]) -> Callable[..., float]:
    def release(dataset: Any, rng: Rng) -> float:
        values = get(dataset)
        values += rng.normal(size=values.shape)  # in place
        return float(values.sum())

    return release


def adds_to_a_copy(get: Callable[[Any], Any]) -> Callable[..., float]:
    changes = adds(get)
    return lambda dataset, rng: changes(copy.deepcopy(dataset), rng)


@pytest.mark.parametrize("kind", DATASETS)
def test_a_mechanism_that_changes_its_dataset_in_place_gets_a_fresh_copy_in_every_run(kind: str) -> None:
    d0, d1, get = DATASETS[kind]
    before = repr((d0, d1))
    changes = audited(adds(get), Pair(d0, d1))
    assert repr((d0, d1)) == before
    copies = audited(adds_to_a_copy(get), Pair(d0, d1))
    assert fingerprint(changes.evidence) == fingerprint(copies.evidence)
    assert changes.warnings[0].startswith("the mechanism changes its dataset in place (d0 of pair ")
    assert changes.warnings[0].endswith("); every run got a fresh copy")
    assert copies.warnings == ()


def sort(dataset: list[float]) -> None:
    dataset.sort()
    dataset.append(1.0)


IN_PLACE: dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], float]]] = {
    # dataset, function that changes it in place, function that measures its size
    "list": ([2.0, 1.0], sort, len),
    "list of lists": ([[1.0], [2.0]], lambda dataset: dataset[0].append(1.0), lambda dataset: len(dataset[0])),
    "list of dicts": ([{"a": 1}], lambda dataset: dataset[0].update(b=1), lambda dataset: len(dataset[0])),
    "the same list twice": ([[1.0]] * 2, lambda dataset: dataset[0].append(1.0), lambda dataset: len(dataset[1])),
    "set": ({1, 2}, lambda dataset: dataset.add(len(dataset) + 1), len),
    "tuple": (([1.0], 2), lambda dataset: dataset[0].append(1.0), lambda dataset: len(dataset[0])),
    "frame": (
        pd.DataFrame({"a": [1.0, 2.0]}),
        lambda dataset: dataset.__setitem__("a", dataset["a"] + 1),
        lambda dataset: dataset["a"].sum(),
    ),
    "frame of lists": (
        pd.DataFrame({"a": [[1.0], [2.0]]}),
        lambda dataset: dataset["a"][0].append(1.0),
        lambda dataset: len(dataset["a"][0]),
    ),
    "object": (Table([[1.0]]), lambda dataset: dataset.rows.append([1.0]), lambda dataset: len(dataset.rows)),
}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {}) for kind in IN_PLACE),
        *(("list of lists", one) for one in ({"observe_time": True}, {"batched": True}, {"failures": "retry"})),
    ],
    ids=str,
)
def test_datasets_of_all_kinds_are_copied_for_every_run(kind: str, options: dict[str, Any]) -> None:
    dataset, change, size = IN_PLACE[kind]
    sizes = set()

    def release(dataset: Any, rng: Rng) -> float:
        sizes.add(size(dataset))
        change(dataset)
        if options.get("failures") and rng.random() < 0.1:
            raise OSError("again")
        return float(rng.normal())

    def many(dataset: Any, n: int, rng: Rng) -> list[float]:
        first = release(dataset, rng)
        return [first, *rng.normal(size=n - 1).tolist()]

    together = options.get("batched")
    terms = {name: value for name, value in options.items() if name != "batched"}
    other = detached(dataset)
    change(other)
    wanted = {size(dataset), size(other)}
    result = audited(
        batched(many) if together else release, Pair(dataset, other), trials=30, attacks="median_clipped", **terms
    )
    assert sizes == wanted
    assert any("changes its dataset in place (d0 of pair" in words for words in result.warnings), result.warnings


def test_datasets_are_copied_in_worker_processes() -> None:
    mechanism = PythonMechanism(f"{FILE}:changes_its_dataset")
    here, there = (audited(mechanism, trials=60, jobs=jobs) for jobs in (1, 2))
    assert fingerprint(here.evidence) == fingerprint(there.evidence)
    assert any("changes its dataset in place" in words for words in there.warnings)


def test_whoever_changes_the_users_datasets_changes_no_audit() -> None:
    d0, d1 = [0.0], [1.0]

    def meddles(dataset: list[float], rng: Rng) -> float:
        d1[0] = 0.0
        return dataset[0] + float(rng.normal())

    quiet = audited(lambda dataset, rng: dataset[0] + float(rng.normal()))
    assert fingerprint(audited(meddles, Pair(d0, d1)).evidence) == fingerprint(quiet.evidence)


@pytest.mark.parametrize("dataset", [(i for i in range(3)), [threading.Lock()]], ids=["generator", "lock"])
def test_a_dataset_that_cannot_be_copied_is_refused_before_the_first_run(dataset: Any) -> None:
    def never(dataset: Any, rng: Rng) -> float:
        raise AssertionError

    with pytest.raises(ValueError, match=r"^d1 of pair .* cannot be copied: .*\.  Every run gets a new copy, so"):
        audited(never, Pair([], dataset))


class Seeds:
    """An attack that seeds numpy's global random state, as much code does."""

    name = "seeds"

    def __init__(self, seed: int | None) -> None:
        self.seed = seed

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Callable[[Any], Any]:
        if self.seed is not None:
            np.random.seed(self.seed)  # noqa: NPY002
        return lambda outputs: np.asarray(outputs, dtype=float)


def legacy(dataset: list[float], rng: Rng) -> float:
    return dataset[0] + float(np.random.normal())  # noqa: NPY002


def test_an_attack_that_seeds_numpy_does_not_make_the_mechanism_repeat_itself() -> None:
    quiet = audited(legacy, attacks=Seeds(None))
    assert fingerprint(audited(legacy, attacks=Seeds(0)).evidence) == fingerprint(quiet.evidence)


def test_a_fixture_that_seeds_numpy_does_not_decide_what_the_mechanism_draws() -> None:
    outputs = set()
    for seed in (1, 2):
        np.random.seed(0)  # noqa: NPY002
        before = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
        outputs.add(audited(legacy, seed=seed).environment["outputs"])
        assert np.random.get_state()[1].tolist() == before  # type: ignore[index]  # noqa: NPY002
    assert len(outputs) == 2
    assert audited(legacy, seed=1).environment["outputs"] in outputs


class OwnGenerator:
    """A dataset that holds a random generator."""

    def __init__(self, value: float) -> None:
        self.value, self.rng = value, np.random.default_rng(7)


@pytest.mark.parametrize(
    "datasets",
    [
        (OwnGenerator(0.0), OwnGenerator(1.0)),
        ({"value": 0, "noise": [random.Random(1)]}, {"value": 1, "noise": [random.Random(2)]}),
        ((0, np.random.RandomState(1)), (1, np.random.RandomState(2))),
    ],
)
def test_a_dataset_that_holds_a_random_generator_is_refused(datasets: tuple[Any, Any]) -> None:
    """Every run would get a copy in the same state, so a correct mechanism would look like a fixed seed."""

    def release(dataset: Any, rng: Rng) -> float:
        return float(dataset.value + dataset.rng.normal())

    with pytest.raises(ValueError, match="d0 of pair p contains a random generator"):
        audited(release, Pair(*datasets, label="p"))
