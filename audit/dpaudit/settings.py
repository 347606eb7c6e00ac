"""The settings of an audit: one definition of each default and each limit, with only the standard library imported."""

from __future__ import annotations

import dataclasses
import numbers
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args

MIN_TRIALS, MAX_TRIALS = 1, 2**53  # JSON numbers are doubles, which are exact up to 2**53
IMPOSSIBLE, CERTAIN = 0, 1  # confidences and probabilities lie strictly between these two values
NO_TIME = 0  # seconds; a timeout must exceed this value
ALL_CORES = -1  # number of jobs that means one process per core

# of files that somebody else may have written: what a reader's memory and patience can take
MAX_DATA_BYTES = 2**30  # a file with a dataset
MAX_ENTRIES = 100_000  # keys, list entries and pieces of 40 letters of a YAML file, with aliases expanded
MAX_SCORES = 2**28  # scores (2 GiB): a small compressed file may expand a millionfold
MAX_LINE = 2**20  # characters of a line of scores


def check_trials(given: object, name: str = "trials") -> int:
    """Check a number of runs per dataset and return it as an int."""
    if not _is_number(given):
        raise TypeError(_about(name, f"must be a whole number, got {shown(given)}"))
    if not given >= MIN_TRIALS:
        raise ValueError(_about(name, f"must be at least {MIN_TRIALS}, got {given}"))
    if given > MAX_TRIALS or given != int(given):
        raise ValueError(_about(name, f"must be a whole number up to 2**53, got {given}"))
    return int(given)


def check_confirm(given: object, name: str = "confirm") -> int | Literal["never"]:
    """Check a number of fresh runs, or "never", and return it; text may hold the number."""
    if given == "never":
        return "never"
    try:
        return check_trials(int(given) if isinstance(given, str) else given, name)
    except (TypeError, ValueError):
        words = f'must be a number of runs, at least {MIN_TRIALS}, or "never", got {shown(given)}'
        raise ValueError(_about(name, words)) from None


def check_confidence(given: object, name: str = "confidence", *, written: str | None = None) -> None:
    """Check a confidence, which must lie strictly between 0 and 1."""
    if not _is_number(given):
        raise TypeError(_about(name, f"must be a number such as 0.99, got {shown(given)}"))
    check_probability(given, name, written=f"{written or given}{percent_meant(given)}")


def check_probability(given: float, name: str, *, written: str | None = None) -> None:
    """Check a probability, which must lie strictly between 0 and 1."""
    if not IMPOSSIBLE < given < CERTAIN:
        between = f"must lie strictly between {IMPOSSIBLE} and {CERTAIN}"
        raise ValueError(_about(name, f"{between}, got {given if written is None else written}"))


def percent_meant(given: float | str) -> str:
    """Return a hint if a confidence was probably meant as a percentage."""
    if not 50 <= float(given) < 100:
        return ""
    return f"; did you mean {Decimal(str(given)).scaleb(-2).normalize():f}?"


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_jobs(given: int, name: str = "jobs") -> None:
    """Check a number of worker processes."""
    if given == 0 or given < ALL_CORES:
        raise ValueError(_about(name, f"must be {ALL_CORES} or at least 1, got {given}"))


def check_choice(given: object, allowed: Sequence[str], name: str, *, between: str = ", ", lead: str = "") -> None:
    """Check that a value is one of the allowed words."""
    if given not in allowed:
        raise ValueError(_about(name, f"must be {lead}{between.join(allowed)}, got {given!r}"))


def shown(given: object) -> str:
    """Return the `repr` of a value, shortened to 60 characters and an ellipsis."""
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _is_number(given: object) -> TypeGuard[float]:
    return isinstance(given, numbers.Real) and not isinstance(given, bool)


def _about(name: str, words: str) -> str:
    return f"{name} {words}" if name else words


MIN_MEMORY, MAX_MEMORY = 16 * 2**20, 2**50  # bytes; hardly any program starts with less, and no process needs more

_DECIMAL = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_UNITS = {name.casefold(): size for name, size in (_DECIMAL | _BINARY).items()}
_AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([A-Za-z]{1,3})")


def check_memory(given: object, name: str = "memory") -> int | None:
    """Check a memory limit, such as "2 GB" or a number of bytes, and return it in bytes; None for no limit."""
    if given is None:
        return None
    allowed = f'{name} must be text such as "2 GB" or "512 MB", or a whole number of bytes'.lstrip()
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise TypeError(f"{allowed}, got {shown(given)}")
    size: int | None = given if isinstance(given, int) else None
    if isinstance(given, str) and (amount := _AMOUNT.fullmatch(given.strip())) and amount[2].casefold() in _UNITS:
        size = int(float(amount[1]) * _UNITS[amount[2].casefold()])
    if size is None:
        raise ValueError(f"{allowed}, got {shown(given)}; units are {', '.join((*_DECIMAL, *_BINARY))}")
    if not MIN_MEMORY <= size <= MAX_MEMORY:
        between = f"from {memory_text(MIN_MEMORY)} to {memory_text(MAX_MEMORY)}"
        raise ValueError(f"{name} must be {between}, got {shown(given)}".lstrip())
    return size


def memory_text(size: int) -> str:
    """Return a number of bytes in the largest unit that shows it exactly, such as "512 MB", or in bytes."""
    for unit, factor in sorted((_DECIMAL | _BINARY).items(), key=lambda item: -item[1]):
        if size % factor == 0 and size >= factor and unit != "B":
            return f"{size // factor} {unit}"
    return f"{size:,} bytes"


Method = Literal["sequential", "fixed"]
METHODS: tuple[str, ...] = get_args(Method)

Failures = Literal["stop", "outcome", "retry"]
FAILURES: tuple[str, ...] = get_args(Failures)

Resume = Literal["same", "anyway"]
RESUMES: tuple[str, ...] = get_args(Resume)

Confirm = int | Literal["never"] | None  # number of fresh runs after a refutation; None lets the audit decide

BACKENDS = ("loky", "dask", "ray")  # where runs execute; the default is loky, which uses this machine
POWER = 0.9  # probability of finding a violation that an audit reports as detectable; also the default of `plan`


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The arguments, explained in `dpaudit.audit`, other than mechanism, claim and pairs."""

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
        if self.timeout is not None and not self.timeout > NO_TIME:
            raise ValueError(f"timeout must be above {NO_TIME} seconds, got {self.timeout}")
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
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


DEFAULTS = AuditSettings()


def default_jobs(backend: str) -> int:
    """Return the default number of worker processes: 1 on this machine, -1 (one per core) on a cluster."""
    return DEFAULTS.jobs if backend == BACKENDS[0] else ALL_CORES
