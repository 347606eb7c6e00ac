"""What a session's audits found, on disk as soon as each of them ends.

A session writes its baseline at the end.  If it is killed before, what its audits lost would be forgotten and what
others won would be kept: kills would select.  So each session has a journal beside the baseline, one line for each
audit that ends, which the next session takes up before anything runs.  Another line says that an audit has begun, as
soon as it has made its first runs: if it never ends, it is counted as lost (`wealth`).  Else a time limit, which kills
those audits that go on because they do not win, would select as well.

- A line has a checksum.  One that was torn is left out, and the others count.
- A line names the baseline it goes on from by its checksum.  Once taken up, the baseline is another one, so that
  neither the journal nor a copy of it fits again: nothing is counted twice.
- Whoever may still write to a journal holds a lock on it, which the system ends with the process.  A journal that is
  locked is of a session that goes on, and is left to it.

Of two sessions that began with the same baseline one is recorded, as in `baseline.write`.  Which one ends first may
depend on what they found, so nothing is promised of sessions that overlap.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit.result.atomic_write import write_whole
from dpaudit.testing import baseline as baselines
from dpaudit.testing.baseline import Baseline, BaselineError, first_audits
from dpaudit.testing.session import Record

FORMAT = "dpaudit-journal/1"
_SUFFIX = ".journal"


@dataclass(kw_only=True)
class Journal:
    """The journal of a session that goes on; several processes may have it open."""

    path: Path
    start: str  # fingerprint of the baseline that the session began with
    false_alarm: float
    _file: int | None = field(default=None, init=False)  # held open, and locked, until the process ends

    def hold(self) -> int:
        """Open the file, and show that its session goes on."""
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
                fcntl.flock(file, fcntl.LOCK_SH)
                if os.fstat(file).st_nlink:
                    break
                os.close(file)  # another session took it for one that was left behind, before it was locked
            _sync_folder(self.path.parent)
            self._file = file
        return self._file

    def add(self, record: Record, tests: int) -> None:
        """Write down that an audit ended, or began; then it is on disk.  A warning if it cannot be written.

        Args:
            record: Of the audit.
            tests: Over which the session's budget is split.
        """
        line = {
            "format": FORMAT,
            "start": self.start,
            "false_alarm": self.false_alarm,
            "tests": tests,
            "record": record,
        }
        text = json.dumps(line | {"sha256": _checksum(line)}, sort_keys=True)
        try:
            file = self.hold()
            os.write(file, f"\n{text}\n".encode())  # the line before may have been torn
            os.fsync(file)
        except OSError as error:
            warnings.warn(f"the journal of the baseline cannot be written: {error}", stacklevel=2)

    def lines(self) -> list[dict[str, Any]]:
        """Those that are whole and of this session, in the order they were written."""
        try:
            return [line for line in _lines(self.path.read_bytes()) if line["start"] == self.start]
        except OSError:
            return []

    def remove(self) -> None:
        """What it says is in the baseline, or is not to be."""
        self.path.unlink(missing_ok=True)
        if self._file is not None:
            os.close(self._file)
            self._file = None


def begin(path: Path, baseline: Baseline, session: str) -> Journal:
    """The journal of a session that begins with this baseline; no file until the first audit ends."""
    return Journal(
        path=path.with_name(f"{path.name}.{session}{_SUFFIX}"),
        start=fingerprint(baseline),
        false_alarm=baseline.false_alarm,
    )


def take_up(path: Path, false_alarm: float) -> tuple[Baseline, list[str]]:
    """The baseline in `path` with what sessions that were killed had found; what became of them, in words.

    BaselineError as `baseline.read`.
    """
    found = baselines.read(path, false_alarm)
    if not _left_behind(path):
        return found, []
    notes: list[str] = []
    try:
        with baselines.alone(path.parent):
            found = baselines.read(path, false_alarm)
            for left in _left_behind(path):
                with _of_the_dead(left) as lines:
                    if lines is None:
                        continue
                    found = _taken_up(path, left, found, lines, notes)
    except OSError as error:
        raise BaselineError(f"what a killed session left beside {path} cannot be taken up: {error}") from None
    return found, notes


def _taken_up(path: Path, left: Path, found: Baseline, lines: Sequence[dict[str, Any]], notes: list[str]) -> Baseline:
    start = fingerprint(found)
    fitting = [line for line in lines if line["start"] == start]
    if fitting:
        began_with = fitting[0]["false_alarm"]
        if began_with != found.false_alarm:
            raise BaselineError(
                f"{left} was begun with --dpaudit-false-alarm {began_with:g}, which is the budget of all its runs; got "
                f"{found.false_alarm:g}"
            )
        try:
            after = found.after([line["record"] for line in fitting], founders=fitting[0]["tests"])
            baselines.check(after)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BaselineError(f"{left} is damaged: {error}; delete it to go on without it") from None
        write_whole(path, baselines.text(after))
        counted = first_audits(line["record"] for line in fitting)
        lost = sum(bool(record.get("begun")) for record in counted)
        notes.append(
            f"an earlier session was killed; the {len(counted) - lost} audits that it had finished are counted"
            + (f", and {lost} that it had begun {'is' if lost == 1 else 'are'} counted as lost" if lost else "")
        )
        found = after
    elif not all(_is_in(found, line["record"]) for line in lines):
        notes.append(
            "an earlier session was killed, and another one has been recorded since: what it had found is not counted"
        )
    left.unlink()
    return found


def _is_in(baseline: Baseline, record: Record) -> bool:
    """Whether a session was recorded, and killed before it could remove its journal."""
    entry, chain = baseline.tests.get(str(record.get("node"))), record.get("chain")
    if entry is None or not isinstance(chain, dict):
        return False
    return any(
        (one.number, one.claim) == (chain.get("number"), chain.get("claim")) and one.runs >= chain.get("runs", 0)
        for one in entry.chains
    )


def fingerprint(baseline: Baseline) -> str:
    """Of all that it holds; of one without runs "", whatever its budget."""
    return hashlib.sha256(baselines.text(baseline).encode()).hexdigest() if baseline.runs else ""


def _left_behind(path: Path) -> list[Path]:
    if not path.parent.is_dir():
        return []
    names = (name for name in os.listdir(path.parent) if name.startswith(f"{path.name}.") and name.endswith(_SUFFIX))
    return [path.parent / name for name in sorted(names)]


@contextlib.contextmanager
def _of_the_dead(path: Path) -> Iterator[list[dict[str, Any]] | None]:
    """The lines of a journal whose session is over; None if the session goes on."""
    file = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield None
    else:
        yield list(_lines(path.read_bytes()))
    finally:
        os.close(file)


def _lines(content: bytes) -> Iterator[dict[str, Any]]:
    """Those that are whole; one that was torn fails its checksum."""
    for text in content.split(b"\n"):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(line, dict) or line.get("format") != FORMAT:
            continue
        if line.pop("sha256", None) == _checksum(line) and isinstance(line.get("record"), dict):
            yield line


def _checksum(line: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()


def _sync_folder(folder: Path) -> None:
    """So that a new file's name is on disk, too."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
