"""Stores trials on disk, so that an audit can be resumed.  The outputs determine all other results.

A store is one SQLite file.  While the store is in use, the file NAME-wal exists in the same folder.  The tables are:

    about(name, value)      identity (see `sampling.identity`), seed and date of the audit, the `salt` of the hashes
                            of secrets, the number of `failures`, and later `changes` of the identity
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
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

import numpy as np

from dpaudit.mechanisms.wire import HEADER, Unsendable, frame, unframe
from dpaudit.sampling.identity import Identity, differing, in_words, keyed, mixable, not_compared, public, what_to_do
from dpaudit.sampling.output_fingerprint import encoded
from dpaudit.sampling.side_effects import SideEffects
from dpaudit.sampling.store_file import BEGIN, OtherAudit, Place, StoreError, chained, damaged, explained, opened
from dpaudit.sampling.streams import fresh_seed
from dpaudit.values import Foreign, RawOutputs

__all__ = ["Store", "StoreError", "seed_of"]

MAX_PART_BYTES = 2**28  # maximum size of one part of a body; SQLite allows at most 10^9 bytes in one value
_SALT_BYTES = 16
_Side = TypeVar("_Side")


class Store:
    """The blocks of trials of one audit.  The file is locked until `close` is called or the `with` block ends.

    Attributes:
        path: The file.
        made: The date of the store, in ISO 8601, UTC.
        changes: The differences at each change of the identity.
        failures: Number of recorded failures; see `count_failure`.
    """

    def __init__(self, path: str | Path, identity: Identity, *, seed: int = 0, anyway: bool = False) -> None:
        """Open a store, and create the store if it does not exist."""
        self.path = Path(path)
        self._places: dict[tuple[int, int], Place] = {}  # by pair and start
        self._added: set[tuple[int, int]] = set()  # blocks that this object has written
        self._reused: dict[tuple[int, int], int] = {}  # number of runs read from other blocks, by block
        self._chain = hashlib.sha256(BEGIN).digest()
        self._connection = opened(self.path)
        try:
            with explained(self.path):
                self._read_places()
                self._begin(identity, seed, anyway=anyway)
        except BaseException:
            self.close()
            raise

    def _begin(self, identity: Identity, seed: int, *, anyway: bool) -> None:
        """Write the identity of the audit, or compare it with that of the stored trials."""
        try:
            about = {name: json.loads(text) for name, text in self._connection.execute("SELECT name, value FROM about")}
            self.failures = int(about.get("failures", 0))  # kept, although the training may have changed since
            new = (
                {"made": datetime.now(UTC).isoformat(timespec="seconds"), "changes": []} if not self._places else about
            )
            self.made, self.changes = str(new["made"]), [str(change) for change in new["changes"]]
            salt = bytes.fromhex(about["salt"]) if self._places else secrets.token_bytes(_SALT_BYTES)
            there = dict(about["identity"]) if self._places else {}
        except (ValueError, TypeError, KeyError, RecursionError):
            raise damaged(self.path, "the identity of the audit is missing") from None
        self._not_compared = not_compared(public(identity))
        here = keyed(identity, salt)
        names = differing(there, here) if self._places else []
        runs = sum(self.trials.values())
        if names and not (anyway and mixable(names)):
            lines = "\n  ".join(["These parts differ:", *in_words(there, here, "in the store")])
            raise OtherAudit(
                f"{self.path} holds the trials of another audit.  {lines}\n"
                f"The {runs:,} stored runs per dataset are unchanged.  Name another store, remove this store, "
                f"or restore these parts.  {what_to_do(names)}"
            )
        if names:
            self.changes.append(f"since trial {runs:,}, these parts differ: {', '.join(in_words(there, here))}")
        if names or not self._places:
            self._write_about(identity=here, seed=seed, made=self.made, changes=self.changes, salt=salt.hex())
            self._write_about(failures=self.failures)

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
            for change in self.changes
        ]
        found += [
            f"the store could not compare all of the {part}: the guarantee holds only if the rest is unchanged, too"
            for part in self._not_compared
        ]
        return found

    def get(self, pair: int, start: int, stop: int) -> tuple[RawOutputs, RawOutputs] | None:
        """Return the block that starts at trial `start`, truncated at `stop`."""
        if (pair, start) not in self._places:
            return None
        place = self._places[pair, start]

        def outputs(side: Foreign) -> RawOutputs:
            if not isinstance(side, list | np.ndarray) or len(side) != place.stop - start:
                raise ValueError
            return side

        outputs0, outputs1 = self._sides(place, slice(place.size), outputs)
        if (pair, start) not in self._added:
            self._reused[pair, start] = max(min(stop, place.stop) - start, self._reused.get((pair, start), 0))
        return outputs0[: stop - start], outputs1[: stop - start]

    def side_effects(self, pair: int, start: int) -> tuple[SideEffects, SideEffects]:
        """Return the side effects of a block's runs."""
        if (pair, start) not in self._places:
            return SideEffects(), SideEffects()
        place = self._places[pair, start]
        return self._sides(place, slice(place.size, None), lambda side: SideEffects(**side))

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
        for number, pair, start, stop, size, digest, chain in rows:
            with suppress(TypeError, AttributeError, OverflowError):
                self._chain = chained(self._chain, pair, start, stop, digest)
            if number != len(self._places) or chain != self._chain or start >= stop:
                raise damaged(self.path, f"block {len(self._places)} differs from the written block")
            self._places[pair, start] = Place(number, stop, size, digest)

    def _sides(self, place: Place, part: slice, read: Callable[[Foreign], _Side]) -> tuple[_Side, _Side]:
        """Read a part of a block's body, which holds one value for each dataset."""
        with explained(self.path):
            rows = self._connection.execute("SELECT data FROM bodies WHERE block = ? ORDER BY part", (place.number,))
            parts = [data for (data,) in rows]
        try:
            body = b"".join(parts)
            if hashlib.sha256(body).digest() == place.digest:
                first, second = unframe(body[part])
                return read(first), read(second)
        except (ValueError, TypeError, RecursionError, MemoryError):
            pass
        raise damaged(self.path, f"block {place.number} differs from the written block")

    def _write_about(self, **values: object) -> None:
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        with self._transaction():  # so that no identity is stored without its recorded change
            self._connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)


def seed_of(path: str | Path | None) -> int:
    """Return the seed that a store records, or a fresh seed if there is no such seed.

    Errors are reported when the store is opened for an audit.
    """
    try:
        if path is None or not Path(path).is_file():
            return fresh_seed()
        with closing(opened(Path(path))) as connection, explained(Path(path)):
            row = connection.execute("SELECT value FROM about WHERE name = 'seed'").fetchone()
        return fresh_seed() if row is None else int(row[0])
    except (StoreError, ValueError):
        return fresh_seed()
