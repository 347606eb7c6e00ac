"""The false-alarm budget of a session, the share of each test, and the records of its audits.

**The budget.**  In a session with budget A, the probability that any audit reports a true claim as violated is at most
A.  Each audit has its own significance, and these sum to at most A (union bound).  A sequential test keeps its
guarantee whenever it stops, so stopping at the first failure costs nothing.  Each of the m tests that audit gets A/m.
A test may audit several times, and the number is not known in advance.  Its k-th audit gets the share 6 / (pi^2 k^2) of
the test's budget; these shares sum to one.

This module imports nothing heavy, because the plugin uses it before any audit runs.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit.settings.audit import DEFAULTS
from dpaudit.settings.limits import check_probability
from dpaudit.testing.wealth import Chain

Record = dict[str, Any]
"""Record of one audit, as plain JSON values that workers of pytest-xdist can send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that all audits of a session share."""

    false_alarm: float = 1e-3  # budget of the session; with a baseline, of all its runs
    trials: int = DEFAULTS.trials  # maximum number of runs per dataset of one audit
    seed: int = 0
    report: Path | None = Path(".dpaudit")  # folder for the evidence of failures; None to write none
    run: int = 0  # number of this run in the baseline, from 1; 0 without a baseline

    def __post_init__(self) -> None:
        check_probability(self.false_alarm, "false_alarm")


@dataclass(kw_only=True)
class Allowance:
    """One test: its share of the budget, and the records of its audits."""

    node: str  # id of the test
    share: float
    settings: Settings
    chains: Sequence[Chain] = ()  # chains of the test in the baseline
    known: Set[str] = frozenset()  # fingerprints of the first outputs of earlier runs in the baseline
    restart: bool = False  # whether to replace refuted chains by new ones
    number: int = 0  # number of the test in the baseline
    keep: Callable[[Record], None] | None = None  # called with each record before the verdict is reported
    calls: int = field(default=0, init=False)
    records: list[Record] = field(default_factory=list, init=False)

    def begin(self, record: Record) -> None:
        """An audit has made its first runs.  `record` is what it counts as if it never ends; see `journal`."""
        if self.keep is not None:
            self.keep(record | {"begun": True})

    def add(self, record: Record) -> None:
        """Add the record of an audit that has ended."""
        self.records.append(record)
        if self.keep is not None:
            self.keep(record)

    def next_chain(self, claim: str) -> Chain:
        """Return the chain of the next audit: an existing chain of the same claim, or else a new one."""
        self.calls += 1
        going = [chain for chain in self.chains if chain.call == self.calls]
        if going and going[-1].claim == claim and not (going[-1].refuted and self.restart):
            return going[-1]
        begun = [chain.number for chain in self.chains] + [record["chain"]["number"] for record in self.records]
        return Chain(call=self.calls, number=max([self.calls - 1, *begun]) + 1, claim=claim)

    def significance(self, chain: Chain) -> float:
        """Return the significance of the next audit of a chain."""
        own = self.share * 6 / (math.pi * chain.number) ** 2
        return chain.significance(own) if self.settings.run else own

    def seed(self, call: int) -> int:
        """Return the seed of an audit, which depends on test, call and run of the baseline but not on the selection."""
        address = repr((self.settings.seed, self.settings.run, self.node, call))
        return int.from_bytes(hashlib.sha256(address.encode()).digest()[:4], "little")


current: Allowance | None = None
"""Allowance of the running test; None if the plugin does not count it."""

instead: Callable[[Allowance, Any, Any, Any], None] | None = None
"""During a replay, called with allowance, mechanism, pairs and attacks in place of the audit."""


def one_in(false_alarm: float) -> str:
    """Write a small probability, never understated: 0.001 is "one run of 1,000"."""
    return f"one run of {math.floor(1 / false_alarm * (1 + 1e-9)):,}"
