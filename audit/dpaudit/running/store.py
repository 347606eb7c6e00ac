"""Stores trials on disk, so that an audit can be resumed.  The outputs determine all other results.

A store is one SQLite file.  While the store is in use, the file NAME-wal exists in the same folder.  The tables are:

    about(name, value)      identity (see `identity`), seed and date of the audit, the `salt` of the hashes
                            of secrets, the number of `failures`, and later `changes` of the identity
    blocks(number, pair, start, stop, digest, outputs, effects)      trials [start, stop) of a pair, in chronological
                            order: [outputs of d0, outputs of d1], and the side effects of both as JSON

Outputs have the encoding of `wire`, without code, and each block is one transaction.  A store may come from a failing
disk or a stranger: `digest` is the SHA-256 of the rest of the row, and the schema must be `TABLES`, without triggers.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from dpaudit.running.foreign import SideEffects
from dpaudit.running.identity import INCOMPARABLE, Identity, Secret, differing, encoded, in_words, not_compared
from dpaudit.running.streams import fresh_seed
from dpaudit.running.wire import Unsendable, unframe
from dpaudit.values import RawOutputs

FORMAT = 6
APPLICATION = int.from_bytes(b"dpau", "big")  # application id in the header of the SQLite file
TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE blocks (number INTEGER PRIMARY KEY, pair INTEGER NOT NULL, start INTEGER NOT NULL, "
    "stop INTEGER NOT NULL, digest BLOB NOT NULL, outputs BLOB NOT NULL, effects BLOB NOT NULL)",
)
_INDEX = "SELECT number, pair, start, stop, digest FROM blocks ORDER BY number"
_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError, MemoryError)


class StoreError(Exception):
    """Raised if trials cannot be stored or read.  The message names the file and the reason."""


class OtherAudit(StoreError):
    """Raised if a store holds the trials of another audit."""


class StoreRefused(ValueError):
    """Raised by `audit` before its first run if its store cannot be used."""

    def __str__(self) -> str:
        return f"store: {self.args[0]}"

    @property
    def other_audit(self) -> bool:
        """Whether the store holds the trials of another audit."""
        return isinstance(self.args[0], OtherAudit)


class Place(NamedTuple):
    """The row of a block."""

    number: int
    pair: int
    start: int
    stop: int  # index after the last trial
    digest: bytes


_NONE = SideEffects(), SideEffects()


class Store(AbstractContextManager["Store"]):
    """The blocks of trials of one audit.  The file is locked until `close` is called or the `with` block ends."""

    def __init__(self, path: str | Path, identity: Identity, *, seed: int = 0, anyway: bool = False) -> None:
        self.path = Path(path)
        self._places: dict[tuple[int, int], Place] = {}  # by pair and start
        self._added: set[tuple[int, int]] = set()  # blocks that this object has written
        self._reused: dict[tuple[int, int], int] = {}  # number of runs read from other blocks, by block
        self._connection = opened(self.path)
        try:
            with explained(self.path):
                for place in map(
                    Place._make, self._connection.execute(_INDEX)
                ):  # bodies are checked when they are read
                    known = all(isinstance(number, int) for number in place[:-1])
                    if not known or place.number != len(self._places) or place.start >= place.stop:
                        raise self._changed(len(self._places))
                    self._places[place.pair, place.start] = place
                self._begin(identity, seed, anyway=anyway)
        except BaseException:
            self.close()
            raise

    def _begin(self, identity: Identity, seed: int, *, anyway: bool) -> None:
        """Write the identity of the audit, or compare it with that of the stored trials."""
        try:
            about = {name: json.loads(text) for name, text in self._connection.execute("SELECT name, value FROM about")}
            self.failures = int(about.get("failures", 0))  # kept, although the training may have changed since
            if not self._places:
                now = datetime.now(UTC).isoformat(timespec="seconds")
                about = {"made": now, "changes": [], "salt": secrets.token_hex(16), "identity": {}}
            self.made, self.changes = str(about["made"]), [str(change) for change in about["changes"]]
            salt, there = bytes.fromhex(about["salt"]), dict(about["identity"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise damaged(self.path, "the identity of the audit is missing") from None
        self._not_compared = not_compared(identity)
        if self._not_compared and not anyway:
            raise StoreError(
                f"{self.path}: the content of some objects cannot be compared, so another mechanism could continue the "
                f"store: {'; '.join(self._not_compared)}.  Put the mechanism into a file and name it in a config as "
                "FILE.py:OBJECT, run the audit without a store, or use resume=anyway (--resume=anyway); the result "
                "then says so"
            )
        here = {name: part.keyed(salt) if isinstance(part, Secret) else part for name, part in identity.items()}
        runs, names = sum(self.trials.values()), differing(there, here) if self._places else []
        incomparable = [name for name in names if name in INCOMPARABLE]
        if names and (incomparable or not anyway):
            lines = "\n  ".join(["These parts differ:", *in_words(there, here, "in the store")])
            remedy = "To continue the store nevertheless, use resume=anyway (--resume=anyway); the result then says so"
            if incomparable:
                remedy = (
                    "Even resume=anyway cannot continue the store, because outputs that differ in the following are "
                    f"not comparable: {', '.join(incomparable)}"
                )
            raise OtherAudit(
                f"{self.path} holds the trials of another audit.  {lines}\n"
                f"The {runs:,} stored runs per dataset are unchanged.  Name another store, remove this store, "
                f"or restore these parts.  {remedy}"
            )
        if names:
            self.changes.append(f"since trial {runs:,}, these parts differ: {', '.join(in_words(there, here))}")
        if names or not self._places:
            about = {"identity": here, "seed": seed, "made": self.made, "changes": self.changes, "salt": salt.hex()}
            self._write_about(**about, failures=self.failures)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the file."""
        self._connection.close()

    @property
    def trials(self) -> dict[int, int]:
        """The number of stored runs per dataset, by pair, from the first run up to the first gap."""
        stops = dict.fromkeys(sorted({pair for pair, _ in self._places}), 0)
        for pair in stops:
            while (pair, stops[pair]) in self._places:
                stops[pair] = self._places[pair, stops[pair]].stop
        return stops

    def words(self, trials: int) -> list[str]:
        """Return warnings about runs that this audit did not make."""
        reused = sum(self._reused.values())
        if not reused:
            return []
        mixed = [
            f"the store was continued although it held the trials of another audit (resume=anyway): {change}; the "
            "earlier runs have another mechanism, dataset or setting, and the guarantee does not cover the mixture"
            for change in self.changes
        ]
        partial = [
            f"the store could not compare all of the {part}: the guarantee holds only if the rest is unchanged, too"
            for part in self._not_compared
        ]
        return [f"{reused:,} of the {trials:,} runs per dataset come from a store of {self.made}", *mixed, *partial]

    def get(self, pair: int, start: int, stop: int) -> tuple[RawOutputs, RawOutputs] | None:
        """Return the block that starts at trial `start`, truncated at `stop`."""
        if (place := self._places.get((pair, start))) is None:
            return None
        try:
            first, second = unframe(self._bytes(place)[0])
        except _UNREADABLE:
            raise self._changed(place.number) from None
        for outputs in (first, second):
            length = (len(outputs),) if isinstance(outputs, list) else getattr(outputs, "shape", ())[:1]
            if length != (place.stop - start,):
                raise self._changed(place.number)
        if (pair, start) not in self._added:
            self._reused[pair, start] = max(min(stop, place.stop) - start, self._reused.get((pair, start), 0))
        return first[: stop - start], second[: stop - start]

    def side_effects(self, pair: int, start: int) -> tuple[SideEffects, SideEffects]:
        """Return the side effects of a block's runs."""
        place = self._places[pair, start]
        try:
            first, second = (SideEffects(**side) for side in json.loads(self._bytes(place)[1]))
            return first, second
        except _UNREADABLE:
            raise self._changed(place.number) from None

    def put(
        self, pair: int, start: int, outputs0: RawOutputs, outputs1: RawOutputs, effects: Sequence[SideEffects] = _NONE
    ) -> None:
        """Write a block, unless the block is empty or already in the store."""
        if (pair, start) in self._places or len(outputs0) == 0:
            return
        reported = json.dumps(list(map(asdict, effects))).encode()
        try:
            outputs = encoded((outputs0, outputs1))
        except Unsendable as error:
            reason = f"an output cannot be stored: {error}; run the audit without a store"
            raise StoreError(f"{self.path}: {reason}") from None
        row = len(self._places), pair, start, start + len(outputs0)
        place = Place(*row, digest_of(*row, outputs, reported))
        with explained(self.path), _transaction(self._connection):
            self._connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?)", (*place, outputs, reported))
        self._places[pair, start] = place
        self._added.add((pair, start))

    def count_failure(self) -> None:
        """Record a failure, which ends the audit."""
        self.failures += 1
        with explained(self.path):
            self._write_about(failures=self.failures)

    def _changed(self, number: int) -> StoreError:
        return damaged(self.path, f"block {number} differs from the written block")

    def _bytes(self, place: Place) -> tuple[bytes, bytes]:
        """Read the outputs and the side effects of a block."""
        with explained(self.path):
            query = "SELECT outputs, effects FROM blocks WHERE number = ?"
            outputs, effects = self._connection.execute(query, (place.number,)).fetchone()
        if digest_of(*place[:-1], outputs, effects) != place.digest:
            raise ValueError
        return outputs, effects

    def _write_about(self, **values: object) -> None:
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        with _transaction(self._connection):  # so that no identity is stored without its recorded change
            self._connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)


