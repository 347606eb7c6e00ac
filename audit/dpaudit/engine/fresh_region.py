"""The rejection region of a replay: learned again, frozen, and counted on fresh runs."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector, Progress, ProgressCallback
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.learning import Learner
from dpaudit.result.consistency import beyond, dense, nearest_bin, pair_counts
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Counts, Witness

_CLEARLY = 3  # standard errors: if the rates differ by more from the witness's rates, another threshold is chosen


class FreshRegion:
    """A frozen region and the scores of fresh runs.

    Args:
        collector: A collector of one pair, whose learner will not be refitted.
        threshold: Last bin outside the region.
    """

    def __init__(self, collector: Collector, threshold: int) -> None:
        self._collector, self._threshold = collector, threshold
        self._learned_from = collector.trials
        self._total = np.zeros((2, BINS), dtype=np.int64)
        self.valid = True
        self.warnings: list[str] = []

    def count(self, trials: int, progress: ProgressCallback | None) -> None:
        """Make fresh runs until `trials` runs per dataset have been counted, and test whether they are independent."""
        collector, learner = self._collector, self._collector.learners[0]
        collector.allowed = self._learned_from + trials
        if learner.ready:
            for outputs0, outputs1 in collector.blocks(0, collector.allowed):
                self._total += [bin_counts(side) for side in learner.score_counted(outputs0, outputs1)]
                tell(collector, collector.allowed, progress)
        dependent = collector.dependence()
        self.warnings = [*learner.warnings, *dependent, *([collector.failure] if collector.failure else [])]
        self.valid = not dependent and not collector.failure and bool(self._total.any())

    @property
    def counts(self) -> Counts:
        """The counts of the region on the fresh runs."""
        return beyond(self._total, self._threshold)

    @property
    def rates(self) -> tuple[float, float]:
        """Share of the outputs of d0 inside the region, and share of the outputs of d1 outside it."""
        counts = self.counts
        return counts.false_positives / max(1, counts.n0), counts.false_negatives / max(1, counts.n1)

    def p_value(self, claim: TradeoffFunction) -> float:
        """Return the exact p-value of the claim from these counts."""
        counts = self.counts
        y = counts.n1 - counts.false_negatives
        return exact_binomial.p_value(claim, counts.false_positives, counts.n0, y, counts.n1)


def frozen_threshold(learner: Learner, threshold: int, witness: Witness) -> int:
    """Return the last bin outside the region for a score that was learned again.  Counted runs have no influence.

    The witness's threshold is kept, unless its error rates under the new score clearly differ from the witness's rates.
    In that case, the threshold with the closest rates is chosen.  This happens if many outputs have the same
    score, and this score now lies on the other side of the threshold.

    Args:
        learner: The learner after its last fit.
        threshold: The witness's last bin outside the region.
        witness: The witness to replay.
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
    """Return the witness's last bin outside the region.  For older files, the counts determine this bin.

    Raises:
        ValueError: If the witness's counts do not fit the evidence.
    """
    if not math.isnan(witness.threshold):
        return nearest_bin(witness)
    counts = dense(witness) if witness.scores else pair_counts(result)
    fitting = [k for k in range(BINS - 1) if counts is not None and beyond(counts, k) == witness.counts]
    if not fitting:
        raise ValueError(
            f"{result.name}: the witness's counts do not fit the evidence, so its region is unknown; audit again"
        )
    return fitting[len(fitting) // 2]


def tell(collector: Collector, until: int, progress: ProgressCallback | None) -> None:
    """Report the progress of a replay, whose evidence is counted only at the end."""
    if progress is not None:
        progress(Progress(trials=collector.trials, allowed=until, log_e=math.nan, log_threshold=math.nan))
