"""Runs a mechanism on one dataset, in any process, and handles runs that fail."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpaudit.outputs import Raised, Timed, as_alone, types_of
from dpaudit.running import CommandMechanism, IsolatedMechanism, Mechanism, Service
from dpaudit.running.foreign import (
    THIS_PROCESS,
    BudgetSpent,
    MechanismError,
    RunTimeout,
    SideEffects,
    Status,
    Timeout,
    advice,
    memory_limited,
    timeout_after,
    watched,
)
from dpaudit.running.mechanisms import resolved, samples
from dpaudit.running.outcomes import (
    IMMUTABLE,
    NotCopyable,
    UnusableOutputs,
    about_memory,
    copier,
    detached,
    detached_batch,
    immutable,
    in_words,
    message_of,
    of_code,
    of_machine,
    place,
)
from dpaudit.running.streams import kept_global_randomness, seed_global_randomness, stream, trial_streams
from dpaudit.running.wire import differ
from dpaudit.settings import DEFAULTS, Failures, check_memory
from dpaudit.values import Output, RawOutputs

_FIRST_RUNS = 8  # changes of the dataset are checked after these, and later after runs whose index is a power of 2


class Dataset:
    """A dataset that is copied for each run.  A mechanism never gets the original, unless it is immutable (`fixed`).

    `copy` returns a new copy of `value`; it is chosen once, so that copying a short list takes little time.
    """

    def __init__(self, value: object) -> None:
        self.__setstate__((detached(value),))

    def changed(self, copy: object) -> bool:
        """Whether a copy certainly differs from the dataset."""
        return not self.fixed and differ(self.value, copy)

    def __getstate__(self) -> object:
        return (self.value,)  # a tuple, because pickle does not call __setstate__ for a falsy state

    def __setstate__(self, state: tuple[Any]) -> None:
        (self.value,) = state
        self.copy: Callable[[], Any] = copier(self.value)
        self.fixed = immutable(self.value)


@contextmanager
def without_collections() -> Iterator[None]:
    """Disable automatic garbage collection, whose start and duration depend on the sizes of copies of datasets."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outputs of one side of a block, up to the first failure of the mechanism."""

    outputs: RawOutputs
    failure: str = ""  # description of the failure with the run, or "" if no run failed
    spent: bool = False  # whether the failure is the end of a budget
    side_effects: SideEffects = field(default_factory=SideEffects)
    types: frozenset[str] = frozenset()  # types that a shared call gave to all its outputs (`outputs.types_of`)


def one_shot(mechanism: object) -> bool:
    """Whether each run of a mechanism is a program of its own."""
    return isinstance(mechanism, CommandMechanism) and mechanism.one_shot


def costly(mechanism: object) -> bool:
    """Whether a run costs so much that an audit makes few runs beside its proof."""
    return one_shot(mechanism) or isinstance(mechanism, Service)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSettings:
    """The settings for the execution of runs; the docstring of `dpaudit.audit` explains them."""

    observe_time: bool = DEFAULTS.observe_time  # the outputs are of the class `Timed`
    failures: Failures = DEFAULTS.failures
    timeout: float | None = DEFAULTS.timeout  # of a run, or of a call of a batched mechanism, in seconds
    memory: int | None = None  # bytes that runs may add to their process; programs have their own limits

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", check_memory(self.memory))

    @property
    def run_by_run(self) -> bool:
        """Whether each call must make exactly one run."""
        return self.observe_time or self.failures == "outcome"

    @property
    def attempts(self) -> int:
        """Maximum number of attempts at one run."""
        return 10 if self.failures == "retry" else 1


