"""The settings of an audit, with all defaults."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from dpaudit.settings.limits import (
    ALL_CORES,
    check_choice,
    check_confidence,
    check_confirm,
    check_jobs,
    check_memory,
    check_timeout,
    check_trials,
    shown,
)

Method = Literal["sequential", "fixed"]
METHODS: tuple[str, ...] = get_args(Method)

Failures = Literal["stop", "outcome", "retry"]
FAILURES: tuple[str, ...] = get_args(Failures)

Resume = Literal["same", "anyway"]
RESUMES: tuple[str, ...] = get_args(Resume)

Confirm = int | Literal["never"] | None
"""Number of fresh runs after a refutation; None lets the audit decide."""

BACKENDS = ("loky", "dask", "ray")  # where runs execute; the default is loky, which uses this machine
POWER = 0.9  # probability of finding a violation that an audit reports as detectable; also the default of `plan`


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The arguments of `dpaudit.audit` other than mechanism, claim and pairs.

    The docstring of `dpaudit.audit` explains each argument.
    """

    attacks: Any = "auto"  # a name, an Attack, or a sequence of these
    trials: int = 100_000  # maximum number of runs per dataset, over all pairs together
    confidence: float = 0.99
    method: Method = "sequential"
    seed: int | None = None  # None draws a random seed
    jobs: int = 1
    store: str | Path | None = None
    resume: Resume = "same"  # whether only the trials of the same audit are resumed, or those of any audit
    detect: Any = None  # a claim or its text
    measure: bool = False  # continue up to `trials` after the claim has been refuted
    confirm: Confirm = None  # number of fresh runs after a refutation, or "never"; None lets the audit decide
    observe_time: bool = False
    failures: Failures = "stop"
    timeout: float | None = None  # seconds
    memory: int | str | None = None  # bytes, or text such as "2 GB"; after the checks, bytes
    progress: Callable[[Any], None] | bool | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if not (self.progress is None or isinstance(self.progress, bool) or callable(self.progress)):
            raise TypeError(
                "progress must be True, or a function that is called after each block, such as print, got "
                f"{self.progress!r}"
            )
        object.__setattr__(self, "trials", check_trials(self.trials))
        check_confidence(self.confidence)
        check_choice(self.method, METHODS, "method", between=" or ")
        if self.observe_time and not self.bets:
            raise ValueError(
                f"observe_time needs method sequential, got {self.method}: running times of different runs may depend "
                "on each other"
            )
        if not isinstance(self.measure, bool):
            raise TypeError(f"measure must be True or False, got {self.measure!r}")
        if self.confirm not in (None, "never"):
            object.__setattr__(self, "confirm", check_confirm(self.confirm))
        check_choice(self.failures, FAILURES, "failures")
        check_choice(self.resume, RESUMES, "resume", between=" or ")
        if self.resume != RESUMES[0] and self.store is None:
            raise ValueError(f"resume={self.resume!r} needs store, the file with the trials to resume")
        if self.store is not None and not isinstance(self.store, str | os.PathLike):
            raise TypeError(f'store must be the path of a file, such as "release.trials", got {shown(self.store)}')
        check_timeout(self.timeout)
        object.__setattr__(self, "memory", check_memory(self.memory))
        if self.memory is not None and self.observe_time:
            raise ValueError("memory cannot be combined with observe_time: timed runs execute in dpaudit's process")
        check_jobs(self.jobs)

    @property
    def bets(self) -> bool:
        """Whether the audit bets until it stops, so that a share of its bets can be placed on a planned violation."""
        return self.method == "sequential"

    @property
    def confirms(self) -> bool:
        """Whether fresh runs follow a refutation, and then measure the size of the violation."""
        return self.bets and not self.measure and not self.observe_time and self.confirm != "never"

    @property
    def final(self) -> bool:
        """Whether the audit bets on a refutation within `trials` runs, and cannot be continued with more runs."""
        return self.bets and self.store is None and not self.measure

    @property
    def keywords(self) -> dict[str, Any]:
        """The settings as keyword arguments of `dpaudit.audit`."""
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}


DEFAULTS = AuditSettings()


def default_jobs(backend: str) -> int:
    """Return the default number of worker processes: 1 on this machine, -1 (one per core) on a cluster."""
    return DEFAULTS.jobs if backend == BACKENDS[0] else ALL_CORES