def seed_of(path: str | Path | None) -> int:
    """Return the seed that a store records, or a fresh seed.  Errors are reported when an audit opens the store."""
    with suppress(StoreError, ValueError, TypeError):
        if path is not None and Path(path).is_file():
            with closing(opened(Path(path))) as connection, explained(Path(path)):
                return int(connection.execute("SELECT value FROM about WHERE name = 'seed'").fetchone()[0])
    return fresh_seed()


def digest_of(number: int, pair: int, start: int, stop: int, outputs: bytes, effects: bytes) -> bytes:
    """Return the SHA-256 of a row, so that a changed, moved or repeated block is detected."""
    row = b"".join(one.to_bytes(8, "little", signed=True) for one in (number, pair, start, stop))
    return hashlib.sha256(row + hashlib.sha256(outputs).digest() + effects).digest()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Replace any error of SQLite or of the file system inside the `with` block by a StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_MISMATCH", "SQLITE_SCHEMA")):
            raise damaged(path, str(error)) from None
        reason = f"cannot be opened for writing: {error}"
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            reason = "is in use by another audit.  Wait for the end of that audit, or name another store"
        elif name.startswith("SQLITE_FULL"):
            reason = "cannot be written: No space left on device"
        raise StoreError(f"{path} {reason}") from None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise damaged(path, "the text is not UTF-8") from None


