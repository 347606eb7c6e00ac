"""The replay of an audit's witness on fresh runs.

Attacks learn again, in the same way and from as many fresh runs of the witness's pair.  Then the score is frozen with
the witness's threshold, and further runs are counted.  The region does not depend on these runs, so the p-value is
exact: `inference.fixed.exact_binomial`.  A sequential audit stops at a favourable moment, so its counts look better.

A replay confirms a violation at p <= 0.001, or at the audit's own significance if this is smaller: an audit at 95 % may
call one true claim in twenty violated, and replays at this level might confirm one in twenty of these false alarms.

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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.arguments import check_neighbours, pairs_of
from dpaudit.engine.collector import Collector, Progress, ProgressCallback, Turn, new_collector
from dpaudit.engine.fresh_runs import FRESH_RUNS, FreshRuns
from dpaudit.engine.progress_line import shown
from dpaudit.engine.replay_outcome import CONFIRMED, Replay, contradictions, differs, level_of
from dpaudit.inference.fixed.exact_binomial import runs_to_confirm
from dpaudit.inference.grid import bin_counts
from dpaudit.learning import FewValues, Learner, scores_frequencies
from dpaudit.learning.attack import Attack
from dpaudit.learning.blocks import Block
from dpaudit.pairs.pair import Pair, distinct
from dpaudit.result.evidence import planned_of
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Witness
from dpaudit.running.foreign import own_error_state
from dpaudit.running.fresh_process import NotPossible
from dpaudit.running.identity import changed_since, not_compared, of_code_and_data, public
from dpaudit.running.runs import ExecutionSettings
from dpaudit.running.sources import source_of
from dpaudit.running.streams import fresh_seed
from dpaudit.settings import DEFAULTS, check_trials

__all__ = ["CONFIRMED", "Replay", "replay"]

DOUBLINGS = 6  # maximum number of doublings of the counted runs with `extend`, so that 64 times the runs are counted
_TIMES = 4  # fresh runs per run of the witness: a sequential audit stops at a lucky moment, so effects shrink on replay
_CLEARLY = 3  # standard errors: if the rates differ by more from the witness's rates, another threshold is chosen


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
        mechanism: The mechanism, as in the audit; so are `attacks` and `jobs`.
        pairs: The pairs, as in the audit; only the witness's pair is used.
        trials: Runs per dataset on which the region is counted.  If None, the number is that of the witness, or four
            times that number for a violation, and at least 1,000.  Before these runs, the attacks learn from other
            fresh runs: as many as in the audit for this pair, and at least 200.
        extend: Whether to double the counted runs, up to 64 times `trials`, until they refute the claim or show no sign
            of a violation.  The p-value is corrected for the interim analyses; see the theorem in this module.
        seed: Seed of the fresh randomness; None draws a fresh seed.  The seed of a fixed audit is refused, because the
            replay would count the runs of the audit again.
        execution: The audit's `observe_time`, `failures` and `timeout`.
        progress: True to show a line with the time left, or a function that is called after each block of runs.

    Raises:
        TypeError: If `pairs` is neither a pair nor an iterable of pairs.
        ValueError: If the result has no witness that can be replayed, its pair is not among `pairs`, `trials` < 1,
            `seed` is the seed of a fixed audit, or the mechanism refuses the pair.
        MechanismError: If the mechanism fails before anything was measured.
    """
    given = pairs_of(pairs)
    witness = _witness_of(result, execution)
    runs = runs_of_replay(result, witness, trials)
    learn_from, trials = runs.learned, runs.counted
    pair = next((pair for pair in distinct(given) if str(pair) == witness.pair), None)
    if pair is None:
        raise ValueError(
            f"the witness belongs to the pair {witness.pair}, which is not among the given pairs: "
            f"{', '.join(map(str, given))}"
        )
    check_neighbours(mechanism, [pair], result.claim)
    if seed is None:
        seed = fresh_seed()
    elif not result.evidence.kind.anytime and seed == result.provenance.seed:
        # with the seed of a sequential audit, attacks would only learn from the same runs again
        raise ValueError(
            f"seed {seed} is the seed of the audit, so its runs would be counted again; give another seed or no seed"
        )
    tested = result.claim.symmetrized()
    execution, planned = execution or ExecutionSettings(), planned_of(result.evidence)
    collector = new_collector(mechanism, [pair], attacks, learn_from + trials, seed, jobs, execution, tested, planned)
    (learner,) = collector.learners
    if result.evidence.kind.anytime and scores_frequencies(learner.attacks):  # as in a sequential audit
        learner.few_values = FewValues(tested)
    changes, unknown = _changes(result, mechanism, pair, learner.attacks)  # before a run changes the mechanism
    second_stage_trials = result.provenance.second_stage_trials or 0
    with shown(progress, result.name) as told:
        _learn(collector, learn_from - second_stage_trials, second_stage_trials, told)
        threshold = frozen_threshold(learner, witness)
        fresh = FreshRuns(collector, 0, threshold, "replay")
        found = _looks(fresh, tested, trials, level_of(result), told, extend=extend)
    invalid = [*collector.dependence(), *found.invalid]
    return Replay(
        result=result,
        counts=fresh.counts,
        learned_from=collector.trials,
        p_value=min(1.0, found.p_value) if not invalid else 1.0,
        seed=seed,
        contradictions=contradictions(result),
        changes=changes,
        warnings=(*learner.warnings, *invalid, *found.notes, *unknown),
        looks=found.number,
        valid=not invalid,
        runs_needed=found.runs_needed,
    )


