"""Chooses what a long search runs next: a cell of a sweep and its number of runs, or a release of a package.

**Sweeps.**  A sweep audits many mechanisms, its cells, in a limited time.  A round resumes the audit of one cell from
its store with a larger maximum number of runs:

1. Each cell gets a first round of `FIRST_TRIALS` runs.
2. A cell that has used less than `FAIR_SHARE` of an even share of the time comes next.
3. Otherwise the cell whose evidence is predicted to reach its threshold in the fewest seconds, if the time is enough.
4. Otherwise the cell that has used the least time.

A round multiplies the number of runs by `GROWTH`, or by less if the time is short.  A resumed audit learns from the
stored outputs once more, so all rounds of a cell take about GROWTH / (GROWTH - 1) times the seconds of one audit.

Theorem:
    Let the cells 1, ..., K have true claims, and let the audit of each cell refute its claim when its wealth reaches K
    / s.  Then the sweep refutes any claim with probability at most s, whatever rule chooses the rounds, and whenever
    the sweep ends.

    *Proof.*  Consider one cell, and the history of all outputs of all cells and of the clock.  The next run of the cell
    is independent of this history, since runs are independent.  The rule chooses cell and number of runs from the
    history only, and so do the limits that cut blocks.  So the wealth of the cell is a nonnegative supermartingale with
    expectation at most 1 in this history, which stays constant while other cells are chosen.  By Ville's inequality, it
    ever reaches K / s with probability at most s / K.  The sum over the cells is s.

Rounds of several cells may run at the same time: a run still does not depend on the history at its start.  A cell has
at most one round at a time.  All its rounds are one audit, since a resumed audit reads the stored blocks in their
order, and its attacks have the same seeds.

The proof needs that no run is repeated because of its outcome.  Therefore a cell with a failed run gets no further
rounds.  A kill loses the block that was running, which is sampled again; the moment of the kill must not depend on the
outputs of this block.  A kill in the round of a cell with several pairs, after a run of one pair has failed, also loses
this failure, and the proof does not cover a sweep that goes on after such a kill.

**Releases.**  The search finds the releases at which the verdict changes.  A release is decided if an audit found a
violation, or if all of its audits ended with the verdict "no violation found".  The steps are, in this order:

1. Audit the releases that the configs name, because somebody saw the fault there, and then the two ends.  If an end is
not decided, its neighbour takes its place.
2. Audit the middle one between two decided releases with different states and no decided release between them, passing
over releases that were tried and not decided.
3. If every change is located, audit the middle of the longest stretch that no audit has looked into, which may show
that the history is not monotone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dpaudit.result.command_outcomes import State, changes, decided

FIRST_TRIALS = 300  # number of runs per dataset in the first round, over all pairs of the cell
GROWTH = 3.0  # factor between the numbers of runs of two rounds of a cell
FAIR_SHARE = 0.25  # each cell of a sweep, and each pair of an audit, gets at least this part of an even share

_USEFUL_GROWTH = 1.3  # a round with a smaller factor would mostly repeat what the cell has learned
_SOME_EVIDENCE = 1.0  # nats; less evidence often arises by chance
_SAFETY = 0.8  # part of the remaining time that a round may take by prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a cell has used so far, and its evidence."""

    trials: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0
    log_e: float = 0.0
    log_threshold: float
    most: int
    closed: bool = False
    busy: bool = False

    @property
    def remaining_seconds(self) -> float:
        """Predicted seconds of a round that ends at the threshold; inf if the evidence does not grow."""
        if self.log_e < _SOME_EVIDENCE:
            return math.inf
        return self.last_seconds * self.log_threshold / self.log_e

    def next_trials(self, seconds_left: float) -> int | None:
        """Return the number of runs of the next round; None if the cell can have no useful round in the time."""
        if self.closed or self.busy or self.trials >= self.most:
            return None
        factor = min(GROWTH, _SAFETY * seconds_left / self.last_seconds) if self.last_seconds > 0 else GROWTH
        wanted = min(int(self.trials * factor), self.most)
        return wanted if wanted >= min(_USEFUL_GROWTH * self.trials, self.most) else None


@dataclass(frozen=True, slots=True)
class Round:
    """The next round."""

    cell: int
    trials: int
    seconds: float


def next_round(cells: Sequence[Spent], seconds_left: float, *, at_once: int = 1) -> Round | None:
    """Choose the next round; None if no idle cell can have a useful round in the remaining time."""
    if seconds_left <= 0:
        return None
    untried = [index for index, cell in enumerate(cells) if not (cell.closed or cell.busy) and cell.trials == 0]
    if untried:
        share = min(at_once / (2 * len(untried)), 1.0)
        return Round(untried[0], min(FIRST_TRIALS, cells[untried[0]].most), seconds_left * share)
    sizes = {index: cell.next_trials(seconds_left) for index, cell in enumerate(cells)}
    able = {index: size for index, size in sizes.items() if size is not None}
    if not able:
        return None
    chosen = poorest = min(able, key=lambda index: cells[index].seconds)
    left = [cell.seconds for cell in cells if not cell.closed]
    if cells[poorest].seconds >= FAIR_SHARE * sum(left) / len(left):
        soonest = min(able, key=lambda index: cells[index].remaining_seconds)
        chosen = soonest if cells[soonest].remaining_seconds <= seconds_left else poorest
    return Round(chosen, able[chosen], seconds_left)


def most_audits(releases: int, named: int = 0) -> int:
    """Return the default of the maximum number of releases that one command audits.

    Theorem:
        Let all n >= 2 releases be decidable, and let L = ceil(log2 n).  If the state changes once, L + 2 + p audits
        locate the change, where p is the number of named releases.  If the state changes twice, and a named release
        differs from both ends, 2 L + 2 + p audits locate both changes.

        *Proof.*  Step 1 takes at most 2 + p audits.  An audit in a stretch of k releases leaves at most floor(k / 2)
        releases on each side.  So a change in the stretch is located after at most ceil(log2(k + 1)) <= L audits.

    The default is 2 L + 2 + p, so that L audits remain for step 3 if the state changes once.
    """
    return min(releases, 2 * math.ceil(math.log2(releases)) + 2 + named)


def next_release(states: Sequence[State | None], named: Collection[int] = ()) -> int | None:
    """Return the index of the release to audit next."""
    for number in sorted(named):
        if states[number] is None:
            return number
    for end in (range(len(states)), range(len(states) - 1, -1, -1)):
        first = next((n for n in end if states[n] is None or states[n] in (State.BAD, State.GOOD)), None)
        if first is not None and states[first] is None:
            return first
    for change in changes(states):
        if inner := _untried(states, change.before, change.after):
            return inner[len(inner) // 2]
    known = decided(states)
    longest = max((_untried(states, *ends) for ends in pairwise(known)), key=len, default=[])
    return longest[len(longest) // 2] if longest else None


def _untried(states: Sequence[State | None], before: int, after: int) -> list[int]:
    return [n for n in range(before + 1, after) if states[n] is None]
