"""A file in which a suite's evidence is carried on from run to run.

**The budget** is that of all runs together, so each test's share must stay what it was when the test was first seen,
and new tests must find something left.  With budget A and m tests in the first run, test number j gets

    A / (2 m)  for j <= m,      A m / (2 j (j - 1))  for j > m,      which sum to A over all j.

What happens to the evidence of one audit is told in `wealth`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.testing.session import Record
from dpaudit.testing.wealth import Chain
from dpaudit.writing import write_whole

FORMAT = "dpaudit-baseline/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One test."""

    number: int  # from 1, in the order in which tests were first seen
    chains: tuple[Chain, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What a file holds.  `runs`: sessions recorded so far; `founders`: tests of the first of them."""

    false_alarm: float
    runs: int = 0
    founders: int = 0
    tests: Mapping[str, Entry]

    def share(self, number: int, founders: int) -> float:
        """Of a test in the budget of all runs."""
        if number <= founders:
            return self.false_alarm / (2 * founders)
        return self.false_alarm * founders / (2 * number * (number - 1))

    def numbers(self, nodes: Sequence[str]) -> dict[str, int]:
        """Of the tests of a session, known ones and new ones."""
        taken = {entry.number for entry in self.tests.values()}
        free = (number for number in itertools.count(1) if number not in taken)
        return {node: self.tests[node].number if node in self.tests else next(free) for node in nodes}

    def after(self, records: Iterable[Record], founders: int) -> Baseline:
        """With one more session.  Of a test that was repeated in it, its first audits count."""
        tests = dict(self.tests)
        seen: set[tuple[str, int]] = set()
        for record in records:
            node, chain = record["node"], Chain(**record["chain"])
            if (node, chain.call) in seen:
                continue
            seen.add((node, chain.call))
            others = [other for other in tests[node].chains if other.number != chain.number] if node in tests else []
            tests[node] = Entry(number=record["number"], chains=(*others, chain))
        return Baseline(
            false_alarm=self.false_alarm, runs=self.runs + 1, founders=self.founders or founders, tests=tests
        )


class BaselineError(Exception):
    """A file that cannot be used, in words for the user."""


def read(path: Path, false_alarm: float) -> Baseline:
    """The baseline in a file, an empty one if there is no file.  BaselineError if it is damaged, or something else."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Baseline(false_alarm=false_alarm, tests={})
    except (OSError, UnicodeDecodeError) as error:
        raise BaselineError(f"{path} cannot be read: {error}") from None
    try:
        values = json.loads(text)
        if not isinstance(values, dict) or not str(values.get("format", "")).startswith("dpaudit-baseline/"):
            raise BaselineError(f"{path} is not a baseline of dpaudit; name another file")
    except json.JSONDecodeError as error:
        raise BaselineError(f"{path} is damaged, or not a baseline of dpaudit: {error}; {_REMEDY}") from None
    if values["format"] != FORMAT:
        raise BaselineError(f"{path} has format {values['format']}, this version of dpaudit reads {FORMAT}")
    if values.get("sha256") != _checksum(values):
        raise BaselineError(f"{path} is damaged: its checksum does not match; {_REMEDY}")
    found = Baseline(
        false_alarm=values["false_alarm"],
        runs=values["runs"],
        founders=values["founders"],
        tests={
            node: Entry(
                number=entry["number"],
                chains=tuple(
                    Chain(**chain | {"log_invested": float(chain["log_invested"])}) for chain in entry["chains"]
                ),
            )
            for node, entry in values["tests"].items()
        },
    )
    if found.false_alarm != false_alarm:
        raise BaselineError(
            f"{path} was begun with --dpaudit-false-alarm {found.false_alarm:g}, which is the budget of all its runs; "
            f"got {false_alarm:g}"
        )
    return found


_REMEDY = "restore it from a copy, or delete it to begin anew"


def write(path: Path, baseline: Baseline) -> None:
    """Replace the file at once: whoever reads it finds the old or the new one.

    BaselineError if another session has written it since, for then this session's evidence is not a further run.
    """
    if read(path, baseline.false_alarm).runs != baseline.runs - 1:
        raise BaselineError(f"{path} was written by another session meanwhile; what this one found is not recorded")
    values = {"format": FORMAT, **dataclasses.asdict(baseline)}
    for entry in values["tests"].values():
        for chain in entry["chains"]:
            chain["log_invested"] = repr(chain["log_invested"])  # may be infinite, which JSON does not know
    values["sha256"] = _checksum(values)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def _checksum(values: Mapping[str, Any]) -> str:
    """Of everything but itself."""
    rest = {key: value for key, value in values.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
