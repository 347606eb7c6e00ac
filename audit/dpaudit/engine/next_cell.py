"""Chooses the cell of a sweep that gets the next round of runs, and the number of runs.

A sweep audits many mechanisms, its cells, in a limited time.  A round resumes the audit of one cell from its store with
a larger maximum number of runs.  The rounds are chosen in this order:

1. Each cell gets a first round of `FIRST_TRIALS` runs.
2. A cell that has used less than `MIN_SHARE` of an even share of the time comes next.
3. Otherwise the cell comes next whose evidence is predicted to reach its threshold in the fewest seconds, if this is
   possible in the remaining time.
4. Otherwise the cell comes next that has used the least time.

A round multiplies the number of runs by `GROWTH`, or by less if the time is short.  A resumed audit reads the stored
outputs, but learns from them once more.  So the rounds of a cell together take about GROWTH / (GROWTH - 1) times the
seconds of one audit with the same number of runs.

Theorem:
    Let the cells 1, ..., K have true claims, and let the audit of each cell refute its claim when its wealth reaches
    K / s.  Then the sweep refutes any claim with probability at most s, whatever rule chooses the rounds, and whenever
    the sweep ends.

    *Proof.*  Consider one cell, and the history of all outputs of all cells and of the clock.  The next run of the cell
    is independent of this history, since runs are independent.  The rule chooses cell and number of runs from the
    history only, and so do the limits that cut blocks.  So the wealth of the cell is a nonnegative supermartingale with
    expectation at most 1 in this history, which stays constant while other cells are chosen.  By Ville's inequality, it
    ever reaches K / s with probability at most s / K.  The sum over the cells is s.

Rounds of several cells may run at the same time.  Then the history is that at each point in time.  A run still does not
depend on what came before it, although the moment at which it starts does.  A cell has at most one round at a time.

All rounds of a cell are one audit in the sense of the proof.  A resumed audit reads the stored blocks in their order,
and its attacks have the same seeds, so its wealth repeats its path before it goes on.

The proof needs that no run is repeated because of its outcome.  Therefore a cell with a failed run gets no further
rounds.  A kill loses the block that was running, which is sampled again; the moment of the kill must not depend on the
outputs of this block.  A kill in the round of a cell with several pairs, after a run of one pair has failed, also loses
this failure, and the proof does not cover a sweep that goes on after such a kill.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FIRST_TRIALS = 300
"""Number of runs per dataset in the first round, over all pairs of the cell."""

GROWTH = 3.0
"""Factor between the numbers of runs of two rounds of a cell."""

MIN_SHARE = 0.25
"""Each cell of a sweep, and each pair of an audit, gets at least this part of an even share."""

_MIN_GROWTH = 1.3  # a round with a smaller factor would mostly repeat what the cell has learned
_MIN_EVIDENCE = 1.0  # nats; less evidence often arises by chance
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
        if self.log_e < _MIN_EVIDENCE:
            return math.inf
        return self.last_seconds * self.log_threshold / self.log_e

    def next_trials(self, seconds_left: float) -> int | None:
        """Return the number of runs of the next round; None if the cell can have no useful round in the time."""
        if self.closed or self.busy or self.trials >= self.most:
            return None
        factor = GROWTH
        if self.last_seconds > 0:
            factor = min(factor, _SAFETY * seconds_left / self.last_seconds)
        wanted = min(int(self.trials * factor), self.most)
        return wanted if wanted >= min(_MIN_GROWTH * self.trials, self.most) else None


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
    if cells[poorest].seconds >= MIN_SHARE * sum(left) / len(left):
        soonest = min(able, key=lambda index: cells[index].remaining_seconds)
        chosen = soonest if cells[soonest].remaining_seconds <= seconds_left else poorest
    return Round(chosen, able[chosen], seconds_left)
