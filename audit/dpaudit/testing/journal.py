"""Journals record the audits of a session on disk as soon as each audit ends.

A session writes its baseline when it ends.  Without a journal, killing a session would drop the losses of its audits,
while completed sessions keep their gains.  So kills would bias the evidence.  Therefore each session has a journal next
to the baseline, with one line for each audit that ends.  The next session counts the journals of killed sessions before
its first audit.

Another line records that an audit has made its first runs.  An audit that never ends counts as a bet that lost its
whole stake (`wealth`).  Otherwise a time limit would bias the evidence, too, because time limits kill audits that
continue without gains.

- Each line has a checksum.  An incomplete line is skipped; the other lines count.
- Each line has the fingerprint of the baseline with which its session began.  Counting a journal changes the baseline.
  Then neither the journal nor a copy of the journal matches the baseline, so nothing is counted twice.
- Every process that may write to a journal holds a lock on the journal.  The system releases the lock when the process
  ends.  A locked journal belongs to a running session and is left unchanged.
- A journal of a later version is refused and left unchanged.
- Only regular files of at most 128 MiB are read.  Links and pipes with the name of a journal are left unchanged.

If two sessions began with the same baseline, only one session is recorded, as in `baseline.write`.  Which session ends
first may depend on the findings.  So overlapping sessions have no guarantee.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpaudit.result.atomic_write import write_whole
from dpaudit.testing import baseline as baselines
from dpaudit.testing.baseline import Baseline, BaselineError, first_audits
from dpaudit.testing.session import Record
from dpaudit.text.formats import is_later
from dpaudit.values import JsonObject

FORMAT = "dpaudit-journal/1"
_SUFFIX = ".journal"
_KINDS = {"start": str, "false_alarm": float, "tests": int, "record": dict}  # types of the values in a line
_MAX_ATTEMPTS = 3  # attempts to lock an existing file; limited because some file systems report a link count of 0
_MAX_JOURNAL_BYTES = 2**27  # maximum size of a journal; enough for tens of thousands of audits


@dataclass(kw_only=True)
class Journal:
    """The journal of a running session.  Several processes may have it open."""

    path: Path
    start: str
    false_alarm: float
    _file: int | None = field(default=None, init=False)  # kept open and locked until the process ends

    def hold(self) -> int:
        """Open and lock the file, which marks its session as running.

        Returns:
            The file descriptor.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        attempts = 0
        while self._file is None:
            attempts += 1
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)
            try:
                fcntl.flock(file, fcntl.LOCK_SH)
                _sync_folder(self.path.parent)
                removed = os.fstat(file).st_nlink == 0  # another session removed it before it was locked
            except OSError:
                os.close(file)
                raise
            if removed and attempts < _MAX_ATTEMPTS:
                os.close(file)
            else:
                self._file = file
        return self._file

    def add(self, record: Record, tests: int) -> None:
        """Write the record of an audit's end or beginning to disk before returning; warn if writing fails."""
        line = {
            "format": FORMAT,
            "start": self.start,
            "false_alarm": self.false_alarm,
            "tests": tests,
            "record": record,
        }
        text = json.dumps(line | {"sha256": checksum_of(line)}, sort_keys=True)
        try:
            file = self.hold()
            left = f"\n{text}\n".encode()  # an earlier line may be incomplete
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        except OSError as error:
            warnings.warn(
                f"the journal {self.path} cannot be written: {error}; if this session is killed, its audits will not "
                "be counted",
                stacklevel=2,
            )

    def lines(self) -> list[JsonObject]:
        """Return the complete lines of this session, in the order in which they were written."""
        try:
            return [line for line in _lines(self.path.read_bytes()) if line["start"] == self.start]
        except OSError:
            return []

    def remove(self) -> None:
        """Delete the file.  Its audits have been counted, or must no longer be counted."""
        self.path.unlink(missing_ok=True)
        if self._file is not None:
            os.close(self._file)
            self._file = None


def begin(path: Path, baseline: Baseline, session: str) -> Journal:
    """Return the journal of a new session.  The first record creates the file."""
    return Journal(
        path=path.with_name(f"{path.name}.{session}{_SUFFIX}"),
        start=fingerprint(baseline),
        false_alarm=baseline.false_alarm,
    )


