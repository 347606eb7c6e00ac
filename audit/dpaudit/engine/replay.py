"""The replay of an audit's witness on fresh runs.

Attacks learn again, in the same way and from as many fresh runs of the witness's pair as in the audit.  Then the score
is frozen with the witness's threshold on the likelihood ratio, and further runs are counted.  The region does not
depend on these runs, so the p-value is exact: `inference.fixed.exact_binomial`.  A sequential audit stops at a
favourable moment, so its counts look better on average than fresh counts.

**When a violation is confirmed.**  A replay confirms a violation at p <= 0.001, or at the audit's own significance if
this significance is smaller.  An audit at 95 % may call one true claim in twenty violated.  At the same level, replays
might confirm one in twenty of these false alarms.

Theorem (two replays, and several interim analyses):
    A replay with `extend` tests the counts of all runs so far after n, 2n, 4n, ... runs per dataset, which are numbers
    fixed beforehand.  Let p_k be the exact p-value at interim analysis k = 1, 2, ...  The p-value of this replay is the
    least 2^(k + 1) p_k so far.  The p-value of a replay without `extend` is 2 p_1.  If the claim is true, one of two
    replays has a p-value of at most s with probability at most s, for every s and whenever they stop.

Proof:
    P[p_k <= s 2^-(k + 1)] <= s 2^-(k + 1) for each k, since region and number of runs do not depend on the outputs
    counted.  So each replay has a p-value of at most s with probability at most s/2, and the sum over two replays is at
    most s (union bound).  The second replay may depend on the outcome of the first one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.arguments import check_neighbours, pairs_of
from dpaudit.engine.collector import Collector, ProgressCallback, Turn
from dpaudit.engine.fresh_region import frozen_threshold, tell
from dpaudit.engine.fresh_runs import FreshRuns
from dpaudit.engine.new_collector import new_collector
from dpaudit.engine.progress_line import shown
from dpaudit.engine.provenance import changed_since
from dpaudit.engine.replay_agreement import attack_changes, pair_differences, pair_of
from dpaudit.engine.replay_outcome import CONFIRMED, Replay, level_of
from dpaudit.engine.replay_runs import DOUBLINGS, MAX_RUNS, runs_of_replay, witness_with_region
from dpaudit.inference.fixed.confirming import runs_to_confirm
from dpaudit.learning import FewValues, scores_frequencies
from dpaudit.learning.attack import Attack
from dpaudit.learning.blocks import Block
from dpaudit.mechanisms.error_state import own_error_state
from dpaudit.pairs.pair import Pair
from dpaudit.result.checks import contradictions, unchecked
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Witness
from dpaudit.sampling.fresh_process import NotPossible
from dpaudit.sampling.runs import ExecutionSettings
from dpaudit.sampling.streams import fresh_seed
from dpaudit.settings.audit import DEFAULTS

__all__ = ["CONFIRMED", "Replay", "contradictions", "replay", "unchecked"]

_LOOKS = DOUBLINGS + 1  # maximum number of interim analyses with `extend`
_POWER = 0.9  # probability with which the suggested number of runs confirms a violation


@own_error_state()
def replay(
    result: AuditResult,
    mechanism: object,
    pairs: Pair | Iterable[Pair],
    *,
    attacks: str | Attack | Sequence[str | Attack] = DEFAULTS.attacks,
    trials: int | None = None,
    extend: bool = False,
    seed: int | None = None,
    jobs: int = DEFAULTS.jobs,
    execution: ExecutionSettings | None = None,
    progress: ProgressCallback | bool | None = None,
) -> Replay:
    """Count fresh runs in the region of a result's witness, and compare them with the result.

    Args:
        result: A finished audit with a witness.
        mechanism: The mechanism, as in the audit.
        pairs: The pairs, as in the audit; only the witness's pair is used.
        attacks: The attacks, as in the audit.
        trials: Runs per dataset on which the region is counted.  If None, the number is that of the witness, or four
            times that number for a violation, and at least 1,000.  Before these runs, the attacks learn from other
            fresh runs.  Their number is that of the audit for this pair, and at least 200.  If the result states more
            runs than its evidence supports, `trials` is required.
        extend: Whether to double the counted runs, up to 64 times `trials`, until they refute the claim or show no sign
            of a violation.  The p-value is corrected for the interim analyses; see the theorem in this module.
        seed: Seed of the fresh randomness; None draws a fresh seed.  The seed of a fixed audit is refused, because the
            replay would count the runs of the audit again.
        jobs: Number of processes, as in the audit.
        execution: The audit's `observe_time`, `failures` and `timeout`.
        progress: True to show a line with the time left, or a function that is called after each block of runs.

    Returns:
        The fresh counts and their exact p-value, together with the result.

    Raises:
        TypeError: If `pairs` is neither a pair nor an iterable of pairs.
        ValueError: If the result has no witness that can be replayed, if the witness's pair is not among `pairs`, if
            `trials` < 1, if `seed` is the seed of a fixed audit, or if the result counts more runs than it made.  The
            error is also raised if the mechanism refuses the pair, or if `trials` is None and the result states more
            runs than its evidence supports.
        MechanismError: If the mechanism fails before anything was measured.
    """
    given = pairs_of(pairs)
    witness = _witness_of(result, execution)
    contradicted = tuple(contradictions(result))  # checked before any run
    runs = runs_of_replay(result, witness, trials)
    learn_from, trials = runs.learned, runs.counted
    pair = pair_of(witness, given)
    check_neighbours(mechanism, [pair], result.claim)
    if seed is None:
        seed = fresh_seed()
    elif not result.evidence.anytime and seed == result.provenance.seed:
        # with the seed of a sequential audit, attacks would only learn from the same runs again
        raise ValueError(
            f"seed {seed} is the seed of the audit, so its runs would be counted again; give another seed or no seed"
        )
    tested = result.claim.symmetrized()
    execution, planned = execution or ExecutionSettings(), result.evidence.planned
    # the planned violation may have been edited, but it affects only what attacks learn before the fresh counts
    collector = new_collector(mechanism, [pair], attacks, learn_from + trials, seed, jobs, execution, tested, planned)
    _score_few_values(collector, result)
    # before any run, as in the audit: a run may import more modules
    changes = [*changed_since(result.provenance, mechanism), *pair_differences(result, pair)]
    changes += attack_changes(result, collector.learners[0].attacks)
    stated = result.provenance.second_stage_trials or 0
    second_stage_trials = stated if 0 < stated < learn_from else 0  # an edited file may state an impossible number
    (learner,) = collector.learners
    with shown(progress, result.name) as told:
        _learn(collector, learn_from - second_stage_trials, told)
        if second_stage_trials and learner.max_second_stage_trials:
            learner.fit_second_stage(_second_stage_blocks(collector, second_stage_trials, told))
        threshold = frozen_threshold(learner, witness.last_bin, witness)
        fresh = FreshRuns(collector, 0, threshold, "replay")
        found = _looks(fresh, tested, trials, level_of(result), told, extend=extend)
    invalid = [*collector.dependence(), *found.invalid]
    return Replay(
        result=result,
        counts=fresh.counts,
        learned_from=collector.trials,
        p_value=min(1.0, found.p_value) if not invalid else 1.0,
        seed=seed,
        contradictions=contradicted,
        changes=tuple(changes),
        warnings=(*learner.warnings, *invalid, *found.notes),
        looks=found.number,
        valid=not invalid,
        unchecked=unchecked(result),
        runs_needed=found.runs_needed,
    )


def _score_few_values(collector: Collector, result: AuditResult) -> None:
    """Let frequencies score outputs with few values, as in a sequential audit."""
    (learner,) = collector.learners
    if result.evidence.anytime and scores_frequencies(learner.attacks):
        learner.few_values = FewValues(result.claim.symmetrized())


class _Looks(NamedTuple):
    """The outcome of all interim analyses of the fresh counts."""

    number: int  # number of interim analyses
    p_value: float  # corrected for two replays and all interim analyses; see the theorem in this module
    runs_needed: float  # estimated fresh runs per dataset for a decision; inf if there is no sign of a violation
    invalid: list[str]  # why the counts prove nothing
    notes: list[str]  # further warnings


def _looks(
    fresh: FreshRuns,
    tested: TradeoffFunction,
    trials: int,
    level: float,
    progress: ProgressCallback | None,
    *,
    extend: bool,
) -> _Looks:
    """Count `trials` runs and test the counts; if `extend`, double the runs until the test decides or is hopeless."""
    looks, p_value, made, began = 0, 1.0, 0, fresh.collector.trials
    while True:
        looks += 1
        until, share = trials * 2 ** (looks - 1), 2.0 ** (looks + extend)  # share of the level; see the theorem
        allowed = began + until

        def told(runs: int, before: int = began + made, allowed: int = allowed) -> None:
            tell(before + runs, allowed, progress)

        invalid: list[str] = []
        try:
            fresh.more(until - made, tested, level / share, told)
            invalid = fresh.doubts(tested, level / share)
        except NotPossible as error:
            invalid = [str(error)]
        made = until
        p_value = min(p_value, share * fresh.p_value(tested))
        needed = runs_to_confirm(tested, fresh.rates, fresh.counts.n0, level=level / 2, power=_POWER, most=MAX_RUNS)
        hopeless = looks > 1 and math.isinf(needed)
        if not extend or invalid or p_value <= level or hopeless or looks == _LOOKS:
            notes = [f"fresh runs were made in this process only: {fresh.why}"] if fresh.why and not invalid else []
            return _Looks(looks, p_value, needed, invalid, notes)


def _witness_of(result: AuditResult, execution: ExecutionSettings | None) -> Witness:
    """Return the witness to replay; raise ValueError if there is none, or if the arguments do not allow a replay."""
    witness = witness_with_region(result)
    if witness is None:
        raise ValueError(f"{result.name} has no witness that could be replayed (method {result.method})")
    if execution is not None and execution.observe_time:
        raise ValueError(
            f"{result.name} is about running times, which are not independent from run to run, so a region has no "
            "exact p-value; audit again with another seed instead"
        )
    return witness


def _second_stage_blocks(collector: Collector, trials: int, progress: ProgressCallback | None) -> list[Block]:
    until = collector.trials + trials
    found: list[Block] = []
    for block in collector.blocks(0, until):
        found.append(block)
        tell(collector.trials, collector.allowed, progress)
    return found


def _learn(collector: Collector, trials: int, progress: ProgressCallback | None) -> None:
    """Learn as an audit does: score each block before learning from it, in order to weight the attacks."""
    until = collector.allowed
    with collector.limited(trials):
        for _ in collector.learn(lambda: Turn(pair=0)):
            tell(collector.trials, until, progress)
