"""Defines the interface of mechanisms: a callable, or an object that samples in batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from dpaudit.values import Dataset, Output, RawOutputs

BatchFunction = Callable[[Dataset, int, np.random.Generator], RawOutputs]
"""A function `(dataset, n, rng)` that returns n independent outputs: a sequence of length n or an array of n rows."""


@runtime_checkable
class Mechanism(Protocol):
    """A randomised mechanism that makes many runs in one call."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return n independent outputs.

        Args:
            dataset: A copy of the dataset, which the mechanism may change.
            n: Number of outputs.
            rng: The random generator for these runs.  The mechanism must not keep the generator after the call.

        Returns:
            A sequence of length n, or an array of n rows.
        """
        ...


@dataclass(frozen=True, slots=True)
class Batched:
    """A mechanism made from a function that returns n outputs in one call.

    Args:
        function: The function `(dataset, n, rng)`.
    """

    function: BatchFunction

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return the n independent outputs that the function returns."""
        return self.function(dataset, n, rng)

    def __call__(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        return self.function(dataset, n, rng)


def batched(function: BatchFunction) -> Batched:
    """Decorate a function that returns n outputs in one call.

    Args:
        function: A function `(dataset, n, rng)`, which must sample the n outputs independently.
    """
    return Batched(function)


def samples(mechanism: object) -> TypeGuard[Mechanism]:
    """Whether a mechanism makes many runs in one call.  It may forward its members by `__getattr__`."""
    return hasattr(mechanism, "sample")


class MechanismError(Exception):
    """Raised if a mechanism cannot be run or returns something other than its outputs."""


THIS_PROCESS = "measured in dpaudit's process, around each call of the mechanism"
ENVIRONMENT = "measured in the private environment, around each call of the mechanism"
REPORTED = "reported by the program"
OUTSIDE = "measured from request to answer"
CLOCKS = (THIS_PROCESS, ENVIRONMENT, REPORTED, OUTSIDE)
"""The ways to measure running times, as results state them."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a mechanism in another process."""

    output: Output
    raised: tuple[str, str] | None  # type and message of the exception that is the outcome of the run, if there is one
    seconds: float  # running time of the run, >= 0
    clock: str  # one of CLOCKS
