"""The false-alarm budget of test suites: within a session, and over all sessions of a baseline.

**A session.**  In a session with budget A, the probability that any audit reports a true claim as violated is at most
A.  Each audit has its own significance, and all significances sum to at most A (union bound).  A sequential test keeps
its guarantee whenever it stops, so stopping at the first failure is allowed.  Each of the m tests with audits gets A/m.
The number of audits of a test is not known in advance.  The k-th audit of a test gets the share 6 / (pi^2 k^2) of the
test's budget, and these shares sum to one.

If all workers of pytest-xdist run each test (`--dist=each`), every copy of a test counts as a test, since mechanisms
may ignore the seed.  If a test is run again in the session, as by pytest-rerunfailures, the outcomes of its audits are
repeated, so that each audit is made once; an audit that differs is the next audit of the test.

# The baseline

**The budget** covers all sessions together.  So each test keeps its first share, and part of the budget is reserved for
tests that are added later.  With budget A and m tests in the first session, test number j gets

    A / (2 m)  for j <= m,      A m / (2 j (j - 1))  for j > m.

These shares sum to A over all j.

**The journal.**  If only sessions that end were recorded, killing a session would drop the losses of its audits, while
completed sessions keep their gains.  So kills would bias the evidence.  Therefore each audit appends two lines to a
journal beside the baseline: one after its first runs and before its first bet, and one when it ends.  The lines are
counted at the end of the session or, if the session was killed, before the next session.  An audit that began and
never ended counts as a bet that lost its whole stake (below).  Otherwise a time limit would bias the evidence, too,
because it kills audits that continue without gains.

- Each line names the SHA-256 of the baseline with which its session began, and counting the line changes the baseline.
  So no line is counted twice, even if the journal was copied.
- An incomplete line is no JSON and is skipped.
- One session at a time holds the baseline's lock, which the system releases when the process ends.

# The evidence about one claim, from session to session

**Hypothesis.**  The claim is true for every version of the mechanism that has been audited so far.

**The wealth.**  Run i yields E_i, the wealth of its audit when it stopped.  The randomness of each run is fresh, so
E[E_i] <= 1 given all earlier runs if the claim is true.  A mechanism that keeps its claim by a margin loses wealth in
every run.  The product of all E_i would then be close to zero when a later version breaks the claim.  So each run adds
a new bet:

    M_n = sum_{k<=n} w_k E_k E_{k+1} ... E_n  +  sum_{k>n} w_k,      w_k = 1 / (k (k + 1)),   sum_k w_k = 1.

The first sum is the invested wealth, S_n = (S_{n-1} + w_n) E_n.  The second sum is the cash, R_n = 1 / (n + 1).

**Theorem.**  If the claim is true for all versions, P[M_n >= 1/significance for some n] <= significance.

*Proof.*  The k-th product, E_k ... E_n, is 1 before run k and a nonnegative supermartingale from then on.  M_n is the
mean of all products with weights w_k, so it is a nonnegative supermartingale with M_0 = 1.  Now apply Ville 1939.  The
theorem also holds within a run, with the audit's current wealth in place of E_n.  So the audit of run n may stop, and
refute, as soon as its wealth reaches (1/significance - R_n) / (S_{n-1} + w_n).

A violation that first appears in run n needs at most about log(n (n + 1) / 2) nats more evidence than a violation in
run 1.

**Runs that may repeat an earlier run.**  If a run has, or may have, the randomness of an earlier run, E[E_n] <= 1 may
fail.  Such a run counts as E'_n = min(E_n, 1), and it cannot refute the claim.

**Theorem.**  The guarantee still holds if E'_n replaces E_n in some runs, even if outputs determine which runs.

*Proof.*  E'_n <= E_n, so E[E'_n] <= 1 if the randomness was fresh; and E'_n <= 1 in any case.  Then M_n <= M_{n-1}, so
such a run cannot be the first with M_n >= 1/significance.  (It would be wrong to skip the run by
E'_n = 1.  If outputs determine which runs are skipped, losses of bets on fresh runs could be skipped, too.)

**Runs that never ended.**  An audit whose bets gain nothing takes long and may be killed for this reason.  If killed
audits were ignored, losses would be missing.  So a killed audit counts as E'_n = 0, which is at most E_n for any
outcome E_n.  The invested wealth is lost; the cash remains.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout

from dpaudit.result.atomic_write import write_whole
from dpaudit.settings import DEFAULTS, check_probability
from dpaudit.testing.layout import Layout

if TYPE_CHECKING:
    from dpaudit.result.model import AuditResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The runs of one audit, and their accumulated evidence."""

    call: int  # number of the assertion within its test, from 1
    number: int  # number of the chain within its test, from 1; determines its share of the budget
    claim: str
    runs: int = 0
    log_invested: float = -math.inf  # log of the invested wealth S; see the docstring of this module
    refuted: str = ""  # date of the refutation; "" if not refuted
    mu_lower: float = 0.0  # largest bound certified by any run
    trials: int = 0  # runs per dataset, summed over all runs of the suite

    def significance(self, total: float) -> float:
        """Return the significance, in (0, 1), for the next audit, so that the chain as a whole has `total`."""
        return math.exp(self._stake()) / (1 / total - 1 / (self.runs + 2))

    def after(self, *, log_e: float, refuted: str, mu_lower: float, trials: int) -> Chain:
        """Return the chain with one more run."""
        return replace(
            self,
            runs=self.runs + 1,
            log_invested=self._stake() + log_e,
            refuted=refuted,
            mu_lower=max(self.mu_lower, mu_lower),
            trials=self.trials + trials,
        )

    def _stake(self) -> float:
        """Return log(S_{n-1} + w_n), the log of the wealth that is invested in the next run n."""
        run = self.runs + 1
        return float(np.logaddexp(self.log_invested, -math.log(run * (run + 1))))