def take_up(path: Path, false_alarm: float) -> tuple[Baseline, list[str]]:
    """Read a baseline, and add the audits of killed sessions to it.

    Returns:
        The baseline, and notes for the user about the killed sessions.
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
        raise BaselineError(
            f"the journal of a killed session cannot be read or removed: {error}; change its permissions, or delete it "
            "to continue without its audits"
        ) from None
    return found, notes


def _taken_up(path: Path, left: Path, found: Baseline, lines: Sequence[JsonObject], notes: list[str]) -> Baseline:
    start = fingerprint(found)
    fitting = [line for line in lines if line["start"] == start]
    if fitting:
        began_with = fitting[0]["false_alarm"]
        if began_with != found.false_alarm:
            raise BaselineError(
                f"{left} was started with --dpaudit-false-alarm {began_with:g}, got {found.false_alarm:g}; all runs of "
                f"a baseline share one budget, so use {began_with:g}"
            )
        try:
            after = found.after([line["record"] for line in fitting], founders=fitting[0]["tests"])
            baselines.check(after)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BaselineError(f"{left} is damaged: {error}; delete it to continue without its audits") from None
        write_whole(path, baselines.text(after))
        counted = first_audits(line["record"] for line in fitting)
        lost = sum(bool(record.get("begun")) for record in counted)
        ended = len(counted) - lost
        audits = "1 audit" if ended == 1 else f"{ended:,} audits"
        words = f"an earlier session was killed: the baseline now counts the {audits} that had ended"
        notes.append(
            words + (f", and counts {lost} unfinished as {'a lost bet' if lost == 1 else 'lost bets'}" if lost else "")
        )
        found = after
    elif not all(_is_in(found, line["record"]) for line in lines):
        notes.append(
            "an earlier session was killed: its audits are not counted, because another session was recorded in the "
            "meantime"
        )
    left.unlink()
    return found


def _is_in(baseline: Baseline, record: Record) -> bool:
    """Whether the baseline already contains the audit.

    If the baseline contains the audit, the session was killed between writing the baseline and removing the journal.
    """
    entry, chain = baseline.tests.get(str(record.get("node"))), record.get("chain")
    if entry is None or not isinstance(chain, dict) or not isinstance(runs := chain.get("runs", 0), int):
        return False
    return any(
        (one.number, one.claim) == (chain.get("number"), chain.get("claim")) and one.runs >= runs
        for one in entry.chains
    )


def fingerprint(baseline: Baseline) -> str:
    """Return the SHA-256 of a baseline's content; "" for any baseline without runs."""
    content = baselines.text(baseline).encode("utf-8", "backslashreplace")  # file names may hold lone surrogates
    return hashlib.sha256(content).hexdigest() if baseline.runs else ""


def _left_behind(path: Path) -> list[Path]:
    if not path.parent.is_dir():
        return []
    start, folder = f"{path.name}.", path.parent
    names = [name for name in os.listdir(folder) if name.startswith(start) and name.endswith(_SUFFIX)]
    own = [
        name for name in names if "." not in name[len(start) : -len(_SUFFIX)]
    ]  # excludes journals of a baseline b.json.old
    return [folder / name for name in sorted(own) if stat.S_ISREG((folder / name).lstat().st_mode)]


@contextlib.contextmanager
def _of_the_dead(path: Path) -> Iterator[list[JsonObject] | None]:
    """Provide the lines of a journal whose session has ended; None if the session is running."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe of this name must not block
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield None
    else:
        with open(file, "rb", closefd=False) as stream:
            content = stream.read(_MAX_JOURNAL_BYTES + 1)
        if len(content) > _MAX_JOURNAL_BYTES:
            raise BaselineError(
                f"{path} has more than {_MAX_JOURNAL_BYTES:,} bytes, so it is not a journal of dpaudit; delete or "
                "rename it"
            )
        _refuse_later(path, content)
        yield list(_lines(content))
    finally:
        os.close(file)


def _refuse_later(path: Path, content: bytes) -> None:
    """Refuse the journal of a later version, because skipping its audits would bias the evidence like kills."""
    for text in content.split(b"\n"):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and is_later(line.get("format"), FORMAT):
            raise BaselineError(
                f"{path} has format {line['format']}, which a later version of dpaudit wrote; this version reads "
                f"{FORMAT}: run this suite with that version, or delete the file to continue without its audits"
            )


def _lines(content: bytes) -> Iterator[JsonObject]:
    """Yield the complete lines; an incomplete line does not match its checksum."""
    for text in content.split(b"\n"):
        try:
            line = json.loads(text)
            whole = isinstance(line, dict) and line.pop("sha256", None) == checksum_of(line)
        except (ValueError, RecursionError):
            continue
        if whole and line.get("format") == FORMAT and all(isinstance(line.get(k), t) for k, t in _KINDS.items()):
            yield line


def checksum_of(line: JsonObject) -> str:
    """Return the SHA-256 of a record without its checksum."""
    return hashlib.sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()


def _sync_folder(folder: Path) -> None:
    """Write the folder to disk, so that the name of a new file survives a power cut."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
