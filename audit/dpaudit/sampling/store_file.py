"""Opens and checks the SQLite file of a store, and turns each error of SQLite into a sentence.

A store may come from a failing disk or from a stranger.  The schema must be exactly `TABLES`, so that no trigger or
view can run.  A digest covers each block.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

FORMAT = 4
APPLICATION = int.from_bytes(b"dpau", "big")  # application id in the header of the SQLite file
BEGIN = b"dpaudit-store"  # the digest chain starts with the SHA-256 of these bytes

TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE blocks (number INTEGER PRIMARY KEY, pair INTEGER NOT NULL, start INTEGER NOT NULL, "
    "stop INTEGER NOT NULL, size INTEGER NOT NULL, digest BLOB NOT NULL, chain BLOB NOT NULL)",
    "CREATE TABLE bodies (block INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL, "
    "PRIMARY KEY (block, part))",
)
_PAGE_BYTES = 16_384  # larger than the default of SQLite, because bodies are long
_SIDE_FILES = ("-wal", "-shm", "-journal")  # suffixes of the additional files of SQLite


class StoreError(Exception):
    """Raised if trials cannot be stored or read.  The message names the file and the reason."""


class OtherAudit(StoreError):
    """Raised if a store holds the trials of another audit."""


class StoreRefused(ValueError):
    """Raised by `audit` before its first run if its store cannot be used."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"store: {error}")
        self.other_audit = isinstance(error, OtherAudit)

    def __reduce__(self) -> tuple[type[Self], tuple[Exception]]:
        error = OtherAudit if self.other_audit else StoreError
        return type(self), (error(str(self).removeprefix("store: ")),)


class Place(NamedTuple):
    """The row of a block, with the required digest of the body."""

    number: int
    stop: int  # index after the last trial
    size: int  # number of bytes of the outputs, which precede the side effects
    digest: bytes  # SHA-256 of the body


def chained(before: bytes, pair: int, start: int, stop: int, digest: bytes) -> bytes:
    """Return the chain value of a block.

    The value is the SHA-256 over the preceding chain value, the trials of the block and the digest of its body.  A
    check of the chain thus detects changed, moved, repeated and removed blocks, except blocks removed from the end.
    """
    numbers = b"".join(number.to_bytes(8, "little", signed=True) for number in (pair, start, stop))
    return hashlib.sha256(before + numbers + digest).digest()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Replace any error of SQLite or of the file system inside the `with` block by a StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_reason(path, error)) from None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise damaged(path, "the text is not UTF-8") from None


def opened(path: Path) -> sqlite3.Connection:
    """Open a store with an exclusive lock, which lasts until the connection is closed or its process ends.

    A missing file is created, and only its owner can read it.  A file that is not a store is left unchanged.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        for one in (path, *(path.with_name(path.name + ending) for ending in _SIDE_FILES)):
            if one.is_symlink():  # SQLite would write to its target
                raise StoreError(
                    f"{one} is a symbolic link to {os.readlink(one)}.  Name the target file itself, or remove the link"
                )
        if path.exists() and not path.is_file():
            raise StoreError(f"{path} is not a regular file; it may be a directory or a device.  Name another store")
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CREAT, 0o600), "rb") as file:
            first = file.read(16)
        if first and first != b"SQLite format 3\x00":
            raise StoreError(f"{path} is not a store of trials, and was left as it is.  Name another store")
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        with explained(path):
            _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Lock the file, check that it is a store, and create the tables of a new store."""
    execute = connection.execute
    execute("PRAGMA locking_mode = EXCLUSIVE")
    execute("PRAGMA trusted_schema = OFF")
    execute("PRAGMA cell_size_check = ON")
    application, version = (execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    found = [row[0] for row in execute("SELECT sql FROM sqlite_master WHERE NOT (type = 'index' AND sql IS NULL)")]
    if application not in (0, APPLICATION) or (found and application == 0):
        raise StoreError(f"{path} is an SQLite database, but not a store of trials, and was left as it is")
    if version != (FORMAT if found else 0):
        raise StoreError(f"{path} has store format {version}; this version of dpaudit reads format {FORMAT}")
    if found and sorted(map(str, found)) != sorted(TABLES):  # the schema of a damaged file may be bytes or NULL
        raise damaged(path, "the tables differ from the tables of a store")
    if not found:
        execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    execute("PRAGMA journal_mode = WAL")
    execute("PRAGMA synchronous = FULL")  # committed blocks survive a power cut
    execute("BEGIN IMMEDIATE")
    if not found:
        execute(f"PRAGMA application_id = {APPLICATION}")
        execute(f"PRAGMA user_version = {FORMAT}")
        for table in TABLES:
            execute(table)
    execute("COMMIT")


def damaged(path: Path, why: str) -> StoreError:
    """Return the error for a damaged store."""
    return StoreError(f"{path} is damaged: {why}.  Restore the file from a copy, or remove it and begin again")


def _reason(path: Path, error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"{path} is in use by another audit.  Wait for the end of that audit, or name another store"
    if name.startswith("SQLITE_FULL"):
        return f"{path} cannot be written: No space left on device"
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return f"{path} cannot be opened for writing: {error}"
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_MISMATCH", "SQLITE_SCHEMA")):
        return str(damaged(path, str(error)))
    return f"{path} cannot be used: {error}"
