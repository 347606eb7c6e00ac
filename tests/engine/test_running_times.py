"""Observed running times, which make runs dependent."""

from __future__ import annotations

import gc
import json
import math
import time
import weakref
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import chi2

from dpaudit import AuditResult, Pair, PureDP, audit
from dpaudit.result.evidence import SequentialEvidence, fingerprint
from dpaudit.running.foreign import THIS_PROCESS

from ..unseeded import audit_unseeded

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

    alive: ClassVar[weakref.WeakSet[Followed]] = weakref.WeakSet()
    copied: ClassVar[list[int]] = []

    def __init__(self, value: int) -> None:
        self.value = value

    def __deepcopy__(self, memo: object) -> Followed:
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
