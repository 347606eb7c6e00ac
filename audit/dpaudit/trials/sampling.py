"""Runs a mechanism on both datasets of a pair, here or in other processes, with the same outcome."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpaudit.neighbours import Pair
from dpaudit.trials.backends import called_elsewhere, dask_workers
from dpaudit.trials.conduct import Conduct
from dpaudit.trials.runs import Outcome, Runs, Terms, made, resolved
from dpaudit.trials.store import Store
from dpaudit.trials.streams import stream

CHUNK = 16_384  # runs in one call of a batched mechanism; part of the address of its randomness
_WORTH_SENDING = 0.02  # seconds of work below which other processes cost more than they save


@dataclass
class Sampler:
    """Trials of one mechanism.  The randomness of trial t of a side is at (seed, pair, side, t), whoever runs it.

    A batched mechanism draws all runs of a call from one stream, so for it the calls are part of the address: they
    start where the caller's blocks start and are CHUNK long at most.
    """

    mechanism: Any
    pairs: Sequence[Pair]
    seed: int
    jobs: int = 1
    terms: Terms = field(default_factory=Terms)
    store: Store | None = None  # where blocks are kept, and looked for first
    conduct: list[Conduct] = field(default_factory=lambda: [Conduct(), Conduct()], init=False)  # with d0, with d1
    _seconds_per_run: float = field(default=0.0, init=False)

    @cached_property
    def _workers(self) -> int:
        if self.jobs == 1:
            return 1
        from joblib import effective_n_jobs

        return max(1, int(effective_n_jobs(self.jobs)))

    def block(self, pair: int, start: int, stop: int) -> tuple[Outcome, Outcome]:
        """Trials [start, stop) of a pair, or the first ones of them: outputs of d0 and of d1."""
        kept = self.store.get(pair, start, stop) if self.store is not None else None
        if kept is not None and self.store is not None:
            told = self.store.conduct(pair, start)
            self.conduct = [so_far + one for so_far, one in zip(self.conduct, told, strict=True)]
            return Outcome(kept[0]), Outcome(kept[1])
        outcomes = self._sampled(pair, start, stop)
        self.conduct = [so_far + outcome.conduct for so_far, outcome in zip(self.conduct, outcomes, strict=True)]
        if self.store is not None:
            complete = min(len(outcome.outputs) for outcome in outcomes)
            outputs0, outputs1 = (outcome.outputs[:complete] for outcome in outcomes)
            self.store.put(pair, start, outputs0, outputs1, (outcomes[0].conduct, outcomes[1].conduct))
            if (stored := self.store.get(pair, start, start + complete)) is not None:
                # as they will be read when the audit goes on: types that Python makes of others come back as those
                first, second = (replace(o, outputs=s) for o, s in zip(outcomes, stored, strict=True))
                return first, second
        return outcomes

    def _sampled(self, pair: int, start: int, stop: int) -> tuple[Outcome, Outcome]:
        if self.terms.observe_time:
            return self._timed(pair, start, stop)
        began = time.perf_counter()
        cuts = self._cuts(start, stop)
        tasks = [
            Runs(self.mechanism, dataset, self.seed, pair, side, a, b, self.terms)
            for side, dataset in enumerate((self.pairs[pair].d0, self.pairs[pair].d1))
            for a, b in cuts
        ]
        parallel = self.jobs != 1 and self._seconds_per_run * 2 * (stop - start) > _WORTH_SENDING
        parts = _elsewhere(tasks, self.jobs) if parallel else [task() for task in tasks]
        if not parallel:  # elsewhere the clock would also count the processes' start
            self._seconds_per_run = (time.perf_counter() - began) / (2 * (stop - start))
        return _joined(parts[: len(cuts)]), _joined(parts[len(cuts) :])

    def _timed(self, pair: int, start: int, stop: int) -> tuple[Outcome, Outcome]:
        """Here, one trial after the other, its two runs in an order that a coin decides: clocks, caches and load drift,
        and what they do to times must not depend on the dataset."""
        parts: tuple[list[Outcome], list[Outcome]] = ([], [])
        datasets = (self.pairs[pair].d0, self.pairs[pair].d1)
        for t, first in enumerate(stream(self.seed, "order", pair, start).integers(2, size=stop - start), start):
            for side in (int(first), 1 - int(first)):
                parts[side].append(Runs(self.mechanism, datasets[side], self.seed, pair, side, t, t + 1, self.terms)())
            if parts[0][-1].failure or parts[1][-1].failure:
                break
        return _joined(parts[0]), _joined(parts[1])

    def _cuts(self, start: int, stop: int) -> list[tuple[int, int]]:
        if hasattr(resolved(self.mechanism), "sample"):
            size = CHUNK
        else:  # runs have streams of their own, so the cuts are free
            size = max(1, -(-(stop - start) // (2 * self._workers)))
        return [(a, min(a + size, stop)) for a in range(start, stop, size)]


def _elsewhere(tasks: list[Runs], jobs: int) -> list[Outcome]:
    for failed in range(tasks[0].terms.attempts):
        before = dask_workers()
        try:
            outcomes: list[Outcome] = called_elsewhere(made, tasks, jobs)
        except Exception as error:  # a worker died, or the mechanism does not survive the way there
            why = f"could not be run in other processes ({type(error).__name__}: {error}); try jobs=1"
        else:
            if lost := failed + len(before - dask_workers()):
                outcomes[0] = replace(outcomes[0], conduct=outcomes[0].conduct + Conduct(lost=lost))
            return outcomes
    return [Outcome([], why)] * len(tasks)


def _joined(parts: list[Outcome]) -> Outcome:
    """Parts in order, up to the first failure."""
    whole: list[Sequence[Any] | np.ndarray[Any, Any]] = []
    failure, conduct = "", Conduct()
    for part in parts:
        whole.append(part.outputs)
        failure, conduct = part.failure, conduct + part.conduct
        if failure:
            break
    if len(whole) == 1:
        return Outcome(whole[0], failure, conduct)
    arrays = [outputs for outputs in whole if isinstance(outputs, np.ndarray)]
    if len(arrays) == len(whole):
        return Outcome(np.concatenate(arrays), failure, conduct)
    return Outcome([output for outputs in whole for output in outputs], failure, conduct)
