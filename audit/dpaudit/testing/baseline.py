"""The baseline: a file in which the evidence of a test suite accumulates from run to run.

**The budget** covers all runs of the suite together.  So each test keeps its first share, and part of the budget is
reserved for tests that are added later.  With budget A and m tests in the first run, test number j gets

    A / (2 m)  for j <= m,      A m / (2 j (j - 1))  for j > m.

These shares sum to A over all j.

`wealth` describes the evidence of one audit, and `journal` the treatment of killed sessions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpaudit.result.atomic_write import write_whole
from dpaudit.settings.limits import check_probability
from dpaudit.testing.session import Record
from dpaudit.testing.wealth import Chain
from dpaudit.text.foreign_files import read_foreign
from dpaudit.text.formats import is_later
from dpaudit.values import Json

FORMAT = "dpaudit-baseline/2"
MAX_BASELINE_BYTES = 2**28
_MAX_WHOLE = 2**53  # largest whole number allowed in a file
_MAX_FINGERPRINTS = 2000  # maximum number of fingerprints kept for one test; each audit has at most four


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The entry of one test in a baseline."""

    number: int
    chains: tuple[Chain, ...]
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The content of a baseline file."""

    false_alarm: float
    runs: int = 0
    founders: int = 0
    tests: Mapping[str, Entry]

    def share(self, number: int, founders: int) -> float:
        """Return the share of a test in the budget of all runs."""
        if number <= founders:
            return self.false_alarm / (2 * founders)
        return self.false_alarm * founders / (2 * number * (number - 1))

    def numbers(self, nodes: Sequence[str]) -> dict[str, int]:
        """Return the number of each test of a session; new tests get unused numbers."""
        taken = {entry.number for entry in self.tests.values()}
        free = (number for number in itertools.count(1) if number not in taken)
        return {node: self.tests[node].number if node in self.tests else next(free) for node in nodes}

    def after(self, records: Iterable[Record], founders: int) -> Baseline:
        """Return the baseline with one more session."""
        tests = dict(self.tests)
        for record in first_audits(records):
            node, chain = record["node"], Chain(**record["chain"])
            before = tests.get(node, Entry(number=record["number"], chains=()))
            others = [other for other in before.chains if other.number != chain.number]
            older = (output for output in before.outputs if output not in record["outputs"])
            outputs = (*older, *record["outputs"])[-_MAX_FINGERPRINTS:]
            tests[node] = Entry(number=record["number"], chains=(*others, chain), outputs=outputs)
        return Baseline(
            false_alarm=self.false_alarm, runs=self.runs + 1, founders=self.founders or founders, tests=tests
        )


def first_audits(records: Iterable[Record]) -> list[Record]:
    """Return the record of the first audit of each call of each test.

    The record of an audit describes the audit's end, or its beginning if the audit never ended.  A session may repeat a
    test.  If the repeated audit begins before the first audit ends, the first audit counts as unfinished.  Otherwise a
    test could be repeated until an audit gains evidence.
    """
    found: dict[tuple[str, int], Record] = {}
    again: set[tuple[str, int]] = set()
    for record in records:
        call = record["node"], Chain(**record["chain"]).call
        if call not in found or (found[call].get("begun") and not record.get("begun") and call not in again):
            found[call] = record
        elif record.get("begun"):
            again.add(call)
    return list(found.values())


class BaselineError(Exception):
    """Raised if a file cannot be used; the message is for the user."""


def read(path: Path, false_alarm: float) -> Baseline:
    """Read a baseline.

    Returns:
        The baseline; an empty baseline if the file does not exist.
    """
    try:
        content = read_foreign(path, MAX_BASELINE_BYTES)
    except FileNotFoundError:
        return Baseline(false_alarm=false_alarm, tests={})
    except (OSError, UnicodeDecodeError) as error:
        raise BaselineError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        values = json.loads(content)
        if not isinstance(values, dict) or not str(values.get("format", "")).startswith("dpaudit-baseline/"):
            raise BaselineError(f"{path} is not a baseline of dpaudit; name another file")
        if is_later(values["format"], FORMAT):
            raise BaselineError(
                f"{path} has format {values['format']}, which a later version of dpaudit wrote; this version of "
                f"dpaudit reads {FORMAT}: update dpaudit, or name another file"
            )
        if values["format"] != FORMAT:
            raise BaselineError(
                f"{path} has format {values['format']}, but this version of dpaudit reads {FORMAT}; delete it to start "
                "a new baseline"
            )
        if values.get("sha256") != _checksum(values):
            raise BaselineError(f"{path} is damaged: its checksum does not match; {_REMEDY}")
        found = _baseline(values)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise BaselineError(f"{path} is damaged, or not a baseline of dpaudit: {said}; {_REMEDY}") from None
    if found.false_alarm != false_alarm:
        raise BaselineError(
            f"{path} was started with --dpaudit-false-alarm {found.false_alarm:g}, got {false_alarm:g}; all runs of a "
            f"baseline share one budget, so use {found.false_alarm:g}"
        )
    return found


_REMEDY = "restore it from a copy, or delete it to start a new baseline"


def _baseline(values: Mapping[str, Json]) -> Baseline:
    """Return the content of a file; raise a ValueError that names the place of an impossible value."""
    _keys(values, "format", "false_alarm", "runs", "founders", "tests", "sha256", place="the file")
    tests = {node: _entry(entry, f"tests[{node!r}]") for node, entry in _typed(values["tests"], dict, "tests").items()}
    false_alarm = _typed(values["false_alarm"], float, "false_alarm")
    runs = _whole(values["runs"], 1, "runs")
    check_probability(false_alarm, "false_alarm")
    if len({entry.number for entry in tests.values()}) < len(tests):
        raise ValueError("tests: two tests have the same number")
    if longest := [node for node, entry in tests.items() for chain in entry.chains if chain.runs > runs]:
        raise ValueError(f"tests[{longest[0]!r}] has more runs than the file")
    return Baseline(false_alarm=false_alarm, runs=runs, founders=_whole(values["founders"], 1, "founders"), tests=tests)


def check(baseline: Baseline) -> None:
    """Check that a new baseline is valid."""
    _baseline(json.loads(text(baseline)))


def _entry(entry: Json, place: str) -> Entry:
    _keys(_typed(entry, dict, place), "number", "chains", "outputs", place=place)
    chains = [_chain(chain, f"{place}.chains") for chain in _typed(entry["chains"], list, f"{place}.chains")]
    if len({chain.number for chain in chains}) < len(chains):
        raise ValueError(f"{place}.chains: two chains have the same number")
    outputs = [_typed(one, str, f"{place}.outputs") for one in _typed(entry["outputs"], list, f"{place}.outputs")]
    return Entry(number=_whole(entry["number"], 1, f"{place}.number"), chains=tuple(chains), outputs=tuple(outputs))


def _chain(chain: Json, place: str) -> Chain:
    _keys(_typed(chain, dict, place), *(field.name for field in dataclasses.fields(Chain)), place=place)
    log_invested = float(_typed(chain["log_invested"], str, f"{place}.log_invested"))
    mu_lower = _typed(chain["mu_lower"], float, f"{place}.mu_lower")
    if math.isnan(log_invested) or log_invested == math.inf or not 0 <= mu_lower < math.inf:
        raise ValueError(f"{place}: log_invested {log_invested} or mu_lower {mu_lower} is out of range")
    refuted = _typed(chain["refuted"], str, f"{place}.refuted")
    if refuted and not re.fullmatch(r"[0-9]{4}(-[0-9]{2}){2}", refuted):
        raise ValueError(f"{place}.refuted should be a date or empty, got {refuted!r:.80}")
    return Chain(
        call=_whole(chain["call"], 1, f"{place}.call"),
        number=_whole(chain["number"], 1, f"{place}.number"),
        claim=_typed(chain["claim"], str, f"{place}.claim"),
        runs=_whole(chain["runs"], 1, f"{place}.runs"),
        log_invested=log_invested,
        refuted=refuted,
        mu_lower=mu_lower,
        trials=_whole(chain["trials"], 0, f"{place}.trials"),
    )


def _keys(values: Mapping[str, Json], *expected: str, place: str) -> None:
    if wrong := sorted(set(values) ^ set(expected)):
        raise ValueError(f"{place} has the keys {', '.join(sorted(values))}; {wrong[0]} is missing or unknown")


def _typed(value: Json, kind: type[object], place: str) -> Json:
    """Return the value if it has this type; whole numbers also count as floats."""
    if kind is float and type(value) is int and abs(value) <= _MAX_WHOLE:
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"{place} should be a {kind.__name__}, got {value!r:.80}")
    return value


def _whole(value: Json, least: int, place: str) -> int:
    if type(value) is not int or not least <= value <= _MAX_WHOLE:
        raise ValueError(f"{place} should be a whole number from {least} to {_MAX_WHOLE}, got {value!r:.80}")
    return value


def write(path: Path, baseline: Baseline) -> None:
    """Replace the file atomically, so that readers find either the old or the new baseline."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path.parent):
        if read(path, baseline.false_alarm).runs != baseline.runs - 1:
            raise BaselineError(
                f"another session has changed {path} in the meantime; the evidence of this session is not recorded"
            )
        write_whole(path, text(baseline))


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, so that no other session writes a baseline in this folder.

    The system releases the lock if this process dies.
    """
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def text(baseline: Baseline) -> str:
    """Return the text of the file for a baseline."""
    values = {"format": FORMAT, **dataclasses.asdict(baseline)}
    for entry in values["tests"].values():
        for chain in entry["chains"]:
            chain["log_invested"] = repr(chain["log_invested"])  # JSON cannot express infinity
    values["sha256"] = _checksum(values)
    return json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _checksum(values: Mapping[str, Json]) -> str:
    """Return the SHA-256 of all values except the checksum."""
    rest = {key: value for key, value in values.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
