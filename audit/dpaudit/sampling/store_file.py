"""Opens and checks the SQLite file of a store, and turns each error of SQLite into a sentence.

A store may come from an untrusted source or from a failing disk.  So all content of the file is checked before use.
The schema must be exactly `TABLES`, so that no trigger or view can run.  A digest covers each block.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Self

FORMAT = 4
_EARLIER = (
    "{} comes from an earlier version of dpaudit and does not record whether the trials belong to this audit.  Name "
    "another store, or remove this store"
)
APPLICATION = int.from_bytes(b"dpau", "big")  # application id in the header of the SQLite file
OLD_MAGICS = (b"dpaudit-store/1", b"dpaudit-store/2")  # a store of an earlier version begins with one of these texts
BEGIN = (
    b"dpaudit-store/3"  # the digest chain starts with the SHA-256 of these bytes; formats 3 and 4 have the same chain
)

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
        raise StoreError(f"{path} {_reason(error)}") from None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise StoreError(
            f"{path} is damaged: the text is not UTF-8.  Restore the file from a copy, or remove it and begin again"
        ) from None


def opened(path: Path) -> sqlite3.Connection:
    """Open a store with an exclusive lock, which lasts until the connection is closed or its process ends.

    A missing file is created.  A file that is not a store is left unchanged.

    Returns:
        The connection to a database with all tables.  A new store has no rows.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        checked = _checked(path)
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        with explained(path):
            if _identity(path.lstat()) != checked:  # SQLite follows a link that replaced the file after the check
                raise StoreError(f"{path} was replaced while it was being opened.  Name another store")
            _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _checked(path: Path) -> tuple[int, ...]:
    """Create a missing file, and refuse links, folders, devices, pipes and files of another format.

    Only its owner can read a new file.

    Returns:
        The identity of the file.
    """
    for one in (path, *(path.with_name(path.name + ending) for ending in _SIDE_FILES)):
        if one.is_symlink():
            raise StoreError(
                f"{one} is a symbolic link to {os.readlink(one)}.  Name the target file itself, or remove the link"
            )
    if path.is_dir():
        raise StoreError(f"{path} is not a regular file; it is a directory.  Name another store")
    # These flags refuse a link that replaced the file after the check, and do not wait for a pipe.
    handle = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    with os.fdopen(
        handle, "rb"
    ) as file:  # the file is closed before SQLite opens it, because closing drops SQLite's locks
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise StoreError(f"{path} is not a regular file; it may be a directory or a device.  Name another store")
        first = file.read(16)
    if first.startswith(OLD_MAGICS):
        raise StoreError(_EARLIER.format(path))
    if first and first != b"SQLite format 3\x00":
        raise StoreError(f"{path} is not a store of trials, and was left as it is.  Name another store")
    return _identity(about)


def _identity(about: os.stat_result) -> tuple[int, ...]:
    """Return the device, inode and kind of a file.  A link may get the inode of a removed file."""
    return about.st_dev, about.st_ino, stat.S_IFMT(about.st_mode)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Lock the file, check that it is a store, and create the tables of a new store."""
    execute = connection.execute
    execute("PRAGMA locking_mode = EXCLUSIVE")
    execute("PRAGMA trusted_schema = OFF")
    execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):  # an additional safeguard, because the code below refuses triggers in every version
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
    application, version = (execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    found = [row[0] for row in execute("SELECT sql FROM sqlite_master WHERE NOT (type = 'index' AND sql IS NULL)")]
    if application not in (0, APPLICATION) or (found and application == 0):
        raise StoreError(f"{path} is an SQLite database, but not a store of trials, and was left as it is")
    if version > FORMAT:
        raise StoreError(
            f"{path} has store format {version}; this version of dpaudit reads format {FORMAT}.  Update dpaudit"
        )
    if found and version < FORMAT:
        raise StoreError(_EARLIER.format(path))
    if found and sorted(map(str, found)) != sorted(TABLES):  # the schema of a damaged file may be bytes or NULL
        raise StoreError(f"{path} is damaged: the tables differ from the tables of a store")
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


def _reason(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "is in use by another audit.  Wait for the end of that audit, or name another store"
    if name.startswith("SQLITE_FULL"):
        return "cannot be written: No space left on device"
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return f"cannot be opened for writing: {error}"
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_MISMATCH", "SQLITE_SCHEMA")):
        return f"is damaged: {error}.  Restore the file from a copy, or remove it and begin again"
    return f"cannot be used: {error}"


def seed_in(path: Path) -> int | None:
    """Return the seed that a store records, or None if the store does not exist or cannot be read.

    Errors are reported when the store is opened for an audit.
    """
    try:
        if not path.is_file():
            return None
        with closing(opened(path)) as connection, explained(path):
            row = connection.execute("SELECT value FROM about WHERE name = 'seed'").fetchone()
        return int(row[0]) if row is not None else None
    except (StoreError, ValueError):
        return None