def _changes(
    result: AuditResult, mechanism: object, pair: Pair, attacks: Sequence[Attack]
) -> tuple[tuple[str, ...], list[str]]:
    """Return how code, datasets and attacks differ from those of the audit, and what cannot be compared."""
    stated, used = (", ".join(sorted(one.name for one in named)) for named in (result.attacks, attacks))
    found = [] if stated == used else [differs("attacks", stated, used)]
    now = public(of_code_and_data(mechanism, source_of(mechanism), [pair]))
    if result.provenance.identity is None:
        found.append("the result does not record the code and the datasets of its audit, so the replay may use others")
    else:
        words = changed_since(result.provenance.identity, now)
        found += [f"code or datasets have changed since the audit: {one}" for one in words]
    return tuple(found), [f"not compared with the audit: {one}" for one in not_compared(now)]


def frozen_threshold(learner: Learner, witness: Witness) -> int:
    """Return the last bin outside the region for a score that was learned again.  Counted runs have no influence.

    It is the witness's threshold, or the one with the closest rates if these clearly differ under the new score.
    """
    threshold = witness.last_bin
    scores = [bin_counts(learner.score(side)) for side in learner.outputs()] if learner.ready else []
    n = int(scores[0].sum()) if scores else 0
    if n == 0:
        return threshold
    alpha = 1 - np.cumsum(scores[0])[:-1] / n
    beta = np.cumsum(scores[1])[:-1] / n
    away = np.abs(alpha - witness.alpha) + np.abs(beta - witness.beta)
    error = sum(math.sqrt(rate * (1 - rate) / n) for rate in (witness.alpha, witness.beta))
    if away[threshold] <= away.min() + _CLEARLY * error:
        return threshold
    best = np.flatnonzero(away == away.min())
    return int(best[len(best) // 2])


def _tell(trials: int, until: int, progress: ProgressCallback | None) -> None:
    """Report the progress of a replay, whose evidence is counted only at the end."""
    if progress is not None:
        progress(Progress(trials=trials, allowed=until, log_e=math.nan, log_threshold=math.nan))


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
            _tell(before + runs, allowed, progress)

        invalid: list[str] = []
        try:
            fresh.more(until - made, tested, level / share, told)
            invalid = fresh.doubts(tested, level / share)
        except NotPossible as error:
            invalid = [str(error)]
        made = until
        p_value = min(p_value, share * fresh.p_value(tested))
        needed = runs_to_confirm(tested, fresh.counts.rates, fresh.counts.n0, level=level / 2)
        hopeless = looks > 1 and math.isinf(needed)
        if not extend or invalid or p_value <= level or hopeless or looks > DOUBLINGS:
            notes = [f"fresh runs were made in this process only: {fresh.why}"] if fresh.why and not invalid else []
            return _Looks(looks, p_value, needed, invalid, notes)


def _witness_of(result: AuditResult, execution: ExecutionSettings | None) -> Witness:
    """Return the witness to replay; raise ValueError if there is none, or if the arguments do not allow a replay."""
    witness = witness_with_region(result)
    if witness is None:
        raise ValueError(f"{result.name} has no witness that could be replayed (method {result.method})")
    if result.provenance.of_sessions:
        raise ValueError(
            f"{result.name} is about sessions: a pilot chose their analysts, and reports are tested on thinned "
            "transcripts; audit again with another seed instead"
        )
    if execution is not None and execution.observe_time:
        raise ValueError(
            f"{result.name} is about running times, which are not independent from run to run, so a region has no "
            "exact p-value; audit again with another seed instead"
        )
    return witness


def _learn(collector: Collector, trials: int, second_stage: int, progress: ProgressCallback | None) -> None:
    """Learn as an audit does: score each block before learning from it, in order to weight the attacks."""
    (learner,), until = collector.learners, collector.allowed
    with collector.limited(trials):
        for _ in collector.learn(lambda: Turn(pair=0)):
            _tell(collector.trials, until, progress)
    if second_stage and learner.max_second_stage_trials:
        blocks: list[Block] = []
        for block in collector.blocks(0, collector.trials + second_stage):
            blocks.append(block)
            _tell(collector.trials, until, progress)
        learner.fit_second_stage(blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRuns:
    """The numbers of runs of a replay, per dataset, and the origin of each number in words."""

    learned: int  # runs from which attacks learn
    counted: int  # runs on which the region is counted at the first interim analysis
    learned_from: str
    counted_from: str

    def describe(self, *, extend: bool) -> str:
        """Describe the numbers in a phrase."""
        most = f", with --extend up to {self.counted * 2**DOUBLINGS:,}" if extend else ""
        return (
            f"{self.learned + self.counted:,} runs per dataset: {self.learned:,} to learn from ({self.learned_from}) "
            f"and {self.counted:,} to count ({self.counted_from}){most}"
        )


def witness_with_region(result: AuditResult) -> Witness | None:
    """Return the witness that a replay tests; None if there is none, as guesses about canaries have no region."""
    return result.witness if result.evidence.kind.of_pairs else None


def runs_of_replay(result: AuditResult, witness: Witness, trials: int | None) -> ReplayRuns:
    """Determine the numbers of runs of a replay."""
    before = 0 if result.evidence.kind.anytime else result.evidence.trials  # runs after the score was frozen
    used = [(row.trials - before, "as many as the audit used") for row in result.pairs if row.label == witness.pair]
    learned, learned_from = max([(200, "the minimum"), *used])
    if trials is not None:
        counted, counted_from = check_trials(trials), "as requested"
    else:
        times = _TIMES if result.violated else 1
        origin = f"{times} times the witness's" if times > 1 else "as many as the witness's"
        counted, counted_from = max((FRESH_RUNS, "the minimum"), (times * witness.counts.n0, origin))
    return ReplayRuns(learned=learned, counted=counted, learned_from=learned_from, counted_from=counted_from)