def opened(path: Path) -> sqlite3.Connection:
    """Open a store with an exclusive lock; create a missing file, and leave a file that is not a store unchanged."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        for file in (path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal"))):
            if file.is_symlink():  # SQLite would write to its target
                raise StoreError(f"{file} is a symbolic link to {os.readlink(file)}.  Name the target file itself")
        if path.exists() and not path.is_file():
            raise StoreError(f"{path} is not a regular file; it may be a directory or a device.  Name another store")
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CREAT, 0o600), "rb") as stream:
            first = stream.read(16)
        if first and first != b"SQLite format 3\x00":
            raise StoreError(f"{path} is not a store of trials, and was left as it is.  Name another store")
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    execute = connection.execute
    for setting in ("locking_mode = EXCLUSIVE", "trusted_schema = OFF", "cell_size_check = ON"):
        execute(f"PRAGMA {setting}")
    application, version = (execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    tables = [row[0] for row in execute("SELECT sql FROM sqlite_master WHERE NOT (type = 'index' AND sql IS NULL)")]
    if application not in (0, APPLICATION) or (tables and application == 0):
        raise StoreError(f"{path} is an SQLite database, but not a store of trials, and was left as it is")
    if version != (FORMAT if tables else 0):
        raise StoreError(f"{path} has store format {version}; this version of dpaudit reads format {FORMAT}")
    if tables and sorted(map(str, tables)) != sorted(TABLES):  # the schema of a damaged file may be bytes or NULL
        raise damaged(path, "the tables differ from the tables of a store")
    execute("PRAGMA journal_mode = WAL")
    execute("PRAGMA synchronous = FULL")  # committed blocks survive a power cut
    with _transaction(connection):
        if not tables:
            execute(f"PRAGMA application_id = {APPLICATION}")
            execute(f"PRAGMA user_version = {FORMAT}")
            for table in TABLES:
                execute(table)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def damaged(path: Path, why: str) -> StoreError:
    """Return the error for a damaged store."""
    return StoreError(f"{path} is damaged: {why}.  Restore the file from a copy, or remove it and begin again")
