"""Runs a mechanism on both datasets of a pair, in this process or in other processes, with the same outcome."""

from __future__ import annotations

import contextlib
import copy
import itertools
import operator
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpaudit.numerics import Flags
from dpaudit.outputs import OutputError, refuse_mixed_types, types_of
from dpaudit.pairs.pair import Pair, distinct
from dpaudit.running import Service
from dpaudit.running.backends import called_elsewhere, dask_workers
from dpaudit.running.foreign import SideEffects, advice
from dpaudit.running.mechanisms import resolved
from dpaudit.running.outcomes import NotCopyable, immutable, in_words, plain
from dpaudit.running.runs import Dataset, ExecutionSettings, Outcome, Runs, limited_here, made, together
from dpaudit.running.store import Store
from dpaudit.running.streams import kept_global_randomness, stream
from dpaudit.settings import DEFAULTS
from dpaudit.values import RawOutputs


def generator_in(value: Any) -> str:
    """Return the type of a random generator inside `value`, whose copies would repeat its numbers, or ""."""
    if immutable(value) or (type(value) is np.ndarray and not value.dtype.hasobject):
        return ""
    with contextlib.suppress(RecursionError):  # the value contains itself or is deeply nested
        if plain(value):
            return ""
    copies: dict[int, object] = {}
    try:
        copy.deepcopy(value, copies)
    except Exception:
        return ""
    torch = getattr(sys.modules.get("torch"), "Generator", random.Random)
    kinds = (random.Random, np.random.Generator, np.random.BitGenerator, np.random.RandomState, torch)
    kind = next((type(part) for part in copies.values() if isinstance(part, kinds)), None)
    return "" if kind is None else f"{kind.__module__}.{kind.__qualname__}"


CHUNK = 16_384  # maximum number of runs in one call of a batched mechanism; random streams depend on this value
_WORTH_SENDING = 0.02  # minimum seconds of work that justify other processes; less work takes longer there