FORMAT = "dpaudit-baseline/1"
_MAX_FINGERPRINTS = 2000  # of one test; each audit has at most four, and the file must not grow for ever

Record = dict[str, Any]  # record of one audit, as plain JSON values that workers of pytest-xdist can send


class BaselineError(Exception):
    """Raised if a baseline cannot be used; the message is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    number: int = 0
    chains: Sequence[Chain] = ()
    outputs: Sequence[str] = ()  # fingerprints of first outputs of earlier sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    false_alarm: float
    runs: int = 0
    founders: int = 0
    tests: Mapping[str, Entry] = field(default_factory=dict)

    def share(self, number: int, founders: int) -> float:
        """Return the share of a test in the budget of all sessions."""
        if number <= founders:
            return self.false_alarm / (2 * founders)
        return self.false_alarm * founders / (2 * number * (number - 1))

    def entries(self, nodes: Iterable[str]) -> dict[str, Entry]:
        """Return the entry of each test of a session; new tests get unused numbers."""
        taken = {entry.number for entry in self.tests.values()}
        free = (number for number in itertools.count(1) if number not in taken)
        return {node: self.tests.get(node) or Entry(number=next(free)) for node in nodes}

    def after(self, records: Iterable[Record], founders: int) -> Baseline:
        """Return the baseline with one more session, which made these audits."""
        tests = dict(self.tests)
        for record in records:
            chain, new = Chain(**record["chain"]), record["outputs"]
            before = tests.get(record["node"], Entry())
            others = [other for other in before.chains if other.number != chain.number]
            older = [output for output in before.outputs if output not in new]
            tests[record["node"]] = Entry(
                number=record["number"], chains=[*others, chain], outputs=[*older, *new][-_MAX_FINGERPRINTS:]
            )
        return replace(self, runs=self.runs + 1, founders=self.founders or founders, tests=tests)


def first_audits(records: Iterable[Record]) -> list[Record]:
    """Return the record of the first audit of each call of each test; unfinished if another begins before its end.

    Otherwise a test could be repeated in a session until an audit gains evidence.
    """
    by_call: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        by_call.setdefault((record["node"], record["chain"]["call"]), []).append(record)
    return [
        found[1] if len(found) > 1 and found[0].get("begun") and not found[1].get("begun") else found[0]
        for found in by_call.values()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineFile:
    """A baseline file and its journal, in the controller or a worker of a session."""

    path: Path
    start: Baseline  # when the session began
    digest: str

    @property
    def _journal(self) -> Path:
        return self.path.with_name(f"{self.path.name}.journal")

    def add(self, record: Record, tests: int) -> None:
        """Write the record of an audit's beginning or end to disk before returning."""
        line = json.dumps({"start": self.digest, "tests": tests, "record": record})
        with self._journal.open("ab") as journal:
            journal.write(f"\n{line}\n".encode())  # an earlier line may be incomplete
            journal.flush()
            os.fsync(journal.fileno())

    def settle(self) -> tuple[Baseline, list[Record]]:
        """Count the journal and remove it.  Return the new baseline and the audits that were counted."""
        lines = []
        for text in self._journal.read_text("utf-8").splitlines() if self._journal.exists() else ():
            with contextlib.suppress(ValueError):  # an empty or an incomplete line
                if (line := json.loads(text))["start"] == self.digest:
                    lines.append(line)
        audits, after = first_audits(line["record"] for line in lines), self.start
        if audits:
            after = self.start.after(audits, founders=lines[0]["tests"])
            _write(self.path, after)
        self._journal.unlink(missing_ok=True)
        return after, audits


