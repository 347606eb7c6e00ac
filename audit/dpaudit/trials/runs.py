"""Runs of a mechanism on one dataset, in whichever process they are made, and what comes of one that goes wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from dpaudit.mechanisms.loading import PythonMechanism
from dpaudit.mechanisms.places import place, words
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.outputs import Raised, Timed
from dpaudit.trials.conduct import Conduct, watched
from dpaudit.trials.limits import Limit, RunTimeout, limited
from dpaudit.trials.streams import stream, trial_streams

Failures = Literal["stop", "outcome", "retry"]

ATTEMPTS = 10  # at a run that fails, with "retry"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outputs of one side of a block; if the mechanism failed, those before the failure."""

    outputs: Sequence[Any] | np.ndarray[Any, Any]
    failure: str = ""  # what happened, on which trial; "" if nothing
    conduct: Conduct = field(default_factory=Conduct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is seen of a run besides its output, and what becomes of one that goes wrong."""

    observe_time: bool = False  # outputs are `Timed`
    failures: Failures = "stop"  # "outcome": the analyst sees them, as `Raised`; "retry": the run is made again
    timeout: float | None = None  # seconds after which a run, or a call of a batched mechanism, has gone wrong

    @property
    def run_by_run(self) -> bool:
        """Whether a call must make one run."""
        return self.observe_time or self.failures == "outcome"

    @property
    def attempts(self) -> int:
        """How often a run that fails is made."""
        return ATTEMPTS if self.failures == "retry" else 1


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs [start, stop) of one side of a pair: a task for any process."""

    mechanism: Any
    dataset: Any
    seed: int
    pair: int
    side: int
    start: int
    stop: int
    terms: Terms = field(default_factory=Terms)

    def __call__(self) -> Outcome:
        """Make them.  Never raises for what the mechanism does."""
        mechanism = resolved(self.mechanism)
        with watched(randomness=self.start == 0) as conduct, limited(self.terms.timeout) as limit:
            if hasattr(mechanism, "sample"):
                outcome = self._together(mechanism, limit, conduct)
            else:
                outcome = self._one_by_one(mechanism, limit, conduct)
        return replace(outcome, conduct=conduct)

    def _one_by_one(self, mechanism: Any, limit: Limit, conduct: Conduct) -> Outcome:
        outputs: list[Any] = []
        streams = trial_streams(self.seed, "trial", self.pair, self.side, start=self.start, stop=self.stop)
        for run, first in enumerate(streams, self.start):
            for rng in self._attempts(first, run):
                began = time.perf_counter()
                try:
                    with limit:
                        output = mechanism(self.dataset, rng)
                    failure = ""
                except (Exception, RunTimeout) as error:
                    failure, output = _said(error), Raised.of(error)
                    where = "" if self.terms.failures == "outcome" else place(error)
                if not failure:
                    break
                conduct.failed += 1
            if failure and self.terms.failures != "outcome":
                return Outcome(outputs, f"{failure} on run {run} of d{self.side}{self._again}{where}")
            outputs.append(Timed(output, time.perf_counter() - began) if self.terms.observe_time else output)
        return Outcome(outputs)

    def _together(self, mechanism: Any, limit: Limit, conduct: Conduct) -> Outcome:
        if self.terms.run_by_run:
            what = "the time of a run" if self.terms.observe_time else "which run raised"
            return Outcome([], f"makes many runs in one call, so that {what} cannot be observed")
        n = self.stop - self.start
        for rng in self._attempts(stream(self.seed, "batch", self.pair, self.side, self.start), self.start):
            try:
                with limit:
                    outputs = mechanism.sample(self.dataset, n, rng)
                if len(outputs) == n:
                    return Outcome(outputs)
                failure, detail = f"returned {len(outputs)} outputs instead of {n}", ""
            except MechanismError as error:  # of a program: it may end in many lines of stderr
                failure, detail = "failed", f": {error}"
            except (Exception, RunTimeout) as error:
                failure, detail = _said(error), place(error)
            conduct.failed += 1
        return Outcome([], f"{failure} in the batch of {n} runs from run {self.start}{self._again}{detail}")

    def _attempts(self, first: np.random.Generator, run: int) -> Iterator[np.random.Generator]:
        """The randomness of a run, and then of each time it is made again."""
        yield first
        for attempt in range(1, self.terms.attempts):
            yield stream(self.seed, "again", self.pair, self.side, run, attempt)

    @property
    def _again(self) -> str:
        return f", {self.terms.attempts} times" if self.terms.attempts > 1 else ""


def made(runs: Runs) -> Outcome:
    """The outcome of runs; schedulers want a function with a name."""
    return runs()


def resolved(mechanism: Any) -> Any:
    """The object to call."""
    return mechanism.loaded if isinstance(mechanism, PythonMechanism) else mechanism


def _said(error: BaseException) -> str:
    return str(error) if isinstance(error, RunTimeout) else f"raised {type(error).__name__}: {words(error)}"
