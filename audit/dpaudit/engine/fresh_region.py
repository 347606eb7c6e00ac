"""The witness's rejection region on fresh runs: found again, frozen and counted."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector, Progress, ProgressCallback
from dpaudit.engine.constant_outputs import judged
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.learning import Learner
from dpaudit.result.consistency import beyond, dense, nearest_bin, pair_counts
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Counts, Witness

_CLEARLY = 3  # standard errors of the rates of a region


class FreshRegion:
    """A region that is frozen, and what was counted of it."""

    def __init__(self, collector: Collector, threshold: int) -> None:
        self._collector, self._threshold = collector, threshold
        self._learned_from = collector.trials
        self._total = np.zeros((2, BINS), dtype=np.int64)
        self.valid = True
        self.warnings: list[str] = []

    def count(self, trials: int, progress: ProgressCallback | None) -> None:
        """Make fresh runs until so many have been counted."""
        collector, learner = self._collector, self._collector.learners[0]
        collector.allowed = self._learned_from + trials
        if learner.ready:
            for outputs0, outputs1 in collector.blocks(0, collector.allowed):
                self._total += [bin_counts(side) for side in learner.score_counted(outputs0, outputs1)]
                tell(collector, collector.allowed, progress)
        dependent = collector.dependence()
        self.warnings = [*learner.warnings, *dependent, *([collector.failure] if collector.failure else [])]
        self.valid = not dependent and not collector.failure and bool(self._total.any())

    def judge(self, claim: TradeoffFunction, significance: float, *, refuted: bool) -> None:
        """Doubt counts that may rest on noise drawn once: there may have been few independent runs of each dataset."""
        if self.valid:
            doubts = judged(self._collector, {0: math.inf}, claim, significance, accused=refuted).doubts
            self.valid, self.warnings = not doubts, [*self.warnings, *doubts]

    @property
    def counts(self) -> Counts:
        return beyond(self._total, self._threshold)

    @property
    def rates(self) -> tuple[float, float]:
        """Share of the outputs of d0 in the region, and of those of d1 outside."""
        counts = self.counts
        return counts.false_positives / max(1, counts.n0), counts.false_negatives / max(1, counts.n1)

    def p_value(self, claim: TradeoffFunction) -> float:
        counts = self.counts
        y = counts.n1 - counts.false_negatives
        return exact_binomial.p_value(claim, counts.false_positives, counts.n0, y, counts.n1)


def frozen_threshold(learner: Learner, threshold: int, witness: Witness) -> int:
    """The last bin outside the region, for a score that was learned anew; settled before the runs that are counted.

    It is the witness's threshold, unless the rates there are clearly not the witness's and another threshold's are.  So
    it is where many outputs have the same score, and that score came out on the other side of the threshold this time.
    """
    if not learner.ready:
        return threshold
    scores = [bin_counts(learner.score(side)) for side in learner.outputs()]
    n = int(scores[0].sum())
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


def threshold_of(witness: Witness, result: AuditResult) -> int:
    """The last bin outside the region.  A file of before it was written has counts that name it."""
    if not math.isnan(witness.threshold):
        return nearest_bin(witness)
    counts = dense(witness) if witness.scores else pair_counts(result)
    fitting = [k for k in range(BINS - 1) if counts is not None and beyond(counts, k) == witness.counts]
    if not fitting:
        raise ValueError(f"{result.name}: the witness's counts are not among the evidence; its region is not known")
    return fitting[len(fitting) // 2]


def tell(collector: Collector, until: int, progress: ProgressCallback | None) -> None:
    """Report where a replay stands; it has no evidence before its end."""
    if progress is not None:
        progress(Progress(trials=collector.trials, allowed=until, log_e=math.nan, log_threshold=math.nan))