def lock(path: Path) -> FileLock:
    """Return the lock of a baseline, held by this process.  A session holds it from its beginning to its end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    own = FileLock(f"{path}.lock", timeout=0)
    try:
        own.acquire()
    except Timeout:
        raise BaselineError(f"another session is using {path}; start this session after it has ended") from None
    return own


def read(path: Path, false_alarm: float) -> BaselineFile:
    """Read a baseline, or begin one if the file does not exist."""
    if not path.exists():
        _write(path, Baseline(false_alarm=false_alarm))
    try:
        content = path.read_bytes()
        values = json.loads(content)
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        tests = {
            node: Entry(
                number=entry["number"], chains=[Chain(**chain) for chain in entry["chains"]], outputs=entry["outputs"]
            )
            for node, entry in values.pop("tests").items()
        }
        baseline = Baseline(**values, tests=tests)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BaselineError(
            f"{path} is not a baseline that this version of dpaudit can read: {error}; resolve merge conflicts, "
            "restore the file from a copy, or name another file"
        ) from None
    if baseline.false_alarm != false_alarm:
        raise BaselineError(
            f"{path} was started with --dpaudit-false-alarm {baseline.false_alarm:g}, got {false_alarm:g}; all "
            f"sessions of a baseline share one budget, so use {baseline.false_alarm:g}"
        )
    return BaselineFile(path=path, start=baseline, digest=hashlib.sha256(content).hexdigest())


def _write(path: Path, baseline: Baseline) -> None:
    values = {"format": FORMAT, **dataclasses.asdict(baseline)}
    write_whole(path, json.dumps(values, indent=1, sort_keys=True) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that all audits of a session share."""

    false_alarm: float = 1e-3
    trials: int = DEFAULTS.trials
    seed: int = 0
    report: str | Path | None = ".dpaudit"
    run: int = 0  # number of the session in its baseline; 0 without a baseline
    layout: Layout | None = None  # of a session of pytest

    def __post_init__(self) -> None:
        check_probability(self.false_alarm, "false_alarm")


@dataclass(kw_only=True)
class Allowance:
    """The share of one test in the budget, and the records of the test's audits."""

    node: str
    share: float
    settings: Settings
    file: Path | None = None  # that holds the test
    entry: Entry = field(default_factory=Entry)  # of the test in the baseline
    restart: bool = False
    keep: Callable[[Record], None] = lambda record: None  # writes a record to the journal of the baseline
    calls: int = field(default=0, init=False)
    records: list[Record] = field(default_factory=list, init=False)
    made: dict[tuple[int, str], tuple[Record, AuditResult | Exception]] = field(default_factory=dict, init=False)
    """Record and outcome of each audit of the session, also of earlier attempts at the test, by call and claim."""

    @property
    def test(self) -> str:
        """The id of the test in the folder where its commands are typed."""
        layout = self.settings.layout
        return self.node if layout is None or self.file is None else layout.address(self.node, self.file)[1]

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


current: Allowance | None = None  # allowance of the running test; None if the plugin does not count it

instead: Callable[..., None] | None = None
"""Function that a running replay calls before each audit, with the arguments of the audit."""
