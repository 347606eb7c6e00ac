"""Confirms a refutation on fresh runs, and measures the size of the violation.

When the claim is refuted, attacks learn from a few further runs, the region is frozen, and a number of fresh runs is
fixed.  Then these runs are made in new processes, and counted.  `result.confirmation` states the theorem, and
`engine.fresh_runs` what the runs in new processes can see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector
from dpaudit.engine.fresh_runs import PROCESSES, WAY_OUT, FreshRuns, processes_for
from dpaudit.engine.witness import frozen_witness
from dpaudit.inference.fixed.regions import delta_of, threshold_for_claim, threshold_for_epsilon, threshold_for_mu
from dpaudit.inference.grid import bin_counts
from dpaudit.inference.independence import MIN_RUNS
from dpaudit.result.confirmation import Confirmation
from dpaudit.result.values import Witness
from dpaudit.sampling.fresh_process import NotPossible

if TYPE_CHECKING:
    from dpaudit.settings.audit import Confirm

LEAST = 1_000  # fresh runs on each dataset, unless the mechanism is slow
_SLOW = 0.01  # seconds per run from which on a mechanism is slow


@dataclass(frozen=True, slots=True)
class Fresh:
    """The outcome of the fresh runs, and the region that they count."""

    confirmation: Confirmation
    witness: Witness | None = None


def confirm(
    collector: Collector,
    pair: int,
    tested: TradeoffFunction,
    significance: float,
    *,
    asked: Confirm,
    left: int,
    threshold: int | None = None,
) -> Fresh:
    """Make fresh runs of a pair on which the claim was refuted.

    Args:
        collector: The collector after the refutation.
        pair: Index of the pair with the strongest evidence.
        tested: The claim, symmetrized.
        significance: Significance of the audit, between 0 and 1.
        asked: The argument `confirm` of `audit`.
        left: Maximum number of further runs on each dataset.
        threshold: Last bin outside a region that was frozen before; None if the region is chosen here.
    """
    if asked == "never":
        return Fresh(Confirmation(outcome="not confirmed", reason="the audit was told to make no fresh runs"))
    if collector.sampler.execution.observe_time:
        words = "running times may depend on each other, so a region of them has no exact test"
        return Fresh(Confirmation(outcome="not confirmed", reason=words))
    proof = collector.spent[pair]
    if threshold is None:
        left -= _learned(collector, pair, min(left, MIN_RUNS - proof))
    learner = collector.learners[pair]
    wanted = asked if asked is not None else proof if collector.sampler.seconds_per_run > _SLOW else max(LEAST, proof)
    runs = min(wanted, left)
    if runs < 1 or not learner.ready:
        words = "no run was left" if learner.ready else "no score was learned"
        return _without_runs(FreshRuns(collector, pair, 0), words)
    if threshold is None:
        threshold = _threshold(collector, pair, tested, runs, significance)
    fresh = FreshRuns(collector, pair, threshold)
    processes = min(runs, processes_for(tested, significance) if fresh.constant else PROCESSES)
    why = ""
    try:
        if isinstance(collector.sent, NotPossible):
            raise collector.sent
        fresh.make(runs, max(processes, min(runs, PROCESSES)))
    except NotPossible as error:
        why = str(error)
        fresh = FreshRuns(collector, pair, threshold)
        fresh.make_here(runs)
    except KeyboardInterrupt:
        return _without_runs(fresh, "the fresh runs were interrupted")
    return _judged(fresh, tested, significance, runs, why)


def _learned(collector: Collector, pair: int, runs: int) -> int:
    """Let the attacks learn from up to `runs` further runs, which are no evidence; return the number of these runs."""
    before = collector.spent[pair]
    while collector.spent[pair] - before < runs and pair not in collector.dropped:
        with collector.limited(collector.trials + runs - (collector.spent[pair] - before)):
            if not collector.learn_block(pair):
                break
    return collector.spent[pair] - before


def _threshold(collector: Collector, pair: int, tested: TradeoffFunction, runs: int, significance: float) -> int:
    """Choose the region with the largest expected size, from the outputs that the attacks have learned from."""
    learner = collector.learners[pair]
    pilot = [bin_counts(learner.score(side)) for side in learner.outputs()]
    delta = delta_of(tested)
    otherwise = threshold_for_claim(*pilot, tested, trials=runs, significance=significance)
    if math.isnan(delta):
        return threshold_for_mu(*pilot, trials=runs, significance=significance, otherwise=otherwise)
    return threshold_for_epsilon(*pilot, delta=delta, trials=runs, significance=significance, otherwise=otherwise)


def _without_runs(fresh: FreshRuns, why: str) -> Fresh:
    if fresh.constant:
        return Fresh(Confirmation(outcome="contradicted", reason=f"{_REPEATED}, and {why}"))
    return Fresh(Confirmation(outcome="not confirmed", reason=why))


_REPEATED = "no process varied its outputs, so each process made one observation of each dataset"


def _judged(fresh: FreshRuns, tested: TradeoffFunction, significance: float, runs: int, why: str) -> Fresh:
    """Judge the counts of the fresh runs; `why` says why they were made in the process of the audit, if they were."""
    counts, p_value = fresh.counts, fresh.p_value(tested)
    common = {"runs": runs, "processes": fresh.processes}
    if fresh.processes and (words := fresh.difference()):
        return Fresh(Confirmation(outcome="contradicted", reason=words, **common))
    if fresh.constant and p_value > significance:
        words = f"{_REPEATED}, and {fresh.processes or 1} are too few to refute the claim.  {WAY_OUT}"
        return Fresh(Confirmation(outcome="contradicted", reason=words, **common))
    alpha, beta = counts.false_positives / counts.n0, counts.false_negatives / counts.n1
    if why:
        outcome, reason = "not confirmed", f"fresh runs were made in this process only: {why}"
    elif p_value <= significance:
        outcome, reason = "confirmed", ""
    elif beta < float(tested.beta(alpha)):
        outcome, reason = "consistent", ""
    else:
        outcome, reason = "not confirmed", "the fresh runs show no violation in this region"
    found = Confirmation(outcome=outcome, reason=reason, counts=counts, p_value=p_value, **common)
    label = str(fresh.collector.sampler.pairs[fresh.pair])
    learner = fresh.collector.learners[fresh.pair]
    return Fresh(found, frozen_witness(learner, tested, fresh.scores, fresh.threshold, label))
