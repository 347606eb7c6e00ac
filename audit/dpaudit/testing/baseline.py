"""The baseline: a file in which the evidence of a test suite accumulates from session to session.

**The budget** covers all sessions together.  So each test keeps its first share, and part of the budget is reserved for
tests that are added later.  With budget A and m tests in the first session, test number j gets

    A / (2 m)  for j <= m,      A m / (2 j (j - 1))  for j > m.

These shares sum to A over all j.

**The journal.**  If only sessions that end were recorded, killing a session would drop the losses of its audits, while
completed sessions keep their gains.  So kills would bias the evidence.  Therefore each audit appends two lines to a
journal beside the baseline: one after its first runs and before its first bet, and one when it ends.  The lines are
counted at the end of the session or, if the session was killed, before the next session.  An audit that began and
never ended counts as a bet that lost its whole stake (`wealth`).  Otherwise a time limit would bias the evidence, too,
because it kills audits that continue without gains.

- Each line names the SHA-256 of the baseline with which its session began, and counting the line changes the baseline.
  So no line is counted twice, even if the journal was copied.
- An incomplete line is no JSON and is skipped.
- One session at a time holds the baseline's lock, which the system releases when the process ends.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dpaudit.result.atomic_write import write_whole
from dpaudit.testing.wealth import Chain

FORMAT = "dpaudit-baseline/1"
_MAX_FINGERPRINTS = 2000  # of one test; each audit has at most four, and the file must not grow for ever

Record = dict[str, Any]
"""Record of one audit, as plain JSON values that workers of pytest-xdist can send."""


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
        return dataclasses.replace(self, runs=self.runs + 1, founders=self.founders or founders, tests=tests)


def first_audits(records: Iterable[Record]) -> list[Record]:
    """Return the record of the first audit of each call of each test.

    A test may run again in a session.  If another audit of the call begins before the first one ends, the first counts
    as unfinished.  Otherwise a test could be repeated until an audit gains evidence.
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
        lines = [line for line in _lines(self._journal) if line["start"] == self.digest]
        audits, after = first_audits(line["record"] for line in lines), self.start
        if audits:
            after = self.start.after(audits, founders=lines[0]["tests"])
            _write(self.path, after)
        self._journal.unlink(missing_ok=True)
        return after, audits


def lock(path: Path) -> FileLock:
    """Return the lock of a baseline, held by this process.  A session holds it from its beginning to its end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held = FileLock(f"{path}.lock", timeout=0)
    try:
        held.acquire()
    except Timeout:
        raise BaselineError(f"another session is using {path}; start this session after it has ended") from None
    return held


def read(path: Path, false_alarm: float) -> BaselineFile:
    """Read a baseline, or begin one if the file does not exist."""
    if not path.exists():
        _write(path, Baseline(false_alarm=false_alarm))
    try:
        content = path.read_bytes()
        values = json.loads(content)
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        tests = {node: _entry(**entry) for node, entry in values.pop("tests").items()}
        found = Baseline(**values, tests=tests)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BaselineError(
            f"{path} is not a baseline that this version of dpaudit can read: {error}; resolve merge conflicts, "
            "restore the file from a copy, or name another file"
        ) from None
    if found.false_alarm != false_alarm:
        raise BaselineError(
            f"{path} was started with --dpaudit-false-alarm {found.false_alarm:g}, got {false_alarm:g}; all sessions "
            f"of a baseline share one budget, so use {found.false_alarm:g}"
        )
    return BaselineFile(path=path, start=found, digest=hashlib.sha256(content).hexdigest())


def _entry(number: int, chains: Sequence[Record], outputs: Sequence[str]) -> Entry:
    return Entry(number=number, chains=[Chain(**chain) for chain in chains], outputs=outputs)


def _write(path: Path, baseline: Baseline) -> None:
    values = {"format": FORMAT, **dataclasses.asdict(baseline)}
    write_whole(path, json.dumps(values, indent=1, sort_keys=True) + "\n")


def _lines(journal: Path) -> Iterator[Record]:
    for text in journal.read_text("utf-8").splitlines() if journal.exists() else ():
        try:
            yield json.loads(text)
        except ValueError:  # an empty or an incomplete line
            continue
