"""The outputs that are tested, and the share of the level that each test of them has."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpaudit.values import Output, RawOutputs

SUSPICIOUS = 1e-9
"""P-value from which independence is called into question, of all tests of an audit together."""

MIN_RUNS = 100
"""Runs that can show strong dependence: 85 % of random walks.  An audit that finds its evidence in fewer makes further
ones, which count as no evidence.  A mechanism that takes a second then takes three minutes at the most."""

MIN_OUTPUTS = 30  # outputs below which nothing is said
_KEPT, _KEPT_BYTES = 4000, 2**27  # in each list of a memory: outputs, and bytes of large ones

CHECKPOINTS = (
    MIN_OUTPUTS,
    40,
    50,
    64,
    80,
    *(round(MIN_RUNS * 1.2**k) for k in range(int(math.log(_KEPT / MIN_RUNS, 1.2)) + 1)),
    _KEPT,
)
"""Numbers of runs of which the first outputs are tested: the largest of them that there are."""

_GROWTH = 1.2  # between two numbers of runs at which outputs of the whole audit are tested

FIRST_SHARE = 0.5 / len(CHECKPOINTS)
"""Share of the level for the first outputs up to one of the `CHECKPOINTS`."""


@dataclass
class Memory:
    """Outputs of one dataset in the order of their runs: the first ones all, later ones more and more thinly."""

    first: list[Output] = field(default_factory=list)
    spread: list[Output] = field(default_factory=list)  # every `_every`-th of all
    _every: int = 1
    _seen: int = 0

    def add(self, outputs: RawOutputs, bytes_each: float = 8.0) -> None:
        """The outputs of the next runs, and how large they are."""
        most = int(min(_KEPT, max(2 * MIN_OUTPUTS, _KEPT_BYTES / bytes_each)))
        self.first.extend(outputs[: max(0, most - len(self.first))])
        self.spread.extend(outputs[-self._seen % self._every :: self._every])
        self._seen += len(outputs)
        while len(self.spread) > most:
            self.spread = self.spread[::2]
            self._every *= 2

    @property
    def length(self) -> int:
        """How many of the first outputs are tested."""
        return max((n for n in CHECKPOINTS if n <= len(self.first)), default=0)

    @property
    def thinned(self) -> list[Output]:
        """Outputs spread over the audit, up to a number of runs that is fixed beforehand; none of a short audit."""
        if self._every == 1 or self._seen < MIN_RUNS:
            return []
        until = math.floor(MIN_RUNS * _GROWTH**self._step)
        return self.spread[: -(-until // self._every)]

    @property
    def spread_share(self) -> float:
        """Share of the level for outputs spread over the audit: over all its lengths, at most a half."""
        step, halvings = self._step, int(math.log2(self._every))
        return 0.5 / ((step + 1) * (step + 2)) / (max(1, halvings) * (halvings + 1))

    @property
    def _step(self) -> int:
        return math.floor(math.log(max(1.0, self._seen / MIN_RUNS), _GROWTH))
