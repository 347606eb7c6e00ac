"""Runs a mechanism on both datasets of a pair, here or in other processes, with the same outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dpaudit.mechanisms.loading import PythonMechanism
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.neighbours import Pair
from dpaudit.outputs import Raised, Timed
from dpaudit.trials.limits import Limit, RunTimeout, limited
from dpaudit.trials.store import Store
from dpaudit.trials.streams import stream, trial_streams

CHUNK = 16_384  # runs in one call of a batched mechanism; part of the address of its randomness
_WORTH_SENDING = 0.02  # seconds of work below which other processes cost more than they save


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outputs of one side of a block; if the mechanism failed, those before the failure."""

    outputs: Sequence[Any] | np.ndarray[Any, Any]
    failure: str = ""  # what happened, on which trial; "" if nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is seen of a run besides its output, and what becomes of one that goes wrong."""

    observe_time: bool = False  # outputs are `Timed`
    failures: Literal["stop", "outcome"] = "stop"  # "outcome": the analyst sees them, as `Raised`
    timeout: float | None = None  # seconds after which a run, or a call of a batched mechanism, has gone wrong

    @property
    def run_by_run(self) -> bool:
        """Whether a call must make one run."""
        return self.observe_time or self.failures == "outcome"


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
        if kept is not None:
            return Outcome(kept[0]), Outcome(kept[1])
        outcomes = self._sampled(pair, start, stop)
        if self.store is not None:
            complete = min(len(outcome.outputs) for outcome in outcomes)
            self.store.put(pair, start, *(outcome.outputs[:complete] for outcome in outcomes))
        return outcomes

    def _sampled(self, pair: int, start: int, stop: int) -> tuple[Outcome, Outcome]:
        if self.terms.observe_time:
            return self._timed(pair, start, stop)
        began = time.perf_counter()
        cuts = self._cuts(start, stop)
        tasks = [
            (self.mechanism, dataset, self.seed, pair, side, a, b, self.terms)
            for side, dataset in enumerate((self.pairs[pair].d0, self.pairs[pair].d1))
            for a, b in cuts
        ]
        parallel = self.jobs != 1 and self._seconds_per_run * 2 * (stop - start) > _WORTH_SENDING
        parts = _elsewhere(tasks, self.jobs) if parallel else [run(*task) for task in tasks]
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
                parts[side].append(run(self.mechanism, datasets[side], self.seed, pair, side, t, t + 1, self.terms))
            if parts[0][-1].failure or parts[1][-1].failure:
                break
        return _joined(parts[0]), _joined(parts[1])

    def _cuts(self, start: int, stop: int) -> list[tuple[int, int]]:
        if hasattr(_resolved(self.mechanism), "sample"):
            size = CHUNK
        else:  # runs have streams of their own, so the cuts are free
            size = max(1, -(-(stop - start) // (2 * self._workers)))
        return [(a, min(a + size, stop)) for a in range(start, stop, size)]


def run(
    mechanism: Any, dataset: Any, seed: int, pair: int, side: int, start: int, stop: int, terms: Terms | None = None
) -> Outcome:
    """Runs [start, stop) of one side.  Never raises for what the mechanism does."""
    terms = terms or Terms()
    found = _resolved(mechanism)
    try:
        with limited(terms.timeout) as limit:
            if not hasattr(found, "sample"):
                return _one_by_one(found, dataset, seed, pair, side, start, stop, terms, limit)
            if terms.run_by_run:
                what = "the time of a run" if terms.observe_time else "which run raised"
                return Outcome([], f"makes many runs in one call, so that {what} cannot be observed")
            with limit.one_run():
                return _batch(found.sample, dataset, stop - start, stream(seed, "batch", pair, side, start), start)
    except RunTimeout as error:
        return Outcome([], f"{error} in the batch of {stop - start} runs from run {start}")


def _one_by_one(
    mechanism: Any,
    dataset: Any,
    seed: int,
    pair: int,
    side: int,
    start: int,
    stop: int,
    terms: Terms,
    limit: Limit,
) -> Outcome:
    outputs: list[Any] = []
    for rng in trial_streams(seed, "trial", pair, side, start=start, stop=stop):
        began = time.perf_counter()
        try:
            with limit.one_run():
                output = mechanism(dataset, rng)
        except (Exception, RunTimeout) as error:
            if terms.failures == "stop":
                what = str(error) if isinstance(error, RunTimeout) else _said(error)
                return Outcome(outputs, f"{what} on run {start + len(outputs)} of d{side}")
            output = Raised.of(error)
        outputs.append(Timed(output, time.perf_counter() - began) if terms.observe_time else output)
    return Outcome(outputs)


def _batch(
    sample: Callable[[Any, int, np.random.Generator], Any], dataset: Any, n: int, rng: np.random.Generator, start: int
) -> Outcome:
    where = f"in the batch of {n} runs from run {start}"
    try:
        outputs = sample(dataset, n, rng)
        count = len(outputs)
    except MechanismError as error:  # of a program: it may end in many lines of stderr
        return Outcome([], f"failed {where}: {error}")
    except Exception as error:
        return Outcome([], f"{_said(error)} {where}")
    if count != n:
        return Outcome([], f"returned {count} outputs instead of {n} {where}")
    return Outcome(outputs)


def _said(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error}"


def _resolved(mechanism: Any) -> Any:
    return mechanism.loaded if isinstance(mechanism, PythonMechanism) else mechanism


def _elsewhere(tasks: list[tuple[Any, ...]], jobs: int) -> list[Outcome]:
    from joblib import Parallel, delayed

    try:
        outcomes: list[Outcome] = Parallel(n_jobs=jobs)(delayed(run)(*task) for task in tasks)
    except Exception as error:  # a worker died, or the mechanism does not survive the way there
        why = f"could not be run in other processes ({type(error).__name__}: {error}); try jobs=1"
        return [Outcome([], why)] * len(tasks)
    return outcomes


def _joined(parts: list[Outcome]) -> Outcome:
    """Parts in order, up to the first failure."""
    whole: list[Sequence[Any] | np.ndarray[Any, Any]] = []
    failure = ""
    for part in parts:
        whole.append(part.outputs)
        failure = part.failure
        if failure:
            break
    if len(whole) == 1:
        return Outcome(whole[0], failure)
    arrays = [outputs for outputs in whole if isinstance(outputs, np.ndarray)]
    if len(arrays) == len(whole):
        return Outcome(np.concatenate(arrays), failure)
    return Outcome([output for outputs in whole for output in outputs], failure)
