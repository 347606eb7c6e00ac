"""Stores trials on disk, so that an audit can be resumed.  The outputs determine all other results.

A store is one SQLite file.  While the store is in use, the file NAME-wal exists in the same folder.  The tables are:

    about(name, value)      identity, seed and date of the audit, the `salt` of the hashes of secrets, the number of
                            `failures`, and later `changes` of the identity
    blocks(number, pair, start, stop, size, digest, chain)      trials [start, stop) of a pair, in chronological order
    bodies(block, part, data)      the body of a block in parts: [outputs of d0, outputs of d1], then the side effects

A body has the encoding of `dpaudit.mechanisms.wire`, so it contains no executable code.  `size` is the number of bytes
of the outputs, which precede the side effects.  `digest` is the SHA-256 of the body, and `chain`
covers all blocks so far (`store_file.chained`).

Each block is one transaction, which reaches the disk before the audit continues.  A kill or a power cut loses only the
current block.  Only one process at a time can use a store.  The operating system unlocks the store when the process
ends.  A store with the identity of another audit is refused and left unchanged.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import numpy as np

from dpaudit.mechanisms.wire import HEADER, Unsendable, frame, unframe
from dpaudit.sampling.encoded import encoded
from dpaudit.sampling.identity_differences import differing, in_a_sentence, in_lines, mixable, shortened, what_to_do
from dpaudit.sampling.side_effects import SideEffects
from dpaudit.sampling.store_file import BEGIN, OtherAudit, Place, StoreError, chained, explained, opened, seed_in
from dpaudit.sampling.store_identity import Identity, keyed
from dpaudit.sampling.streams import fresh_seed
from dpaudit.values import Foreign, RawOutputs

__all__ = ["Store", "StoreError", "seed_of"]

MAX_PART_BYTES = 2**28  # maximum size of one part of a body; SQLite allows at most 10^9 bytes in one value
_SALT_BYTES = 16
_MAX_CHANGES = 5  # maximum number of changes of the identity in warnings, which list the latest changes
_MAX_CHANGE_CHARACTERS = 10_000  # maximum length of the text of one change; this module writes shorter texts


class Store:
    """The blocks of trials of one audit.  The file is locked until `close` is called or the `with` block ends.

    Attributes:
        path: The file.
        made: The date of the store, in ISO 8601, UTC.
        changes: One text for each change of the identity when the store was continued.  The text lists the differences.
        failures: Number of recorded failures; see `count_failure`.
    """

    def __init__(self, path: str | Path, identity: Identity, *, seed: int = 0, anyway: bool = False) -> None:
        """Open a store, and create the store if it does not exist."""
        self.path = Path(path)
        self.made = datetime.now(UTC).isoformat(timespec="seconds")
        self.changes: list[str] = []
        self.failures = 0
        self._places: dict[tuple[int, int], Place] = {}  # by pair and start
        self._added: set[tuple[int, int]] = set()  # blocks that this object has written
        self._reused: dict[tuple[int, int], int] = {}  # number of runs read from other blocks, by block
        self._chain = hashlib.sha256(BEGIN).digest()
        self._connection = opened(self.path)
        try:
            with explained(self.path):
                self._read_places()
                if self._places:
                    self._compare(identity, seed, anyway=anyway)
                else:
                    salt = secrets.token_bytes(_SALT_BYTES)
                    here = keyed(identity, salt)
                    self.failures = self._failures(self._about())  # kept, although the training may have changed since
                    self._write_about(identity=here, seed=seed, made=self.made, changes=[], salt=salt.hex())
                    self._write_about(failures=self.failures)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the file.  A closed store cannot be used.  A second call has no effect."""
        self._connection.close()

    @property
    def trials(self) -> dict[int, int]:
        """The number of stored runs per dataset, by pair, from the first run up to the first gap."""
        found: dict[int, int] = {}
        for pair in sorted({pair for pair, _ in self._places}):
            found[pair] = 0
            while (pair, found[pair]) in self._places:
                found[pair] = self._places[pair, found[pair]].stop
        return found

    def words(self, trials: int) -> list[str]:
        """Return warnings about runs that this audit did not make."""
        reused = sum(self._reused.values())
        if not reused:
            return []
        found = [f"{reused:,} of the {trials:,} runs per dataset come from a store of {self.made}"]
        found += [
            f"the store was continued although it held the trials of another audit (resume=anyway): {change}; the "
            "earlier runs have another mechanism, dataset or setting, and the guarantee does not cover the mixture"
            for change in self.changes[-_MAX_CHANGES:]
        ]
        if len(self.changes) > _MAX_CHANGES:
            found.append(f"the store had {len(self.changes) - _MAX_CHANGES:,} earlier changes of this kind")
        return found

    def get(self, pair: int, start: int, stop: int) -> tuple[RawOutputs, RawOutputs] | None:
        """Return the block that starts at trial `start`, truncated at `stop`."""
        if (pair, start) not in self._places:
            return None
        place = self._places[pair, start]
        outputs0, outputs1 = self._sides(place, self._body(place)[: place.size])
        if any(
            isinstance(side, dict) or (isinstance(side, np.ndarray) and side.ndim == 0) for side in (outputs0, outputs1)
        ):
            raise self._damaged(f"block {place.number} does not hold two lists of outputs")
        if len(outputs0) != place.stop - start or len(outputs1) != place.stop - start:
            raise self._damaged(f"block {place.number} does not hold the trials {start} to {place.stop}")
        if (pair, start) not in self._added:
            self._reused[pair, start] = max(min(stop, place.stop) - start, self._reused.get((pair, start), 0))
        return outputs0[: stop - start], outputs1[: stop - start]

    def side_effects(self, pair: int, start: int) -> tuple[SideEffects, SideEffects]:
        """Return the side effects of a block's runs."""
        if (pair, start) not in self._places:
            return SideEffects(), SideEffects()
        place = self._places[pair, start]
        first, second = self._sides(place, self._body(place)[place.size :])
        try:
            return SideEffects.read(first), SideEffects.read(second)
        except (TypeError, AttributeError):
            raise self._damaged(f"block {place.number} does not hold the side effects of its runs") from None

    def put(
        self,
        pair: int,
        start: int,
        outputs0: RawOutputs,
        outputs1: RawOutputs,
        side_effects: tuple[SideEffects, SideEffects] | None = None,
    ) -> None:
        """Write a block, unless the block is empty or already in the store."""
        if (pair, start) in self._places or len(outputs0) == 0:
            return
        effects = side_effects or (SideEffects(), SideEffects())
        reported = [{entry.name: getattr(one, entry.name) for entry in fields(one)} for one in effects]
        try:
            outputs = encoded((outputs0, outputs1))
        except Unsendable as error:
            raise StoreError(
                f"{self.path}: an output cannot be stored: {error}; run the audit without a store"
            ) from None
        self._append(pair, start, start + len(outputs0), outputs, frame(reported)[HEADER.size :])
        self._added.add((pair, start))

    def count_failure(self) -> None:
        """Record a failure, after which the audit ends and a later audit may repeat the failed run."""
        self.failures += 1
        with explained(self.path):
            self._write_about(failures=self.failures)

    def _append(self, pair: int, start: int, stop: int, outputs: bytes, effects: bytes) -> None:
        body = outputs + effects
        digest = hashlib.sha256(body).digest()
        chain = chained(self._chain, pair, start, stop, digest)
        number = len(self._places)
        parts = [
            (number, part, body[at : at + MAX_PART_BYTES])
            for part, at in enumerate(range(0, len(body), MAX_PART_BYTES))
        ]
        row = (number, pair, start, stop, len(outputs), digest, chain)
        with explained(self.path), self._transaction():
            self._connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            self._connection.executemany("INSERT INTO bodies VALUES (?, ?, ?)", parts)
        self._chain = chain
        self._places[pair, start] = Place(number, stop, len(outputs), digest)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _read_places(self) -> None:
        """Read the index of all blocks and check the chain.  Bodies are checked when they are read."""
        rows = self._connection.execute(
            "SELECT number, pair, start, stop, size, digest, chain FROM blocks ORDER BY number"
        )
        for expected, (number, pair, start, stop, size, digest, chain) in enumerate(rows):
            whole = all(type(value) is int for value in (pair, start, stop, size))
            if number != expected or not whole or type(digest) is not bytes or not 0 <= start < stop or pair < 0:
                raise self._damaged(f"block {expected} differs from the written block")
            self._chain = chained(self._chain, pair, start, stop, digest)
            if chain != self._chain or (pair, start) in self._places:
                raise self._damaged(f"block {number} does not match the chain of the blocks before it")
            self._places[pair, start] = Place(number, stop, size, digest)

    def _body(self, place: Place) -> bytes:
        with explained(self.path):
            rows = self._connection.execute("SELECT data FROM bodies WHERE block = ? ORDER BY part", (place.number,))
            parts = [part for (part,) in rows]
        body = b"".join(part for part in parts if type(part) is bytes)
        if hashlib.sha256(body).digest() != place.digest:
            raise self._damaged(f"block {place.number} differs from the written block")
        return body

    def _sides(self, place: Place, body: bytes) -> tuple[Foreign, Foreign]:
        try:
            first, second = unframe(body)
        except (ValueError, TypeError, RecursionError, MemoryError):
            raise self._damaged(f"block {place.number} does not hold two sides") from None
        if not all(isinstance(side, (list, dict, np.ndarray)) for side in (first, second)):
            raise self._damaged(f"block {place.number} does not hold two lists")
        return first, second

    def _write_about(self, **values: object) -> None:
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        with self._transaction():  # so that no identity is stored without its recorded change
            self._connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)

    def _about(self) -> dict[str, Foreign]:
        try:
            return {name: json.loads(text) for name, text in self._connection.execute("SELECT name, value FROM about")}
        except (ValueError, TypeError, RecursionError):
            raise self._damaged("the identity of the audit is missing") from None

    def _compare(self, identity: Identity, seed: int, *, anyway: bool) -> None:
        """Refuse trials of another identity and list all differences, or record the differences with `anyway`."""
        about = self._about()
        there, changes = about.get("identity"), about.get("changes")
        if not isinstance(there, dict) or not isinstance(changes, list):
            raise self._damaged("the identity of the audit is missing")
        self.failures = self._failures(about)
        here = keyed(identity, self._salt(about.get("salt")))
        self.made = shortened(about.get("made", "an unknown date"))
        self.changes = [str(change)[:_MAX_CHANGE_CHARACTERS] for change in changes]
        names = differing(there, here)
        if names and anyway and mixable(names):
            self.changes.append(
                f"since trial {sum(self.trials.values()):,}, these parts differ: {in_a_sentence(names, there, here)}"
            )
            salt = secrets.token_bytes(_SALT_BYTES)  # the author of the store may have chosen the old salt
            here = keyed(identity, salt)
            self._write_about(identity=here, seed=seed, changes=self.changes, salt=salt.hex())
        elif names:
            raise OtherAudit(
                f"{self.path} holds the trials of another audit.  These parts differ:{in_lines(names, there, here)}\n"
                f"The {sum(self.trials.values()):,} stored runs per dataset are unchanged.  "
                f"Name another store, remove this store, or restore these parts.  {what_to_do(names)}"
            )

    def _failures(self, about: dict[str, Foreign]) -> int:
        found = about.get("failures", 0)
        if type(found) is not int or found < 0:
            raise self._damaged("the number of failures is missing")
        return found

    def _salt(self, recorded: Foreign) -> bytes:
        if not isinstance(recorded, str) or not re.fullmatch(f"[0-9a-f]{{{2 * _SALT_BYTES}}}", recorded):
            raise self._damaged("the salt for the hashes of secrets is missing")
        return bytes.fromhex(recorded)

    def _damaged(self, why: str) -> StoreError:
        return StoreError(f"{self.path} is damaged: {why}.  Restore the file from a copy, or remove it and begin again")


def seed_of(path: str | Path | None) -> int:
    """Return the seed that a store records, or a fresh seed if there is no such seed."""
    found = None if path is None else seed_in(Path(path))
    return fresh_seed() if found is None else found
