"""Confirms a refutation on fresh runs, and measures the size of the violation.

When the claim is refuted, attacks learn from a few further runs, the region is frozen, and a number of fresh runs is
fixed.  Then these runs are made in new processes, and counted.  `result.confirmation` states the theorem, and
`engine.fresh_runs` what the runs in new processes can see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector
from dpaudit.engine.fresh_runs import REPEATED, FreshRuns
from dpaudit.engine.witness import frozen_witness, sparse
from dpaudit.inference.fixed.regions import delta_of, threshold_for_claim, threshold_for_epsilon, threshold_for_mu
from dpaudit.inference.grid import bin_counts
from dpaudit.result.confirmation import Confirmation, ConfirmationOutcome
from dpaudit.result.values import Witness
from dpaudit.running.fresh_process import NotPossible

if TYPE_CHECKING:
    from dpaudit.settings import Confirm

LEAST = 1_000  # fresh runs on each dataset, unless the mechanism is slow


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
    """Make fresh runs of a pair on which the claim was refuted."""
    if asked == "never":
        return _without_runs(FreshRuns(collector, pair, 0), "the audit was told to make no fresh runs")
    if collector.sampler.execution.observe_time:
        words = "running times may depend on each other, so a region of them has no exact test"
        return Fresh(Confirmation(outcome="not confirmed", reason=words))
    proof, learner = collector.spent[pair], collector.learners[pair]
    wanted = asked if asked is not None else proof if collector.slow else max(LEAST, proof)
    runs = min(wanted, left)
    if runs < 1 or not learner.ready:
        words = "no run was left" if learner.ready else "nothing was learned"
        return _without_runs(FreshRuns(collector, pair, 0), words)
    if threshold is None:
        threshold = _threshold(collector, pair, tested, runs, significance)
    fresh = FreshRuns(collector, pair, threshold)
    try:
        fresh.more(runs, tested, significance)
    except KeyboardInterrupt:
        collector.interrupted = True
        return _without_runs(fresh, "the fresh runs were interrupted", runs)
    except NotPossible as error:
        return _without_runs(fresh, str(error), runs)
    return _judged(fresh, tested, significance, runs)


def _threshold(collector: Collector, pair: int, tested: TradeoffFunction, runs: int, significance: float) -> int:
    """Choose the region with the largest expected size, from the outputs that the attacks have learned from."""
    learner = collector.learners[pair]
    p, q = (bin_counts(learner.score(side)) for side in learner.outputs())
    delta = delta_of(tested)
    otherwise = threshold_for_claim(p, q, tested, trials=runs, significance=significance)
    if math.isnan(delta):
        return threshold_for_mu(p, q, trials=runs, significance=significance, otherwise=otherwise)
    return threshold_for_epsilon(p, q, delta=delta, trials=runs, significance=significance, otherwise=otherwise)


def _without_runs(fresh: FreshRuns, why: str, planned: int = 0) -> Fresh:
    if fresh.constant:
        return Fresh(Confirmation(outcome="contradicted", reason=f"{REPEATED}, and {why}", runs=planned))
    return Fresh(Confirmation(outcome="not confirmed", reason=why, runs=planned))


def _judged(fresh: FreshRuns, tested: TradeoffFunction, significance: float, runs: int) -> Fresh:
    """Judge the counts of the fresh runs."""
    if doubts := fresh.doubts(tested, significance):
        outcome: ConfirmationOutcome = "contradicted"
        found = Confirmation(outcome=outcome, reason=doubts[0], runs=runs, processes=fresh.processes)
        return Fresh(found)
    p_value, (alpha, beta), reason = fresh.p_value(tested), fresh.rates, ""
    if fresh.why:
        outcome, reason = "not confirmed", f"fresh runs were made in this process only: {fresh.why}"
    elif p_value <= significance:
        outcome = "confirmed"
    elif beta < float(tested.beta(alpha)):
        outcome = "consistent"
    else:
        outcome, reason = "not confirmed", "the fresh runs show no violation in this region"
    found = Confirmation(
        outcome=outcome, reason=reason, runs=runs, processes=fresh.processes, counts=fresh.counts, p_value=p_value
    )
    learner, pair = fresh.collector.learners[fresh.pair], fresh.collector.sampler.pairs[fresh.pair]
    witness = frozen_witness(learner, tested, fresh.scores, fresh.threshold, pair)
    return Fresh(found, replace(witness, scores=sparse(fresh.scores)))
