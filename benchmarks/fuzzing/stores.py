"""Fuzz stores of trials: change the bytes of the file, or rows of the database, with old or recomputed digests."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from dpaudit.running.store import Store, StoreError, digest_of
from dpaudit.running.wire import HEADER, frame

from .mutations import VALUES, Random, Target, Wrong, of_bytes

_IDENTITY = {"mechanism": "fuzzed", "seed": "0"}
_PIECE = 8  # number of trials in each block
_COLUMNS = {"about": ("name", "value"), "blocks": ("number", "pair", "start", "stop", "digest", "outputs", "effects")}
_STATEMENTS = [
    "DELETE FROM {table} WHERE rowid = {row}",
    "UPDATE {table} SET {column} = NULL WHERE rowid = {row}",
    "DROP TABLE {table}",
    "CREATE TRIGGER t AFTER INSERT ON blocks BEGIN DELETE FROM blocks; END",
    "CREATE VIEW v AS SELECT load_extension('RAN')",
    "PRAGMA user_version = {row}9",
    "PRAGMA application_id = {row}",
    "PRAGMA encoding = 'UTF-16'",
]


def _outputs(number: int) -> tuple[list[Any], list[Any]]:
    kinds: list[list[Any]] = [
        [float(i) for i in range(_PIECE)],
        [{"text": "a", "n": 2**70 + i} for i in range(_PIECE)],
        [("t", b"\x00", None, float(i)) for i in range(_PIECE)],
    ]
    return kinds[number % 3], kinds[(number + 1) % 3]


class StoreFile(Target):
    """A store with six blocks of trials and two pairs of datasets."""

    name, share = "store", 0.12

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.whole, self.file = folder / "whole.trials", folder / "mutated.trials"
        with Store(self.whole, _IDENTITY) as store:
            for number in range(6):
                store.put(number % 2, number // 2 * _PIECE, *_outputs(number))
        self.content = self.whole.read_bytes()

    def attempt(self, rng: Random) -> str:
        for left in self.folder.glob("mutated.trials*"):
            left.unlink()
        kind = rng.integers(4)
        if kind <= 1:
            self.file.write_bytes(of_bytes(self.content, rng))
            if kind == 1 and rng.random() < 0.3:  # SQLite's auxiliary files of a store
                self.file.with_name(f"mutated.trials{['-wal', '-journal'][rng.integers(2)]}").write_bytes(rng.bytes(99))
        else:
            shutil.copyfile(self.whole, self.file)
            with closing(sqlite3.connect(self.file, isolation_level=None)) as database:
                (_changed_rows if kind == 2 else _changed_blocks)(database, rng)
        try:
            return self._read(honest=kind != 3)
        except StoreError:
            return "refused"

    def _read(self, *, honest: bool) -> str:
        """Read all blocks of the store and append one block.

        Unless digests were recomputed, every output that is read must equal the output that was written.
        """
        with Store(self.file, _IDENTITY) as store:
            found = 0
            for number in range(6):
                place = number % 2, number // 2 * _PIECE
                block = store.get(*place, place[1] + _PIECE)
                if block is None:
                    continue
                str(store.side_effects(*place))
                if len(block[0]) != len(block[1]):
                    raise Wrong(f"block {number} has {len(block[0])} and {len(block[1])} outputs")
                if honest and tuple(map(list, block)) != _outputs(number):
                    raise Wrong(f"block {number} holds other outputs than were written")
                found += 1
            store.put(5, 0, *_outputs(0))
            store.words(100)
        return "read" if found else "read as empty"


def _changed_rows(database: sqlite3.Connection, rng: Random) -> None:
    table = list(_COLUMNS)[rng.integers(len(_COLUMNS))]
    column = _COLUMNS[table][rng.integers(len(_COLUMNS[table]))]
    row = int(rng.integers(1, 7))
    try:
        if rng.random() < 0.5:
            statement = _STATEMENTS[rng.integers(len(_STATEMENTS))]
            database.execute(statement.format(table=table, column=column, row=row))
        else:
            value = VALUES[rng.integers(len(VALUES))]
            value = value if isinstance(value, str | int | float) else str(value)
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
    except (sqlite3.Error, OverflowError, UnicodeError):
        pass  # SQLite rejects the mutated value, so the store is unchanged


def _changed_blocks(database: sqlite3.Connection, rng: Random) -> None:
    """Change the content or the end of a block, and recompute its digest."""
    number = int(rng.integers(6))
    query = "SELECT pair, start, stop, outputs, effects FROM blocks WHERE number = ?"
    pair, start, stop, outputs, effects = database.execute(query, (number,)).fetchone()
    kind = rng.integers(4)
    if kind == 0:
        outputs = of_bytes(outputs, rng)
    elif kind == 1:
        outputs = frame(VALUES[rng.integers(len(VALUES))])[HEADER.size :]
    elif kind == 2:
        effects = of_bytes(effects, rng)
    else:
        stop = start + int(rng.integers(1, 2**40))
    values = (stop, digest_of(number, pair, start, stop, outputs, effects), outputs, effects, number)
    database.execute("UPDATE blocks SET stop = ?, digest = ?, outputs = ?, effects = ? WHERE number = ?", values)
