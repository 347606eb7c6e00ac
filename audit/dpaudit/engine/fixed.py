"""The audit with a fixed number of trials: a pilot chooses pair, score and region for one exact test."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector, Progress, ProgressCallback
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.inference.fixed.regions import delta_of, merge_saturated, threshold_for_claim
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.learning.blocks import Block
from dpaudit.numerics import Array
from dpaudit.result.evidence import Counts, FixedEvidence

PILOT = 0.1  # share of the trials that the pilot uses
_PILOT_WITH_SECOND_STAGE = 0.15  # share of the trials that a pilot with a second stage uses
_SECOND_STAGE_AFTER = 250_000  # trials per pair after which ordinary refits gain little
_SECOND_STAGE_TRIALS = 200_000  # with fewer trials, the second stage is left out


@dataclass
class FixedAudit:
    """An audit whose number of trials is fixed beforehand.  The claim is tested once, at the end."""

    collector: Collector
    tested: TradeoffFunction  # the claim, symmetrized
    pilot: SequentialAudit  # uses the same collector; the pilot's evidence only decides what is frozen
    pair: int = field(default=0, init=False)  # index of the chosen pair
    second_stage_trials: int = field(default=0, init=False)  # trials of the second stage
    _threshold: int = field(default=0, init=False)  # last bin outside the region
    # (2, BINS), bin counts of the pilot's latest scores, after `merge_saturated`, and of all scores after the pilot
    _pilot: Counts = field(default_factory=lambda: np.zeros((2, BINS), dtype=np.int64), init=False)
    _counts: Counts = field(default_factory=lambda: np.zeros((2, BINS), dtype=np.int64), init=False)

    def go(self, progress: ProgressCallback | None = None) -> None:
        """Make the trials of the pilot and then all other trials; `progress` is called after each block."""
        try:
            self._go(progress)
        except KeyboardInterrupt:
            self.collector.interrupted = True

    def _go(self, progress: ProgressCallback | None) -> None:
        collector, allowed = self.collector, self.collector.allowed
        search = max(round(PILOT * allowed), min(allowed, 20 * len(collector.learners)))
        self._search(min(search, _SECOND_STAGE_AFTER * len(collector.learners)), progress)
        second_stage = self._second_stage(round(_PILOT_WITH_SECOND_STAGE * allowed), progress)
        if second_stage is None and not collector.interrupted:
            self._search(search, progress)
        learner = collector.learners[self.pair]
        if collector.interrupted or not learner.ready:
            return
        scores = second_stage or tuple(learner.score(side) for side in learner.outputs())
        unseen = second_stage or tuple(side[max(0, len(side) - learner.trials_since_fit) :] for side in scores)
        self._pilot = merge_saturated(*(np.array([bin_counts(side) for side in sides]) for sides in (scores, unseen)))
        self._threshold = threshold_for_claim(
            self._pilot[0],
            self._pilot[1],
            self.tested,
            trials=allowed - collector.trials,
            significance=1 - self.pilot.confidence,
        )
        for outputs0, outputs1 in self._blocks(allowed, progress):
            self._counts += [bin_counts(side) for side in learner.score_counted(outputs0, outputs1)]
        # if the frozen pair fails, no other pair can replace this pair, because the region is frozen for this pair only
        collector.failure = collector.failure or collector.ended or collector.dropped.get(self.pair, "")

    def _search(self, until: int, progress: ProgressCallback | None) -> None:
        """Learn on all pairs until `until` trials have been made, and choose the pair with the strongest evidence."""
        collector = self.collector
        with collector.limited(until):
            self.pilot.go(progress, to_the_end=True)
        can_go_on = [learner.ready and i not in collector.dropped for i, learner in enumerate(collector.learners)]
        self.pair = int(np.argmax(np.where(can_go_on, self.pilot.pair_log_e, -math.inf)))

    def _second_stage(self, until: int, progress: ProgressCallback | None) -> tuple[Array, Array] | None:
        """Fit the chosen pair's score a last time; return scores of held-out trials, or None to choose another pair."""
        collector = self.collector
        learner = collector.learners[self.pair]
        trials, before = min(until - collector.trials, learner.max_second_stage_trials), collector.trials
        ended = collector.interrupted or not collector.open or self.pair in collector.dropped
        if trials < _SECOND_STAGE_TRIALS or ended:
            return None
        blocks = list(self._blocks(before + trials, progress))
        found = None if self.pair in collector.dropped else learner.fit_second_stage(blocks)
        self.second_stage_trials = 0 if found is None else collector.trials - before
        return found

    def _blocks(self, until: int, progress: ProgressCallback | None) -> Iterator[Block]:
        for block in self.collector.blocks(self.pair, until):
            yield block
            if progress is not None:
                progress(self.progress)

    @property
    def progress(self) -> Progress:
        """The state of the audit, in which the evidence is nan until the test at the end."""
        return Progress(
            trials=self.collector.trials,
            allowed=self.collector.allowed,
            log_e=float("nan"),
            log_threshold=self.pilot.progress.log_threshold,
        )

    @property
    def evidence(self) -> FixedEvidence:
        """The counts of the frozen score, and the frozen region."""
        return FixedEvidence(
            pair=self.pair,
            threshold=self._threshold,
            pilot=self._pilot,
            counts=self._counts,
            delta=delta_of(self.tested),
        )
