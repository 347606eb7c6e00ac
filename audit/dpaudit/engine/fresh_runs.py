"""Confirms a refutation on fresh runs: measures the violation, and tests whether processes keep something between runs.

When the claim is refuted, attacks learn from a few further runs, the region and a number of fresh runs are fixed, and
these runs are made in new processes and counted.  `result.confirmation` states the theorem.

Whatever a mechanism keeps in memory (a cache, noise that was drawn once, a pool of values) differs from process to
process.  So the outputs of the same dataset are compared between all processes (`inference.independence.same_law`), and
outputs that no process varies are one observation of each process.

This cannot see values that are kept outside all processes, noise that a copied mechanism held before the audit began,
kept noise of a fixed seed, and effects too small for the test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import MAX_BLOCK_TRIALS, Collector
from dpaudit.engine.witness import frozen_witness, sparse
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.fixed.regions import delta_of, threshold_for_claim, threshold_for_epsilon, threshold_for_mu
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.inference.independence.same_law import differences
from dpaudit.inference.independence.signs import CHECKPOINTS, values_of
from dpaudit.learning import symmetric_columns
from dpaudit.numerics import bisect_integers
from dpaudit.outputs import OutputError
from dpaudit.result.base_evidence import Counts as Histogram
from dpaudit.result.confirmation import Confirmation, ConfirmationOutcome, fresh_p_value
from dpaudit.result.values import Counts, Witness, beyond
from dpaudit.running.fresh_process import NotPossible, made_in_new_processes
from dpaudit.running.runs import Dataset, Outcome, Runs
from dpaudit.running.sampler import Sampler
from dpaudit.running.streams import stream
from dpaudit.values import Output, key

if TYPE_CHECKING:
    from dpaudit.settings import Confirm


PROCESSES = 8  # number of new processes, unless outputs never vary
MAX_PROCESSES = 200  # maximum number of new processes if outputs never vary; of one run each, fewer than twice as many
DIFFERENT = 1e-6  # probability with which independent runs seem to differ between processes
_COMPARED = tuple(2**k for k in range(1, 8))  # numbers of outputs of a process that may be compared
_REPEATED = 32  # number of outputs that must repeat those of another process, of `PROCESSES` processes or more
REPEATED = "no process varied its outputs, so each process made one observation of each dataset"
WAY_OUT = "To mend this, draw all noise in each run from the rng that the mechanism gets, and switch caches off"


def _processes_for(claim: TradeoffFunction, significance: float) -> int:
    """Return the least k for which the counts k of k and 0 of k refute a claim; `MAX_PROCESSES` if k is larger."""

    def enough(k: int) -> bool:
        return k == MAX_PROCESSES or exact_binomial.p_value(claim, 0, k, k, k) <= significance

    return bisect_integers(enough, inside=MAX_PROCESSES, outside=0).inside


@dataclass(frozen=True, slots=True)
class _OfProcess:
    """What is kept of the runs of one process."""

    bins: Histogram  # the bin counts of its outputs on d0 and on d1, (2, BINS)
    firsts: Histogram  # the same for the first output on each dataset
    outputs: tuple[list[Output], list[Output]]  # the outputs that are compared with those of other processes

    @property
    def varied(self) -> bool:
        """Whether the outputs on some dataset varied."""
        return any(len(set(map(key, side))) > 1 for side in self.outputs)


@dataclass
class FreshRuns:
    """Runs of one pair in new processes, and their counts in a region that was frozen before."""

    collector: Collector
    pair: int
    threshold: int
    address: str = "fresh"
    why: str = field(default="", init=False)  # why runs were made in the process of the audit, "" if they were not
    _new: list[_OfProcess] = field(default_factory=list, init=False)  # of each new process
    _here: list[_OfProcess] = field(default_factory=list, init=False)  # of each block in the process of the audit
    _looks: int = field(default=0, init=False)

    @property
    def processes(self) -> int:
        """Number of new processes so far."""
        return len(self._new)

    @property
    def constant(self) -> bool:
        """Whether no process, including that of the audit, varied its outputs on any dataset of the pair."""
        seen = self.collector.seen[self.pair]
        return all(side.constant for side in seen) and not any(one.varied for one in [*self._new, *self._here])

    def more(
        self, runs: int, claim: TradeoffFunction, significance: float, tell: Callable[[int], None] = lambda _: None
    ) -> None:
        """Make further runs on each dataset, in new processes if possible, and else in the process of the audit.

        Which of the two is known before the first run, because outputs must not select the runs that count.  The
        exception: if all new processes give one sequence of outputs, as a seed of a module makes them do, they are
        discarded (`result.confirmation.ONE_SEQUENCE`).  If outputs never varied, there are as many processes as refute
        the claim by first outputs.  A process repeats no run of the audit or of another process.
        """
        if isinstance(self.collector.sent, NotPossible):
            self.why = str(self.collector.sent)
        found: list[_OfProcess] = []
        if not self.why:
            processes = PROCESSES
            if self.constant:
                processes = max(PROCESSES, _processes_for(claim, significance))
                processes = runs if runs < 2 * processes else processes
            found = self._made_elsewhere(runs, min(runs, processes), tell)
            if not _repeat(found):
                self._new += found
                return
            self.why = "all new processes give the same outputs one after another, as if their seed was fixed"
        here = self._made_here(runs, tell)
        if found and _repeat([*found, here[0]]):
            raise NotPossible(f"{self.why}, and so does this process")
        self._here += here

    def doubts(self, claim: TradeoffFunction, significance: float) -> list[str]:
        """Return why the fresh runs contradict the audit or prove nothing; [] if they count."""
        if self.processes and (words := self._difference()):
            return [words]
        several = all(one.bins[0].sum() > 1 for one in self._new)
        changed = several and any(len({key(one.outputs[side][0]) for one in self._new}) > 1 for side in (0, 1))
        if self.constant and changed:
            return [f"each new process gave one output only, which other processes changed.  {WAY_OUT}"]
        if self.constant and self.p_value(claim) > significance:
            return [f"{REPEATED}, and {max(1, self.processes)} are too few to refute the claim.  {WAY_OUT}"]
        return []

    def _seed(self, number: int) -> int:
        return int(stream(self.collector.sampler.seed, self.address, self.pair, number).integers(2**53))

    def _made_elsewhere(self, runs: int, processes: int, tell: Callable[[int], None]) -> list[_OfProcess]:
        """Make runs on each dataset, divided evenly among new processes."""
        sampler = self.collector.sampler
        pair, seed = sampler.pairs[self.pair], self._seed(self.processes)
        datasets = Dataset(pair.d0), Dataset(pair.d1)
        cuts = [runs * i // processes for i in range(processes + 1)]
        tasks = [
            (
                Runs(self.collector.sent, datasets[0], seed, 0, 0, start, stop, sampler.execution),
                Runs(self.collector.sent, datasets[1], seed, 0, 1, start, stop, sampler.execution),
            )
            for start, stop in pairwise(cuts)
        ]
        found: list[_OfProcess] = []
        for outcomes in made_in_new_processes(tasks, self.collector.since):
            found.append(self._read(outcomes, runs // processes, "a new process"))
            tell(cuts[len(found)])
        return found

    def _made_here(self, runs: int, tell: Callable[[int], None]) -> list[_OfProcess]:
        """Make runs on each dataset in the process of the audit, which may hold results of its earlier runs."""
        old = self.collector.sampler
        seed = self._seed(len(self._here))
        sampler = Sampler(old.mechanism, [old.pairs[self.pair]], seed, old.jobs, old.execution)
        found: list[_OfProcess] = []
        size = min(MAX_BLOCK_TRIALS, self.collector.most[self.pair])
        for start in range(0, runs, size):
            stop = min(runs, start + size)
            found.append(self._read(sampler.block(0, start, stop), stop - start, "this process"))
            tell(stop)
        return found

    def _read(self, outcomes: tuple[Outcome, Outcome], compared: int, where: str) -> _OfProcess:
        """Score outputs, and keep at most `compared` of each dataset."""
        first, second = self.collector.sampler.of_one_type(self.pair, outcomes)
        if failure := first.failure or second.failure:
            raise NotPossible(f"in {where} the mechanism {failure}")
        learner, most = self.collector.learners[self.pair], self.collector.most[self.pair]
        try:
            scores = learner.score_counted(*learner.read(first.outputs, second.outputs))
        except OutputError as error:
            raise NotPossible(f"{where} gave an output that cannot be read: {error}") from None
        kept = max((n for n in _COMPARED if n <= min(compared, most)), default=1)
        return _OfProcess(
            bins=np.array([bin_counts(side) for side in scores]),
            firsts=np.array([bin_counts(side[:1]) for side in scores]),
            outputs=(list(values_of(first.outputs[:kept])), list(values_of(second.outputs[:kept]))),
        )

    @property
    def scores(self) -> Histogram:
        """The bin counts of all fresh runs, (2, BINS); if outputs never vary, of the first output of each process.

        First outputs count only if they are all runs, or if all outputs of a dataset are equal, so this choice costs no
        level.
        """
        if self.constant:
            each = [one.firsts for one in self._new or self._here[:1]]
        else:
            each = [one.bins for one in [*self._new, *self._here]]
        found: Histogram = np.sum([np.zeros((2, BINS), dtype=np.int64), *each], axis=0)
        return found

    @property
    def counts(self) -> Counts:
        """The counts of the region, as in `scores`."""
        return beyond(self.scores, self.threshold)

    def p_value(self, claim: TradeoffFunction) -> float:
        """Return the exact p-value of the claim from these counts."""
        return fresh_p_value(self.counts, claim)

    def _difference(self) -> str:
        """Describe how processes differ on one dataset, by fixed numbers of first outputs; "" if not significant."""
        self._looks += 1
        collector = self.collector
        choices = 8 * len(CHECKPOINTS) * len(_COMPARED) * len(collector.learners) * self._looks * (self._looks + 1)
        rng = stream(collector.sampler.seed, "processes", self.pair, self.processes)
        each = [[collector.compared(self.pair, side), *(one.outputs[side] for one in self._new)] for side in (0, 1)]
        outputs0, outputs1 = outputs = tuple([output for one in side for output in one] for side in each)
        columns, _ = symmetric_columns(collector.learners[self.pair], outputs0, outputs1, rng, refit=False)
        for side in (0, 1):
            keys: list[Hashable] = [key(output) for output in outputs[side]]
            sizes = [len(one) for one in each[side]]
            groups = np.repeat(np.arange(len(sizes)), sizes)
            for words in differences(keys, columns[side], groups, DIFFERENT / choices, rng):
                return f"on d{side}, {words}: the mechanism keeps results or noise from run to run.  {WAY_OUT}"
        return ""


def _repeat(processes: Sequence[_OfProcess]) -> bool:
    """Whether all processes gave one varying sequence on d0, so improbably that it is no coincidence (`_REPEATED`)."""
    kept = min(len(one.outputs[0]) for one in processes)
    sequences = [[key(output) for output in one.outputs[0][:kept]] for one in processes]
    equal = all(sequence == sequences[0] for sequence in sequences)
    return equal and len(set(sequences[0])) > 1 and (len(sequences) - 1) * len(sequences[0]) >= _REPEATED


FRESH_RUNS = 1_000  # fresh runs on each dataset, unless the mechanism is slow


@dataclass(frozen=True, slots=True)
class Fresh:
    """The outcome of the fresh runs, and the region that they count."""

    confirmation: Confirmation
    witness: Witness | None = None


def confirm(
    collector: Collector,
    pair: int,
    tested: TradeoffFunction,
    significance: float,
    *,
    asked: Confirm,
    left: int,
    threshold: int | None = None,
) -> Fresh:
    """Make fresh runs of a pair on which the claim was refuted."""
    if asked == "never":
        return _without_runs(FreshRuns(collector, pair, 0), "the audit was told to make no fresh runs")
    if collector.sampler.execution.observe_time:
        words = "running times may depend on each other, so a region of them has no exact test"
        return Fresh(Confirmation(outcome="not confirmed", reason=words))
    proof, learner = collector.spent[pair], collector.learners[pair]
    wanted = asked if asked is not None else proof if collector.slow else max(FRESH_RUNS, proof)
    runs = min(wanted, left)
    if runs < 1 or not learner.ready:
        words = "no run was left" if learner.ready else "nothing was learned"
        return _without_runs(FreshRuns(collector, pair, 0), words)
    if threshold is None:
        threshold = _threshold(collector, pair, tested, runs, significance)
    fresh = FreshRuns(collector, pair, threshold)
    try:
        fresh.more(runs, tested, significance)
    except KeyboardInterrupt:
        collector.interrupted = True
        return _without_runs(fresh, "the fresh runs were interrupted", runs)
    except NotPossible as error:
        return _without_runs(fresh, str(error), runs)
    return _judged(fresh, tested, significance, runs)


def _threshold(collector: Collector, pair: int, tested: TradeoffFunction, runs: int, significance: float) -> int:
    """Choose the region with the largest expected size, from the outputs that the attacks have learned from."""
    learner = collector.learners[pair]
    p, q = (bin_counts(learner.score(side)) for side in learner.outputs())
    delta = delta_of(tested)
    otherwise = threshold_for_claim(p, q, tested, trials=runs, significance=significance)
    if math.isnan(delta):
        return threshold_for_mu(p, q, trials=runs, significance=significance, otherwise=otherwise)
    return threshold_for_epsilon(p, q, delta=delta, trials=runs, significance=significance, otherwise=otherwise)


def _without_runs(fresh: FreshRuns, why: str, planned: int = 0) -> Fresh:
    if fresh.constant:
        return Fresh(Confirmation(outcome="contradicted", reason=f"{REPEATED}, and {why}", runs=planned))
    return Fresh(Confirmation(outcome="not confirmed", reason=why, runs=planned))


def _judged(fresh: FreshRuns, tested: TradeoffFunction, significance: float, runs: int) -> Fresh:
    """Judge the counts of the fresh runs."""
    if doubts := fresh.doubts(tested, significance):
        outcome: ConfirmationOutcome = "contradicted"
        found = Confirmation(outcome=outcome, reason=doubts[0], runs=runs, processes=fresh.processes)
        return Fresh(found)
    p_value, (alpha, beta), reason = fresh.p_value(tested), fresh.counts.rates, ""
    if fresh.why:
        outcome, reason = "not confirmed", f"fresh runs were made in this process only: {fresh.why}"
    elif p_value <= significance:
        outcome = "confirmed"
    elif beta < float(tested.beta(alpha)):
        outcome = "consistent"
    else:
        outcome, reason = "not confirmed", "the fresh runs show no violation in this region"
    found = Confirmation(
        outcome=outcome, reason=reason, runs=runs, processes=fresh.processes, counts=fresh.counts, p_value=p_value
    )
    learner, pair = fresh.collector.learners[fresh.pair], fresh.collector.sampler.pairs[fresh.pair]
    witness = frozen_witness(learner, tested, fresh.scores, fresh.threshold, pair)
    return Fresh(found, replace(witness, scores=sparse(fresh.scores)))
