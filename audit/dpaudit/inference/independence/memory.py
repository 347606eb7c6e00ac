"""Storage of the outputs that are tested for dependence, and the significance of each test."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from dpaudit.values import Output, RawOutputs

SUSPICIOUS = 1e-9
"""Joint significance of all tests of dependence in an audit."""

MIN_RUNS = 100
"""Minimum number of runs of an audit; an audit that stops earlier makes additional runs to test for dependence.

The outputs of the additional runs do not count as evidence.  With 100 runs, the tests detect strong dependence, such as
most random walks.  If each run takes a second, 100 runs take less than two minutes.
"""

MIN_OUTPUTS = 30
"""Minimum number of outputs of a dataset for a test of dependence."""

KEPT, _KEPT_BYTES = 4000, 2**27  # maximum number and total bytes of outputs in a list of Memory

CHECKPOINTS = (
    MIN_OUTPUTS,
    40,
    50,
    64,
    80,
    *(round(MIN_RUNS * 1.2**k) for k in range(int(math.log(KEPT / MIN_RUNS, 1.2)) + 1)),
    KEPT,
)
"""Possible numbers of first outputs that are tested; the tests use the largest number available."""

_LONG = 1024  # numbers in a row of an array from which on it stays an array, as in `outputs.shared_calls`
_GROWTH = 1.2  # ratio of successive numbers of runs after which `Memory.thinned` is tested

FIRST_SHARE = 0.5 / len(CHECKPOINTS)
"""Share of the significance for the tests at each of the `CHECKPOINTS`."""


@dataclass
class Memory:
    """Outputs of one dataset that are stored for tests of dependence, in the order of their runs."""

    first: list[Output] = field(default_factory=list)  # the first outputs, up to a maximum number
    spread: list[Output] = field(default_factory=list)  # every `_every`-th output of the whole audit
    _every: int = 1
    _seen: int = 0

    def add(self, outputs: RawOutputs, bytes_each: float = 8.0) -> None:
        """Add the outputs of the next runs."""
        most = int(min(KEPT, max(2 * MIN_OUTPUTS, _KEPT_BYTES / bytes_each)))
        if len(self.first) == self._seen:  # nothing was left out before, so these are consecutive runs
            self.first.extend(values_of(outputs[: max(0, most - self._seen)]))
        self.spread.extend(values_of(outputs[-self._seen % self._every :: self._every]))
        self._seen += len(outputs)
        while len(self.spread) > most:
            self.spread = self.spread[::2]
            self._every *= 2

    @property
    def length(self) -> int:
        """Number of first outputs that are tested; 0 if there are fewer outputs than the smallest checkpoint."""
        return max((n for n in CHECKPOINTS if n <= len(self.first)), default=0)

    @property
    def thinned(self) -> list[Output]:
        """Evenly spaced outputs of the whole audit up to a fixed number of runs; empty for a short audit."""
        if self._every == 1 or self._seen < MIN_RUNS:
            return []
        until = math.floor(MIN_RUNS * _GROWTH**self._step)
        return self.spread[: -(-until // self._every)]

    @property
    def spread_share(self) -> float:
        """Share of the significance for a test of `thinned`; the shares of all such tests sum to at most 1/2."""
        step, halvings = self._step, int(math.log2(self._every))
        return 0.5 / ((step + 1) * (step + 2)) / (max(1, halvings) * (halvings + 1))

    @property
    def _step(self) -> int:
        return math.floor(math.log(max(1.0, self._seen / MIN_RUNS), _GROWTH))


def values_of(outputs: RawOutputs) -> Iterable[Output]:
    """Return the values of outputs, so that a row of an array equals the same output in a list; see `outputs`."""
    if isinstance(outputs, np.ndarray) and (outputs.ndim == 1 or outputs[:1].size <= _LONG):
        return list(outputs.tolist())
    return outputs