def together(mechanism: object, execution: ExecutionSettings) -> bool:
    """Whether one call of a loaded mechanism makes many runs."""
    return samples(mechanism) and not execution.run_by_run and not one_shot(mechanism)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs [start, stop) of one side of a pair: a task for any process.  Each run gets a new copy of the dataset."""

    mechanism: object
    dataset: Dataset
    seed: int
    pair: int
    side: int
    start: int
    stop: int
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    beside: Dataset | None = None

    def __call__(self) -> Outcome:
        """Make the runs, inside `kept_global_randomness`.  Only KeyboardInterrupt propagates."""
        mechanism = resolved(self.mechanism)
        before = mechanism.repeated if isinstance(mechanism, Service) else 0
        seed_global_randomness(self.seed, self.pair, self.side, self.start)
        with (
            watched(randomness=self.start == 0) as side_effects,
            timeout_after(self.execution.timeout) as timeout,
            without_collections() if self.execution.observe_time else nullcontext(),
        ):
            if together(mechanism, self.execution):
                outcome = self._together(mechanism, timeout, side_effects)
            elif isinstance(mechanism, CommandMechanism | IsolatedMechanism) and not one_shot(mechanism):
                outcome = self._one_by_one_elsewhere(mechanism, timeout, side_effects)
            else:
                outcome = self._one_by_one(mechanism, timeout, side_effects)
        side_effects.repeated = mechanism.repeated - before if isinstance(mechanism, Service) else 0
        side_effects.moved_to = side_effects.moved_to or str(getattr(self.mechanism, "moved_to", ""))
        return replace(outcome, side_effects=side_effects)

    def _one_by_one(self, mechanism: Any, timeout: Timeout, side_effects: SideEffects) -> Outcome:
        outputs: list[Output] = []
        side_effects.clock = THIS_PROCESS if self.execution.observe_time else ""
        streams = trial_streams(self.seed, "trial", self.pair, self.side, start=self.start, stop=self.stop)
        timed, fresh_dataset = self.execution.observe_time, self.dataset.copy
        run_once = _one_run_of(mechanism) if samples(mechanism) else mechanism
        called = run_once if self.execution.timeout is None else lambda *arguments: timeout(run_once, *arguments)
        clock = time.perf_counter
        began = seconds = 0.0
        for run, first in enumerate(streams, self.start):
            for rng in self._attempts(first, run) if self.execution.attempts > 1 else (first,):
                error = None
                if not timed:
                    dataset = fresh_dataset()
                else:
                    copies, index = self._copies(run)
                    dataset = copies[index]
                    gc.collect(1)
                    began = clock()
                try:
                    output = called(dataset, rng)
                    if timed:
                        seconds = clock() - began
                    if type(output) not in IMMUTABLE:
                        output = detached(output)
                except KeyboardInterrupt:
                    raise
                except BaseException as raised:
                    seconds, error = clock() - began, raised
                if (run < _FIRST_RUNS or not run & (run - 1)) and self.dataset.changed(dataset):
                    side_effects.changed = f"d{self.side}"
                if error is None:
                    break
                if isinstance(error, BudgetSpent):
                    return Outcome(outputs, f"ended: {error}", spent=True)
                side_effects.failed += 1
                if not self._goes_on(error):
                    break
            if error is not None:
                if self.execution.failures != "outcome" or not self._goes_on(error):
                    again = self._again if self._goes_on(error) else self._why(error)
                    return Outcome(outputs, f"{self._failure(error)} on run {run} of d{self.side}{again}{place(error)}")
                output = Raised(type(error).__name__, message_of(error))
            outputs.append(Timed(output, seconds) if timed else output)
        return Outcome(outputs)

    def _copies(self, run: int) -> tuple[list[Any], int]:
        """Return copies of the datasets of both sides in random order, and the index of the copy for this side."""
        if self.beside is None:
            return [self.dataset.copy()], 0
        index = int(stream(self.seed, "copies", self.pair, self.side, run).integers(2))
        both = (self.beside, self.dataset) if index else (self.dataset, self.beside)
        return [dataset.copy() for dataset in both], index

    def _one_by_one_elsewhere(
        self, mechanism: CommandMechanism | IsolatedMechanism, timeout: Timeout, side_effects: SideEffects
    ) -> Outcome:
        """Make runs one by one in another process, without retries, as a new process would be slower at first."""
        outputs: list[Output] = []
        timed, outcomes = self.execution.observe_time, self.execution.failures == "outcome"
        for run in range(self.start, self.stop):
            rng = stream(self.seed, "batch", self.pair, self.side, run)
            try:
                made = timeout(mechanism.run, *self._copies(run), rng, outcomes=outcomes)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                side_effects.failed += 1
                return Outcome(outputs, f"{self._failure(error)} on run {run} of d{self.side}{self._why(error)}")
            side_effects.clock = made.clock if timed else ""
            if getattr(mechanism, "changed_dataset", False):
                side_effects.changed = f"d{self.side}"
            output = made.output if made.raised is None else Raised(*made.raised)
            outputs.append(Timed(output, made.seconds) if timed else output)
        return Outcome(outputs)

    def _together(self, mechanism: Any, timeout: Timeout, side_effects: SideEffects) -> Outcome:
        n, detail, again = self.stop - self.start, "", self._again
        for rng in self._attempts(stream(self.seed, "batch", self.pair, self.side, self.start), self.start):
            dataset = self.dataset.copy()
            side_effects.failed += 1  # decremented if the call returns n outputs
            try:
                outputs = timeout(mechanism.sample, dataset, n, rng)
                # A mechanism in another process reports a changed dataset.  In this process, the copy shows the change.
                if getattr(mechanism, "changed_dataset", False) or self.dataset.changed(dataset):
                    side_effects.changed = f"d{self.side}"
                if len(outputs) == n:
                    outcome = Outcome(detached_batch(outputs))
                    # The process of an environment may call a function once for each run.
                    if not isinstance(mechanism, IsolatedMechanism) or mechanism.calls_many:
                        outcome = Outcome(as_alone(outcome.outputs), types=types_of(outcome.outputs))
                    side_effects.failed -= 1
                    return outcome
                failure, detail = f"returned {len(outputs)} outputs instead of {n}", ""
            except MechanismError as error:  # the message may end with many lines of a program's stderr
                failure, detail = "failed", f": {message_of(error)}"
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                failure, detail = self._failure(error), place(error)
                if not self._goes_on(error):
                    again = self._why(error)
                    break
        return Outcome([], f"{failure} in the batch of {n} runs from run {self.start}{again}{detail}")

    def _goes_on(self, error: BaseException) -> bool:
        """Whether a run that ended with this error may be retried or counted as an outcome.

        Timeouts depend on the load, which drifts, so only the random order of observed times makes two runs comparable.
        """
        if isinstance(error, RunTimeout):
            return self.execution.observe_time
        # Earlier runs decide how much of the machine, and of a memory limit, is left.
        exhausted = self.execution.memory is not None and about_memory(error)
        exhausted = exhausted or (self.execution.failures == "outcome" and of_machine(error))
        ours = (NotCopyable, UnusableOutputs, MechanismError)
        return of_code(error) and not exhausted and not isinstance(error, ours)

    def _why(self, error: BaseException) -> str:
        """Return the reason why this error ends the audit although other failures do not."""
        limited = self.execution.memory is not None and about_memory(error)
        if self.execution.failures == "outcome" and of_machine(error) and not limited:
            return "; a lack of memory, disk space or file handles is no outcome, because it depends on the machine"
        if not isinstance(error, RunTimeout) or self.execution.failures == "stop" or self._goes_on(error):
            return ""
        what = "an outcome" if self.execution.failures == "outcome" else "retried"
        return (
            f"; a run that takes too long is not {what} unless observe_time is set, because a timeout also depends on "
            "the load of the machine: raise the timeout, or set observe_time"
        )

    def _failure(self, error: BaseException) -> str:
        """Return the failure as the predicate of a sentence about the mechanism."""
        failure = f"raised {in_words(error)}"
        if isinstance(error, MechanismError | Status):
            failure = f"failed: {message_of(error)}{''.join(getattr(error, '__notes__', ()))}"
        elif isinstance(error, (RunTimeout, UnusableOutputs)):
            failure = message_of(error)
        elif isinstance(error, NotCopyable):
            failure = (
                f"returned an output that cannot be kept: {message_of(error)}; return numbers, text, or lists and dicts"
            )
        if self.execution.memory is not None and about_memory(error):
            return f"{failure} ({advice(self.execution.memory)})"
        return failure

    def _attempts(self, first: np.random.Generator, run: int) -> Iterator[np.random.Generator]:
        """Yield the generator of a run, and then a generator for each retry."""
        yield first
        for attempt in range(1, self.execution.attempts):
            yield stream(self.seed, "again", self.pair, self.side, run, attempt)

    @property
    def _again(self) -> str:
        return f", {self.execution.attempts} times" if self.execution.attempts > 1 else ""


def _one_run_of(mechanism: Mechanism) -> Callable[[Any, np.random.Generator], Output]:
    """Return a function that makes one run of a mechanism that makes many runs in one call."""

    def run_once(dataset: Any, rng: np.random.Generator) -> Output:
        outputs = mechanism.sample(dataset, 1, rng)
        if len(outputs) != 1:
            raise UnusableOutputs(f"returned {len(outputs)} outputs instead of 1")
        return next(iter(np.asarray(outputs) if hasattr(outputs, "columns") else outputs))

    return run_once


def made(runs: Runs) -> Outcome:
    """Return the outcome of runs.  Schedulers need this function, because it can be pickled by name."""
    with kept_global_randomness(), memory_limited(runs.execution.memory if limited_here(runs) else None):
        return runs()


def limited_here(runs: Runs) -> bool:
    """Whether a memory limit applies to the process of the runs, and not to a program of the mechanism."""
    programs = isinstance(runs.mechanism, CommandMechanism | IsolatedMechanism)
    return runs.execution.memory is not None and not programs
