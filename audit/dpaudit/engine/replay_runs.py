"""Determines how many runs a replay makes."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.result.model import AuditResult
from dpaudit.result.values import Witness
from dpaudit.settings.limits import check_trials

DOUBLINGS = 6  # maximum number of doublings of the counted runs with `extend`, so that 64 times the runs are counted
_TIMES = 4  # fresh runs per run of the witness: a sequential audit stops at a lucky moment, so effects shrink on replay
_MIN_TRIALS = 1_000  # minimum number of counted runs per dataset
_MIN_LEARNED = 200  # minimum number of runs per dataset to learn from


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
    """Determine the numbers of runs of a replay."""
    before = 0 if result.evidence.anytime else result.evidence.trials  # runs after the score was frozen
    used = [(row.trials - before, "as many as the audit used") for row in result.pairs if row.label == witness.pair]
    learned, learned_from = max([(_MIN_LEARNED, "the minimum"), *used])
    if trials is not None:
        counted, counted_from = check_trials(trials), "as requested"
    else:
        times = _TIMES if result.violated else 1
        origin = f"{times} times the witness's" if times > 1 else "as many as the witness's"
        counted, counted_from = max((_MIN_TRIALS, "the minimum"), (times * witness.counts.n0, origin))
    return ReplayRuns(learned=learned, counted=counted, learned_from=learned_from, counted_from=counted_from)
