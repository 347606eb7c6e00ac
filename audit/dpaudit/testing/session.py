"""The false-alarm budget of a session, the share of each test, and the records of its audits.

**The budget.**  In a session with budget A, the probability that any audit reports a true claim as violated is at most
A.  Each audit has its own significance, and all significances sum to at most A (union bound).  A sequential test keeps
its guarantee whenever it stops, so stopping at the first failure is allowed.  Each of the m tests with audits gets A/m.
The number of audits of a test is not known in advance.  The k-th audit of a test gets the share 6 / (pi^2 k^2) of the
test's budget, and these shares sum to one.

If all workers of pytest-xdist run each test (`--dist=each`), every copy of a test counts as a test, since mechanisms
may ignore the seed.  If a test is run again in the session, as by pytest-rerunfailures, the outcomes of its audits are
repeated, so that each audit is made once; an audit that differs is the next audit of the test.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dpaudit.settings import DEFAULTS, check_probability
from dpaudit.testing.baseline import Entry, Record
from dpaudit.testing.wealth import Chain

if TYPE_CHECKING:
    from dpaudit.result.model import AuditResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that all audits of a session share."""

    false_alarm: float = 1e-3
    trials: int = DEFAULTS.trials
    seed: int = 0
    report: str | Path | None = ".dpaudit"
    run: int = 0  # number of the session in its baseline; 0 without a baseline

    def __post_init__(self) -> None:
        check_probability(self.false_alarm, "false_alarm")


@dataclass(kw_only=True)
class Allowance:
    """The share of one test in the budget, and the records of the test's audits."""

    node: str
    share: float
    settings: Settings
    entry: Entry = field(default_factory=Entry)  # of the test in the baseline
    restart: bool = False
    keep: Callable[[Record], None] = lambda record: None  # writes a record to the journal of the baseline
    calls: int = field(default=0, init=False)
    records: list[Record] = field(default_factory=list, init=False)
    made: dict[tuple[int, str], tuple[Record, AuditResult | Exception]] = field(default_factory=dict, init=False)
    """Record and outcome of each audit of the session, also of earlier attempts at the test, by call and claim."""

    def add(self, record: Record) -> None:
        self.records.append(record)
        self.keep(record)

    def again(self, claim: str) -> AuditResult | Exception | None:
        """Return the outcome of the next audit if an earlier attempt at the test made this audit; None otherwise."""
        if (self.calls + 1, claim) not in self.made:
            return None
        self.calls += 1
        record, outcome = self.made[self.calls, claim]
        self.records.append(record)
        return outcome

    def next_chain(self, claim: str) -> Chain:
        """Return the chain of the next audit: an existing chain of the same claim, or else a new one."""
        self.calls += 1
        going = [chain for chain in self.entry.chains if chain.call == self.calls]
        if going and going[-1].claim == claim and not (going[-1].refuted and self.restart):
            return going[-1]
        records = [*self.records, *(record for record, _ in self.made.values())]
        begun = [chain.number for chain in self.entry.chains] + [record["chain"]["number"] for record in records]
        return Chain(call=self.calls, number=max([self.calls - 1, *begun]) + 1, claim=claim)

    def significance(self, chain: Chain) -> float:
        """Return the significance of the next audit of a chain."""
        own = self.share * 6 / (math.pi * chain.number) ** 2
        return chain.significance(own) if self.settings.run else own

    def seed(self, call: int) -> int:
        """Return the seed of an audit, which does not depend on the selection of tests."""
        address = repr((self.settings.seed, self.settings.run, self.node, call))
        return int.from_bytes(hashlib.sha256(address.encode()).digest()[:4], "little")


current: Allowance | None = None
"""Allowance of the running test; None if the plugin does not count it."""

instead: Callable[..., None] | None = None
"""Function that a running replay calls before each audit, with the arguments of the audit."""
