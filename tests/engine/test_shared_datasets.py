"""No run shares its dataset with another run or with the audit: every run gets a copy.

Seeds are fixed, so nothing here fails by chance.  Most tests compare the evidence with that of a correct version of the
same mechanism: all counts must be equal.
"""

import copy
import gc
import json
import math
import random
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from dpaudit import AuditResult, Pair, PureDP, audit, batched
from dpaudit.result.evidence import SequentialEvidence, fingerprint
from dpaudit.running.foreign import THIS_PROCESS
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.outcomes import detached

from ..unseeded import audit_unseeded
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


# --- observed running times, which make runs dependent


PAIR = Pair([0], [1], relation="replace_one")


@pytest.mark.chance
def test_running_times_that_have_nothing_to_do_with_the_data_refute_nothing() -> None:
    """The load drifts by design, as load, clock and caches do in practice.

    Fails by chance < 1 in 10**6.  The maximum wealth W of each audit has P[W >= x] <= 1/x, so 2 log W is at most a
    chi-squared variable with 2 degrees of freedom, and the sum of two has 4.  At a confidence of 1 - 1e-7, none of the
    two true claims is refuted.
    """

    def drifting(dataset: list[int], rng: np.random.Generator) -> float:
        rng.normal(size=100 + int(200 * (math.sin(time.perf_counter() * 30) + 1)))
        return float(rng.normal())

    attacks = ["logistic", "time", "time_and_output"]
    results = [
        audit_unseeded(drifting, PureDP(0.1), PAIR, attacks=attacks, trials=100, seed=seed, observe_time=True)
        for seed in range(2)
    ]
    assert 2 * sum(max(0.0, *result.history.log_e) for result in results) <= chi2.isf(5e-7, 2 * len(results))
    assert results[0].provenance.running_times == THIS_PROCESS
    evidence = results[0].evidence
    assert isinstance(evidence, SequentialEvidence)
    assert evidence.coin_selected
    assert 60 < evidence.trials * 2 < 100  # one output of each trial counts, after ten trials to learn from
    again = AuditResult.from_dict(json.loads(json.dumps(results[0].to_dict()))).evidence
    assert fingerprint(again) == fingerprint(evidence)
    with pytest.raises(ValueError, match="observe_time needs method sequential"):
        audit(drifting, "pure(epsilon=1)", PAIR, method="fixed", observe_time=True, seed=0, confidence=0.95)


@pytest.mark.chance
def test_copies_of_the_dataset_do_not_start_the_garbage_collector_during_a_run() -> None:
    """The mechanism allocates 350 objects, and never reads its dataset of 350 or 450 objects.

    Python's garbage collector starts after 700 allocations.  So without care, it would start in every run on d1 and in
    no run on d0.  Fails by chance < 1 in 10**6, as the claim is true.
    """

    def allocating(dataset: list[list[int]], rng: np.random.Generator) -> float:
        kept = [[i] for i in range(350)]
        return float(rng.random()) + 0 * len(kept)

    pair = Pair([[i] for i in range(350)], [[i] for i in range(450)])
    result = audit_unseeded(allocating, PureDP(0.5), pair, trials=200, attacks="time", observe_time=True)
    assert not result.violated


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_during_a_timed_run(enabled: bool) -> None:
    """A full collection visits all copies of the dataset, so its duration depends on their sizes."""
    states: list[bool] = []

    def mechanism(dataset: list[int], rng: np.random.Generator) -> float:
        states.append(gc.isenabled())
        return float(rng.normal())

    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        audit(mechanism, "gaussian(mu=1)", PAIR, trials=30, attacks="time", observe_time=True, seed=0)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert not any(states)


class Followed:
    """A dataset that records its copies."""

    alive: ClassVar[weakref.WeakSet["Followed"]] = weakref.WeakSet()
    copied: ClassVar[list[int]] = []

    def __init__(self, value: int) -> None:
        self.value = value

    def __deepcopy__(self, memo: object) -> "Followed":
        copy = Followed(self.value)
        Followed.alive.add(copy)
        Followed.copied.append(self.value)
        return copy


def test_both_datasets_are_copied_in_random_order_before_each_run() -> None:
    """Copies determine the state of caches and of memory, which must not depend on the dataset of the run."""
    seen: list[tuple[int, ...]] = []

    def mechanism(dataset: Followed, rng: np.random.Generator) -> float:
        held = Counter(copy.value for copy in Followed.alive)
        seen.append((dataset.value, *Followed.copied[-2:], held[0], held[1]))
        return float(rng.normal())

    pair = Pair(Followed(0), Followed(1), relation="replace_one")
    audit(mechanism, "gaussian(mu=1)", pair, trials=200, attacks="time", observe_time=True, seed=0)
    runs = seen[-300:]
    assert {run[3] - run[4] for run in runs} == {seen[0][3] - seen[0][4]}, "both copies live during the run"
    assert len({run[3:] for run in runs}) == 1, "earlier copies are gone"
    kinds = Counter(run[:3] for run in runs)
    assert set(kinds) == {(side, *order) for side in (0, 1) for order in ((0, 1), (1, 0))}
    assert min(kinds.values()) > 40


@pytest.mark.chance
def test_a_larger_record_is_not_revealed_by_the_time_to_copy_it() -> None:
    """The mechanism reads only its own memory.  Fails by chance < 1 in 10**6, as the claim is true.

    When only one dataset was copied before a run, such claims were refuted after 134 to 341 runs.
    """
    own = {i: [i] for i in range(3_000)}

    def mechanism(dataset: object, rng: np.random.Generator) -> float:
        return float(rng.random()) + 0 * sum(item[0] for item in own.values())

    pair = Pair([np.zeros(10)], [np.zeros(10), np.ones(100_000)])
    result = audit_unseeded(mechanism, PureDP(0.1), pair, trials=400, attacks="time", observe_time=True)
    assert not result.violated


def test_a_coin_decides_the_order_of_the_runs_and_the_first_counts() -> None:
    order: list[int] = []

    def mechanism(dataset: list[int], rng: np.random.Generator) -> float:
        order.append(dataset[0])
        return float(rng.normal() + 3 * dataset[0])

    result = audit(mechanism, "gaussian(mu=1)", PAIR, trials=300, attacks="logistic", observe_time=True, seed=0)
    assert result.violated
    pairs = np.array(order).reshape(-1, 2)
    assert np.all(pairs.sum(axis=1) == 1)
    assert 0.2 < pairs[:, 0].mean() < 0.8
    counted = result.evidence.counts[0].sum(axis=1)  # type: ignore[attr-defined]
    first = pairs[10 : result.trials_used, 0]  # the first ten trials are only learned from
    assert counted.tolist() == [np.sum(first == 0), np.sum(first == 1)]