@dataclass
class Sampler:
    """Makes the trials of one mechanism on copies of the datasets.

    The address (seed, pair, side, t) determines the random numbers of trial t, in every process.  A batched mechanism
    uses one stream for all runs of a call, at most CHUNK from the start of the caller's block, so its outputs depend on
    this.
    """

    mechanism: object
    pairs: Sequence[Pair]
    seed: int
    jobs: int = DEFAULTS.jobs
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    store: Store | None = None
    side_effects: list[SideEffects] = field(default_factory=lambda: [SideEffects(), SideEffects()], init=False)
    clock: str = field(default="", init=False)  # one of `foreign.CLOCKS`, if running times are observed
    seconds_per_run: float = field(default=0.0, init=False)  # of the fastest block in this process; 0 with workers
    _datasets: list[tuple[Dataset, Dataset]] = field(init=False)  # d0 and d1 of each pair
    _types: list[set[str]] = field(init=False)  # types of the outputs of shared calls, for each pair

    def __post_init__(self) -> None:
        self.pairs = distinct(self.pairs)
        self._types = [set() for _ in self.pairs]
        self._datasets = [(_dataset(pair, 0, pair.d0), _dataset(pair, 1, pair.d1)) for pair in self.pairs]
        self.pairs = [
            # The label keeps the text of the original datasets; the text of a copy may differ.
            replace(pair, d0=d0.value, d1=d1.value, label=str(pair))
            for pair, (d0, d1) in zip(self.pairs, self._datasets, strict=True)
        ]

    @cached_property
    def workers(self) -> int:
        """The number of processes that make runs at the same time."""
        if self.jobs == 1:
            return 1
        from joblib import effective_n_jobs

        return max(1, int(effective_n_jobs(self.jobs)))

    def block(self, pair: int, start: int, stop: int) -> tuple[Outcome, Outcome]:
        """Make the trials [start, stop) of a pair, or read the stored block, which may hold only the first of them."""
        kept = self.store.get(pair, start, stop) if self.store is not None else None
        if kept is not None and self.store is not None:
            recorded = self.store.side_effects(pair, start)
            for side in kept:  # an array holds floats, which may have been integers
                self._types[pair] |= {"numbers"} if isinstance(side, np.ndarray) else types_of(side)
            self.side_effects = list(map(operator.add, self.side_effects, recorded))
            return Outcome(kept[0]), Outcome(kept[1])
        outcomes = self.of_one_type(pair, self._sampled(pair, start, stop))
        for outcome in outcomes:
            if outcome.side_effects.changed:
                outcome.side_effects.changed += f" of pair {self.pairs[pair]}"
        made = (outcome.side_effects for outcome in outcomes)
        self.side_effects = list(map(operator.add, self.side_effects, made))
        if self.store is not None:
            complete = min(len(outcome.outputs) for outcome in outcomes)
            outputs0, outputs1 = (outcome.outputs[:complete] for outcome in outcomes)
            self.store.put(pair, start, outputs0, outputs1, (outcomes[0].side_effects, outcomes[1].side_effects))
            if (stored := self.store.get(pair, start, start + complete)) is not None:
                # A resumed audit reads the stored form, whose types may differ.  So every audit uses the stored form.
                first, second = (replace(o, outputs=s) for o, s in zip(outcomes, stored, strict=True))
                return first, second
        return outcomes

    def of_one_type(self, pair: int, outcomes: tuple[Outcome, Outcome]) -> tuple[Outcome, Outcome]:
        """Return the outcomes, or failures if numpy may have changed an output because of others of its call."""
        self._types[pair] |= outcomes[0].types | outcomes[1].types
        try:
            refuse_mixed_types(self._types[pair])
        except OutputError as error:
            failure = f"gave an output that cannot be read: {error}"
            return replace(outcomes[0], outputs=[], failure=failure), replace(outcomes[1], outputs=[], failure=failure)
        return outcomes

    def _sampled(self, pair: int, start: int, stop: int) -> tuple[Outcome, Outcome]:
        if self.execution.observe_time:
            return self._timed(pair, start, stop)
        began = time.perf_counter()
        # Every call has a separate stream, so blocks may be cut anywhere between calls.
        size = (
            CHUNK
            if together(resolved(self.mechanism), self.execution)
            else max(1, -(-(stop - start) // (2 * self.workers)))
        )
        cuts = [(a, min(a + size, stop)) for a in range(start, stop, size)]
        tasks = [
            Runs(self.mechanism, dataset, self.seed, pair, side, a, b, self.execution)
            for side, dataset in enumerate(self._datasets[pair])
            for a, b in cuts
        ]
        limited = limited_here(tasks[0])  # a memory limit set in this process would also limit the audit itself
        slow = (
            self.jobs != 1
            and not isinstance(self.mechanism, Service)
            and self.seconds_per_run * 2 * (stop - start) > _WORTH_SENDING
        )
        if slow or limited:  # the clock would include the time to start workers
            parts = _elsewhere(tasks, self.jobs)
        else:
            with kept_global_randomness():
                parts = [task() for task in tasks]
            seconds = (time.perf_counter() - began) / (2 * (stop - start))
            self.seconds_per_run = min(seconds, self.seconds_per_run or seconds)  # a busy machine makes no run slow
        return _joined(parts[: len(cuts)]), _joined(parts[len(cuts) :])

    def first_sides(self, pair: int, start: int, trials: int) -> Flags:
        """Return the side of the first run of each trial, decided by fair coins, for observed running times."""
        return stream(self.seed, "order", pair, start).random(trials) < 0.5

    def _timed(self, pair: int, start: int, stop: int) -> tuple[Outcome, Outcome]:
        """Make trials one by one, with their two runs in random order, so that drift does not depend on the dataset."""
        parts: tuple[list[Outcome], list[Outcome]] = ([], [])
        datasets = self._datasets[pair]
        order = self.first_sides(pair, start, stop - start)
        with kept_global_randomness():
            for t, first in enumerate(order, start):
                for side in (int(first), 1 - int(first)):
                    dataset, beside = datasets[side], datasets[1 - side]
                    runs = Runs(self.mechanism, dataset, self.seed, pair, side, t, t + 1, self.execution, beside)
                    outcome, before = runs(), self.clock
                    clock = outcome.side_effects.clock
                    self.clock = before or clock
                    if not outcome.failure and clock != self.clock:
                        ways = f"one time was {clock}, and earlier times were {before}"
                        problem = f"must let all running times be measured in the same way, but {ways}"
                        outcome = replace(outcome, outputs=[], failure=problem)
                    parts[side].append(outcome)
                if parts[0][-1].failure or parts[1][-1].failure:
                    break
        return _joined(parts[0]), _joined(parts[1])


def _dataset(pair: Pair, side: int, value: object) -> Dataset:
    if kind := generator_in(value):
        raise ValueError(
            f"d{side} of pair {pair} contains a random generator ({kind}).  Every run gets a copy of the dataset, so "
            "all runs would use the same random numbers.  Let the mechanism use its rng argument"
        )
    try:
        return Dataset(value)
    except NotCopyable as error:
        raise ValueError(
            f"d{side} of pair {pair} cannot be copied: {error}.  Every run gets a new copy, so the dataset "
            "must be data (numbers, text, arrays, data frames, or lists and dicts of these) or an object with "
            "__deepcopy__.  Let the mechanism itself open files and connections"
        ) from None


def _elsewhere(tasks: list[Runs], jobs: int) -> list[Outcome]:
    for failed in range(tasks[0].execution.attempts):
        before = dask_workers()
        try:
            outcomes: list[Outcome] = called_elsewhere(made, tasks, jobs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a worker died, or the mechanism cannot be sent to a worker
            memory = tasks[0].execution.memory
            hint = f"; {advice(memory)}" if limited_here(tasks[0]) and memory is not None else "; try jobs=1"
            why = f"could not be run in other processes ({in_words(error)}){hint}"
        else:
            if lost := failed + len(before - dask_workers()):
                outcomes[0] = replace(outcomes[0], side_effects=outcomes[0].side_effects + SideEffects(lost=lost))
            return outcomes
    return [Outcome([], why)] * len(tasks)


def _joined(parts: list[Outcome]) -> Outcome:
    """Join outcomes in order, up to the first failure."""
    blocks: list[RawOutputs] = []
    failure, spent, side_effects, types = "", False, SideEffects(), frozenset[str]()
    for part in parts:
        blocks.append(part.outputs)
        failure, spent = part.failure, part.spent
        side_effects, types = side_effects + part.side_effects, types | part.types
        if failure:
            break
    outputs = blocks[0]
    if len(blocks) > 1:
        arrays = [block for block in blocks if isinstance(block, np.ndarray)]
        if len(arrays) == len(blocks) and len({array.shape[1:] for array in arrays}) == 1:
            outputs = np.concatenate(arrays)
        else:
            lists = (block.tolist() if isinstance(block, np.ndarray) else block for block in blocks)
            outputs = list(itertools.chain.from_iterable(lists))
    return Outcome(outputs, failure, spent, side_effects, types)
