"""Observed running times, which make runs dependent."""

from __future__ import annotations

import gc
import json
import math
import time

import numpy as np
import pytest
from scipy.stats import chi2

from dpaudit import AuditResult, Pair, PureDP, audit
from dpaudit.mechanisms.timing import THIS_PROCESS
from dpaudit.result.evidence import SequentialEvidence

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

    results = [
        audit_unseeded(drifting, PureDP(0.1), PAIR, trials=100, seed=seed, observe_time=True) for seed in range(2)
    ]
    assert 2 * sum(max(0.0, *result.history.log_e) for result in results) <= chi2.isf(5e-7, 2 * len(results))
    assert results[0].provenance.running_times == THIS_PROCESS
    evidence = results[0].evidence
    assert isinstance(evidence, SequentialEvidence)
    assert evidence.coin_selected
    assert 60 < evidence.trials * 2 < 100  # one output of each trial counts, after ten trials to learn from
    again = AuditResult.from_dict(json.loads(json.dumps(results[0].to_dict()))).evidence
    assert again.fingerprint() == evidence.fingerprint()
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
        audit(mechanism, "gaussian(mu=1)", PAIR, trials=50, observe_time=True, confidence=0.95, seed=0)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert not any(states)


def test_coins_decide_which_runs_count_and_their_order() -> None:
    order: list[int] = []

    def mechanism(dataset: list[int], rng: np.random.Generator) -> float:
        order.append(dataset[0])
        return float(rng.normal() + 3 * dataset[0])

    result = audit(mechanism, "gaussian(mu=1)", PAIR, trials=300, observe_time=True, confidence=1 - 1e-12, seed=0)
    assert result.violated
    pairs = np.array(order).reshape(-1, 2)
    assert np.all(pairs.sum(axis=1) == 1)
    assert 0.2 < pairs[:, 0].mean() < 0.8
    counted = result.evidence.counts[0].sum(axis=1)  # type: ignore[attr-defined]
    assert counted.sum() == result.trials_used - 10
    assert counted.min() > 0.3 * counted.sum()
