"""What can be audited: a callable, or an object that samples in batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dpaudit.values import Dataset, RawOutputs

BatchFunction = Callable[[Dataset, int, np.random.Generator], RawOutputs]
"""`(dataset, n, rng)` -> n independent outputs, in a sequence of length n or an array of n rows."""


@runtime_checkable
class Mechanism(Protocol):
    """A randomised mechanism that can be run many times in one call."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """`n` independent outputs on `dataset`, in a sequence of length n or an array of n rows."""
        ...


@dataclass(frozen=True, slots=True)
class Batched:
    """A function `(dataset, n, rng) -> n outputs` as a mechanism."""

    function: BatchFunction

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        return self.function(dataset, n, rng)

    def __call__(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        return self.function(dataset, n, rng)


def batched(function: BatchFunction) -> Batched:
    """Decorator for a mechanism that returns n outputs at once; each must be drawn independently."""
    return Batched(function)


class MechanismError(Exception):
    """The mechanism could not be run, or answered with something that is not its output."""


MAX_MESSAGE = 20_000
"""Letters of an exception's message that are kept; some hold the data that they complain about."""


def in_words(error: BaseException) -> str:
    """Class and message of an exception, also of one whose `__str__` raises."""
    message = message_of(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def message_of(error: BaseException) -> str:
    """The message of an exception; words that say so if it has none that can be had."""
    try:
        text = f"{error}"
        return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"
    except KeyboardInterrupt:
        raise
    except BaseException as another:
        return f"(its message cannot be had: __str__ raised {type(another).__name__})"
