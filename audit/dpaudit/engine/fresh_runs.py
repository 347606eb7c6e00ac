"""Counts a frozen region on runs in new processes, and tests whether a process keeps something from run to run.

A violation rests on the assumption that runs are independent.  A mechanism may break this assumption by what it keeps:
a cache, noise that was drawn once, or a pool of values.  Whatever it keeps in memory differs from process to process.
So the fresh runs are divided among several new processes, and the outputs of the same dataset are compared between
all processes (`inference.independence.same_law`).  Outputs that no process varies are one observation of each process,
and are counted so.

What this cannot see: values that are kept outside all processes, such as in a server or in a compiled library's file;
noise that a copied mechanism held before the audit began; and kept values whose effect is too small for the test.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.inference.independence.memory import CHECKPOINTS, values_of
from dpaudit.inference.independence.same_law import differences
from dpaudit.learning.symmetric import symmetric_columns
from dpaudit.numerics.bisect import bisect_integers
from dpaudit.outputs import OutputError, Outputs
from dpaudit.result.consistency import beyond
from dpaudit.result.histograms import Counts as Histogram
from dpaudit.result.values import Counts
from dpaudit.sampling.detached import Dataset
from dpaudit.sampling.fresh_process import NotPossible, made_in_new_processes
from dpaudit.sampling.runs import Runs
from dpaudit.sampling.streams import stream
from dpaudit.values import Output, RawOutputs
from dpaudit.values.content import key

PROCESSES = 8  # number of new processes, unless outputs never vary
MAX_PROCESSES = 200  # maximum number of new processes if outputs never vary
DIFFERENT = 1e-6  # probability with which independent runs seem to differ between processes
_COMPARED = tuple(2**k for k in range(1, 8))  # numbers of outputs of a process that may be compared
REPEATED = "no process varied its outputs, so each process made one observation of each dataset"
WAY_OUT = "To mend this, draw all noise in each run from the rng that the mechanism gets, and switch caches off"


def _processes_for(claim: TradeoffFunction, significance: float) -> int:
    """Return the least k for which the counts k of k and 0 of k refute a claim; `MAX_PROCESSES` if k is larger."""

    def enough(k: int) -> bool:
        return exact_binomial.p_value(claim, 0, k, k, k) <= significance

    if not enough(MAX_PROCESSES):
        return MAX_PROCESSES
    return bisect_integers(enough, inside=MAX_PROCESSES, outside=0).inside


@dataclass
class FreshRuns:
    """Runs of one pair in new processes, and their counts in a region that was frozen before.

    Args:
        collector: The collector of the audit, whose learners are not refitted any more.
        pair: Index of the pair.
        threshold: Last bin outside the region.
    """

    collector: Collector
    pair: int
    threshold: int
    processes: int = field(default=0, init=False)  # number of new processes so far
    _bins: list[Histogram] = field(default_factory=list, init=False)  # (2, BINS) for each process
    _firsts: list[Histogram] = field(default_factory=list, init=False)  # the same for the first output on each dataset
    _varied: bool = field(default=False, init=False)  # whether the outputs of some process on some dataset varied
    _outputs: list[tuple[list[Output], list[Output]]] = field(default_factory=list, init=False)  # of each process

    @property
    def constant(self) -> bool:
        """Whether no process, including that of the audit, varied its outputs on any dataset of the pair."""
        return not self._varied and all(seen.constant for seen in self.collector.seen[self.pair])

    def make(self, runs: int, processes: int, tell: Callable[[], None] = lambda: None) -> None:
        """Make runs on each dataset, divided evenly among new processes.

        Args:
            runs: Number of runs on each dataset.
            processes: Number of processes, at most `runs`.
            tell: Function that is called after each process.

        Raises:
            NotPossible: If a process could not make its runs.
        """
        sampler = self.collector.sampler
        pair, began = sampler.pairs[self.pair], self.processes
        datasets = Dataset(pair.d0), Dataset(pair.d1)
        seed = int(stream(sampler.seed, "fresh", self.pair, began).integers(2**53))
        cuts = [runs * i // processes for i in range(processes + 1)]
        tasks = [
            (
                Runs(self.collector.sent, datasets[0], seed, 0, 0, start, stop, sampler.execution),
                Runs(self.collector.sent, datasets[1], seed, 0, 1, start, stop, sampler.execution),
            )
            for start, stop in pairwise(cuts)
        ]
        for outcomes in made_in_new_processes(tasks, self.collector.since):
            outcomes = sampler.of_one_type(self.pair, outcomes)
            if outcomes[0].failure:
                raise NotPossible(f"in a new process the mechanism {outcomes[0].failure}")
            try:
                self._add(outcomes[0].outputs, outcomes[1].outputs)
            except OutputError as error:
                raise NotPossible(f"a new process gave an output that cannot be read: {error}") from None
            self.processes += 1
            tell()

    def make_here(self, runs: int) -> None:
        """Make runs on each dataset in the process of the audit, which may hold results of its earlier runs."""
        collector = self.collector
        with collector.limited(collector.trials + runs):
            for block in collector.blocks(self.pair, collector.allowed):
                self._count(*block)

    def more(
        self, runs: int, claim: TradeoffFunction, significance: float, tell: Callable[[], None] = lambda: None
    ) -> str:
        """Make further runs on each dataset, in new processes if possible, and else in the process of the audit.

        If outputs never vary, there are at least as many processes as first outputs that refute the claim.

        Args:
            runs: Number of runs on each dataset.
            claim: The claim, symmetrized.
            significance: Significance of the audit, between 0 and 1.
            tell: Function that is called after each process.

        Returns:
            Why no new process could make the runs; "" if new processes made them.
        """
        processes = max(PROCESSES, _processes_for(claim, significance) if self.constant else 0)
        try:
            if isinstance(self.collector.sent, NotPossible):
                raise self.collector.sent
            self.make(runs, min(runs, processes), tell)
        except NotPossible as error:
            self._bins, self._firsts, self._outputs, self.processes = [], [], [], 0
            self.make_here(runs)
            return str(error)
        return ""

    def doubts(self, claim: TradeoffFunction, significance: float) -> list[str]:
        """Return why the fresh runs contradict the audit or prove nothing; [] if they count.

        Args:
            claim: The claim, symmetrized.
            significance: Significance of the audit, between 0 and 1.
        """
        if not self.scores.sum(axis=1).all():
            return [self.collector.failure or self.collector.dropped.get(self.pair) or "no fresh run was made"]
        if self.processes and (words := self.difference()):
            return [words]
        if self.constant and self.p_value(claim) > significance:
            return [f"{REPEATED}, and {max(1, self.processes)} are too few to refute the claim.  {WAY_OUT}"]
        return []

    def _add(self, outputs0: RawOutputs, outputs1: RawOutputs) -> None:
        self._count(*self.collector.learners[self.pair].read(outputs0, outputs1))
        most = max((n for n in _COMPARED if n <= len(outputs0)), default=1)
        kept = [list(values_of(side[:most])) for side in (outputs0, outputs1)]
        self._varied = self._varied or any(len(set(map(key, side))) > 1 for side in kept)
        self._outputs.append((kept[0], kept[1]))

    def _count(self, outputs0: Outputs, outputs1: Outputs) -> None:
        scores = self.collector.learners[self.pair].score_counted(outputs0, outputs1)
        self._bins.append(np.array([bin_counts(side) for side in scores]))
        self._firsts.append(np.array([bin_counts(side[:1]) for side in scores]))

    @property
    def scores(self) -> Histogram:
        """The bin counts of all fresh runs, (2, BINS); if outputs never vary, of the first output of each process."""
        each = self._firsts[: max(1, self.processes)] if self.constant else self._bins
        found: Histogram = np.sum([np.zeros((2, BINS), dtype=np.int64), *each], axis=0)
        return found

    @property
    def rates(self) -> tuple[float, float]:
        """Share of the outputs of d0 inside the region, and share of the outputs of d1 outside it."""
        counts = self.counts
        return counts.false_positives / max(1, counts.n0), counts.false_negatives / max(1, counts.n1)

    @property
    def counts(self) -> Counts:
        """The counts of the region, as in `scores`."""
        return beyond(self.scores, self.threshold)

    def p_value(self, claim: TradeoffFunction) -> float:
        """Return the exact p-value of the claim from these counts."""
        counts = self.counts
        y = counts.n1 - counts.false_negatives
        return exact_binomial.p_value(claim, counts.false_positives, counts.n0, y, counts.n1)

    def difference(self) -> str:
        """Return a sentence that states how processes differ on the same dataset; "" if no difference is significant.

        The audit stops at a moment that its outputs select.  So a fixed number of the first outputs of each process is
        compared, one of `CHECKPOINTS` of the process of the audit and one of `_COMPARED` of every other process.  Each
        combination has the same share of the level.
        """
        collector, level = self.collector, DIFFERENT / 2 / len(CHECKPOINTS) / len(_COMPARED)
        earlier = [collector.compared(self.pair, side) for side in (0, 1)]
        outputs = [[*earlier[side], *(o for both in self._outputs for o in both[side])] for side in (0, 1)]
        groups = [_groups([len(earlier[side]), *(len(both[side]) for both in self._outputs)]) for side in (0, 1)]
        rng = stream(collector.sampler.seed, "processes", self.pair, self.processes)
        (columns0, columns1), _ = symmetric_columns(
            collector.learners[self.pair], outputs[0], outputs[1], rng, refit=False
        )
        for side, columns in enumerate((columns0, columns1)):
            keys: list[Hashable] = [key(output) for output in outputs[side]]
            for words in differences(keys, columns, groups[side], level):
                return f"on d{side}, {words}: the mechanism keeps results or noise from run to run.  {WAY_OUT}"
        return ""


def _groups(sizes: Sequence[int]) -> npt.NDArray[np.intp]:
    return np.repeat(np.arange(len(sizes)), sizes)


