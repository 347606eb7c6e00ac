"""What the tests of a session may spend of its false-alarm budget, and what they did.

**The budget.**  A session with budget A calls a true claim violated with probability at most A, all its audits
together: each audit gets a significance of its own, and these sum to A at most (union bound; a sequential test gives
its guarantee whenever it stops, so that nothing is lost by stopping at the first failure).  The m tests that audit get
A/m each.  A test may audit several times, and nobody knows how often: its k-th audit gets 6 / (pi^2 k^2) of what is the
test's, which sums to one.

Nothing heavy is imported here: the plugin uses it before any audit runs.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit.testing.wealth import Chain

Record = dict[str, Any]
"""What is kept of one audit, as plain JSON values: it travels from the workers of pytest-xdist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What all audits of a session share."""

    false_alarm: float  # budget of the session, or with a baseline of all its runs
    trials: int = 100_000  # the most runs per dataset of one audit
    seed: int = 0
    report: Path | None = Path(".dpaudit")  # where the evidence of failures goes; None: nowhere
    run: int = 0  # of the baseline, from 1; 0: there is none


@dataclass(kw_only=True)
class Allowance:
    """One test: its share of the budget, the audits it made."""

    node: str  # the test's id
    share: float
    settings: Settings
    chains: Sequence[Chain] = ()  # that it has in the baseline
    known: Set[str] = frozenset()  # fingerprints of the first outputs of its earlier runs, in the baseline
    restart: bool = False  # whether refuted chains end here and new ones begin
    number: int = 0  # of the test, in the baseline
    keep: Callable[[Record], None] | None = None  # called with each record before the audit's verdict is told
    calls: int = field(default=0, init=False)
    records: list[Record] = field(default_factory=list, init=False)

    def begin(self, record: Record) -> None:
        """An audit has made its first runs.  `record` is what it counts as if it never ends; see `journal`."""
        if self.keep is not None:
            self.keep(record | {"begun": True})

    def add(self, record: Record) -> None:
        """An audit has ended."""
        self.records.append(record)
        if self.keep is not None:
            self.keep(record)

    def next_chain(self, claim: str) -> Chain:
        """The chain that the next audit belongs to: one that goes on, if it is of the same claim, else a new one."""
        self.calls += 1
        going = [chain for chain in self.chains if chain.call == self.calls]
        if going and going[-1].claim == claim and not (going[-1].refuted and self.restart):
            return going[-1]
        begun = [chain.number for chain in self.chains] + [record["chain"]["number"] for record in self.records]
        return Chain(call=self.calls, number=max([self.calls - 1, *begun]) + 1, claim=claim)

    def significance(self, chain: Chain) -> float:
        """Of the next audit of a chain."""
        own = self.share * 6 / (math.pi * chain.number) ** 2
        return chain.significance(own) if self.settings.run else own

    def seed(self, call: int) -> int:
        """Of the audit of a call: another one for each test, call and run of the baseline; the same in any selection"""
        address = repr((self.settings.seed, self.settings.run, self.node, call))
        return int.from_bytes(hashlib.sha256(address.encode()).digest()[:4], "little")


current: Allowance | None = None
"""Of the test that is running, if the plugin counts it."""

instead: Callable[[Allowance, Any, Any, Any], None] | None = None
"""While a result is replayed: called with allowance, mechanism, pairs and attacks instead of auditing."""


def one_in(false_alarm: float) -> str:
    """A small probability in words, never less than it is: 0.001 is "one run of 1,000"."""
    return f"one run of {math.floor(1 / false_alarm * (1 + 1e-9)):,}"
