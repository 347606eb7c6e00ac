"""Determines how many runs a replay makes.

The numbers come from the result, whose file anybody may have edited.  An edited file could state 2**53 runs, and the
replay would not end.  So a replay without `trials` makes at most as many runs as the evidence of the result supports,
and at most `MAX_RUNS`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.result.checks import pair_counts
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Witness
from dpaudit.settings.limits import MAX_TRIALS, check_trials

DOUBLINGS = 6  # maximum number of doublings of the counted runs with `extend`, so that 64 times the runs are counted
_TIMES = 4  # fresh runs per run of the witness: a sequential audit stops at a lucky moment, so effects shrink on replay
_MIN_TRIALS = 1_000  # minimum number of counted runs per dataset
_MIN_LEARNED = 200  # minimum number of runs per dataset to learn from
# Runs per dataset that any result supports.  An audit that was interrupted during its pilot counts few or no outputs.
_SUPPORTED_ALWAYS = 1_000_000
# Runs per dataset that a counted output supports.  For each counted output of the audit, a replay makes about five runs
# at most: one to learn from, and four to count.  The rest is a reserve for outputs that the audit did not count.
_SUPPORTED_TIMES = 8
MAX_RUNS = 10**9  # runs per dataset; if a decision needs more, the fresh counts show no sign of a violation


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
    return result.witness if len(result.evidence.edges) else None


def runs_of_replay(result: AuditResult, witness: Witness, trials: int | None) -> ReplayRuns:
    """Determine the numbers of runs of a replay.

    Returns:
        The numbers.  With `trials`, attacks learn from at most `trials` runs if the result states more runs than its
        evidence supports.
    """
    rows = [row.trials for row in result.pairs if row.label == witness.pair]
    fresh = result.confirmation is not None and result.confirmation.counts is not None
    _check_stated(result, max([0 if fresh else witness.counts.n0, *(row.trials for row in result.pairs)]))
    before = 0 if result.evidence.anytime else result.evidence.trials  # runs after the score was frozen
    learned, learned_from = max(
        [(_MIN_LEARNED, "the minimum"), *((row - before, "as many as the audit used") for row in rows)]
    )
    supported = _supported(result)
    if trials is not None:
        counted, counted_from = check_trials(trials), "as requested"
        if learned > supported:
            learned, learned_from = max(_MIN_LEARNED, min(counted, supported)), "at most as many as are counted"
        return ReplayRuns(learned=learned, counted=counted, learned_from=learned_from, counted_from=counted_from)
    times = _TIMES if result.violated else 1
    origin = f"{times} times the witness's" if times > 1 else "as many as the witness's"
    counted, counted_from = max((_MIN_TRIALS, "the minimum"), (times * witness.counts.n0, origin))
    if learned + counted > supported:
        raise ValueError(
            f"{result.name} asks for {learned + counted:,} runs per dataset, but its evidence supports at most "
            f"{supported:,}; a file may state any number, so give the number of counted runs yourself: --trials N, or "
            "trials=N in Python"
        )
    return ReplayRuns(learned=learned, counted=counted, learned_from=learned_from, counted_from=counted_from)


def _check_stated(result: AuditResult, stated: int) -> None:
    """Refuse a result that states more runs than it made."""
    made = min(result.trials_used, MAX_TRIALS)
    if stated > made:
        raise ValueError(f"{result.name} states {stated:,} runs per dataset of a pair, but only {made:,} were made")


def _supported(result: AuditResult) -> int:
    """Return the maximum number of runs per dataset of a replay whose number of runs the user does not state."""
    counts = pair_counts(result)
    outputs = 0 if counts is None else int(counts.sum(axis=1).max())
    return min(MAX_RUNS, max(_SUPPORTED_ALWAYS, _SUPPORTED_TIMES * outputs))
