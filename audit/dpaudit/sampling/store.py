"""Trials on disk, so that an audit can be continued: outputs are the only thing that cannot be computed again.

A store is one SQLite file, with `-wal` beside it while it is in use.  Its tables:

    about(name, value)      identity, seed and date of the audit; `changes` if it went on with another identity
    blocks(number, pair, start, stop, size, digest, chain)      trials [start, stop) of a pair, in the order of time
    bodies(block, part, data)      the body of a block in parts: [outputs of d0, outputs of d1], then the side effects

A body is in the encoding of `dpaudit.mechanisms.wire`, the same as between processes: nothing in it can be executed.
`size` is the length of its outputs; the side effects of the runs follow them.  `digest` is the SHA-256 of the body and
`chain` covers all blocks so far (`store_file.chained`).

Each block is one transaction, on the disk before the audit goes on.  A kill or a power cut loses the block that was
being written and no other.  One process at a time can use a store; when it ends, the operating system frees it.
A store whose identity is not that of the audit is refused, and nothing in it is changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from dpaudit.mechanisms.wire import HEADER, Unsendable, frame, unframe
from dpaudit.sampling.side_effects import SideEffects
from dpaudit.sampling.store_file import BEGIN, StoreError, chained, explained, opened, seed_in
from dpaudit.sampling.store_identity import Identity
from dpaudit.sampling.streams import fresh_seed
from dpaudit.values import Foreign, RawOutputs

__all__ = ["Store", "StoreError", "seed_of"]

MAX_PART_BYTES = 2**28  # SQLite holds at most 10^9 bytes in one value
_MAX_VALUE_CHARACTERS = 60  # of one value in a message
_MAX_LINES = 30  # of differences in a message


class Store:
    """Blocks of trials of one audit.  Close it, or use it as a context manager: it is locked until then."""

    def __init__(self, path: str | Path, identity: Identity, *, seed: int = 0, anyway: bool = False) -> None:
        """Open a store, or make it.

        Args:
            path: The file.
            identity: What decides the outputs, from `sampling.store_identity`.
            seed: The audit's seed, for `seed_of`.
            anyway: Go on with the trials of another identity.  The store records the change, and `words` reports it.

        Raises:
            StoreError: The file holds trials of another identity, is in use, or cannot be read or written.
        """
        self.path = Path(path)
        self.made = datetime.now(UTC).isoformat(timespec="seconds")
        self.changes: list[str] = []  # what differed, each time the store went on with another identity
        self._places: dict[tuple[int, int], _Place] = {}  # by pair and start
        self._added: set[tuple[int, int]] = set()  # blocks that this object has written
        self._reused: dict[tuple[int, int], int] = {}  # runs that were read of the other blocks
        self._chain = hashlib.sha256(BEGIN).digest()
        self._connection = opened(self.path)
        try:
            with explained(self.path):
                self._read_places()
                if self._places:
                    self._compare(dict(identity), anyway=anyway)
                else:
                    self._write_about(identity=dict(identity), seed=seed, made=self.made, changes=[])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the file.  A store that is closed cannot be used any more; closing it twice does no harm."""
        self._connection.close()

    @property
    def trials(self) -> dict[int, int]:
        """How many runs per dataset the store holds of each pair, counted from the first until a gap."""
        found: dict[int, int] = {}
        for pair in sorted({pair for pair, _ in self._places}):
            found[pair] = 0
            while (pair, found[pair]) in self._places:
                found[pair] = self._places[pair, found[pair]].stop
        return found

    def words(self, trials: int) -> list[str]:
        """What a reader must know of runs that this audit did not make.

        Args:
            trials: Runs per dataset of the audit.
        """
        reused = sum(self._reused.values())
        if not reused:
            return []
        found = [f"{reused:,} of the {trials:,} runs per dataset are from a store made at {self.made}"]
        return found + [
            f"the store was continued although it held the trials of another audit (resume=anyway): {change}; the runs "
            "before that are of another mechanism, dataset or setting, and the guarantee does not cover the mixture"
            for change in self.changes
        ]

    def get(self, pair: int, start: int, stop: int) -> tuple[RawOutputs, RawOutputs] | None:
        """The block that starts at trial `start`, cut off at `stop`; None if there is no such block."""
        if (pair, start) not in self._places:
            return None
        place = self._places[pair, start]
        outputs0, outputs1 = self._sides(place, self._body(place)[: place.size])
        if len(outputs0) != place.stop - start or len(outputs1) != place.stop - start:
            raise self._damaged(f"block {place.number} does not hold the trials {start} to {place.stop}")
        if (pair, start) not in self._added:
            self._reused[pair, start] = max(min(stop, place.stop) - start, self._reused.get((pair, start), 0))
        return outputs0[: stop - start], outputs1[: stop - start]

    def side_effects(self, pair: int, start: int) -> tuple[SideEffects, SideEffects]:
        """The side effects of the runs of a block, on d0 and on d1; none if the block does not exist."""
        if (pair, start) not in self._places:
            return SideEffects(), SideEffects()
        place = self._places[pair, start]
        first, second = self._sides(place, self._body(place)[place.size :])
        try:
            return _side_effects(first), _side_effects(second)
        except (TypeError, AttributeError):
            raise self._damaged(f"block {place.number} has no side effects of runs") from None

    def put(
        self,
        pair: int,
        start: int,
        outputs0: RawOutputs,
        outputs1: RawOutputs,
        side_effects: tuple[SideEffects, SideEffects] | None = None,
    ) -> None:
        """Keep a block, with the side effects of its runs; a block that exists is not written again.

        Raises:
            StoreError: An output has no encoding, or the file cannot be written.
        """
        if (pair, start) in self._places or len(outputs0) == 0:
            return
        effects = side_effects or (SideEffects(), SideEffects())
        reported = [{entry.name: getattr(one, entry.name) for entry in fields(one)} for one in effects]
        try:
            outputs = frame([_sendable(outputs0), _sendable(outputs1)])[HEADER.size :]
        except Unsendable as error:
            raise StoreError(f"{self.path}: an output cannot be stored: {error}; audit without a store") from None
        self._append(pair, start, start + len(outputs0), outputs, frame(reported)[HEADER.size :])
        self._added.add((pair, start))

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
        with explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                self._connection.executemany("INSERT INTO bodies VALUES (?, ?, ?)", parts)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        self._chain = chain
        self._places[pair, start] = _Place(number, stop, len(outputs), digest)

    def _read_places(self) -> None:
        """Read where all blocks are, and check the chain; the bodies are checked when they are read."""
        rows = self._connection.execute(
            "SELECT number, pair, start, stop, size, digest, chain FROM blocks ORDER BY number"
        )
        for expected, (number, pair, start, stop, size, digest, chain) in enumerate(rows):
            whole = all(type(value) is int for value in (pair, start, stop, size))
            if number != expected or not whole or type(digest) is not bytes or not 0 <= start < stop or pair < 0:
                raise self._damaged(f"block {expected} is not what was written")
            self._chain = chained(self._chain, pair, start, stop, digest)
            if chain != self._chain or (pair, start) in self._places:
                raise self._damaged(f"block {number} is not what was written after those before it")
            self._places[pair, start] = _Place(number, stop, size, digest)

    def _body(self, place: _Place) -> bytes:
        with explained(self.path):
            rows = self._connection.execute("SELECT data FROM bodies WHERE block = ? ORDER BY part", (place.number,))
            parts = [part for (part,) in rows]
        body = b"".join(part for part in parts if type(part) is bytes)
        if hashlib.sha256(body).digest() != place.digest:
            raise self._damaged(f"block {place.number} is not what was written")
        return body

    def _sides(self, place: _Place, body: bytes) -> tuple[Foreign, Foreign]:
        try:
            first, second = unframe(body)
        except (ValueError, TypeError, RecursionError, MemoryError):
            raise self._damaged(f"block {place.number} does not hold two sides") from None
        if not all(isinstance(side, (list, dict, np.ndarray)) for side in (first, second)):
            raise self._damaged(f"block {place.number} does not hold two lists")
        return first, second

    def _write_about(self, **values: object) -> None:
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        self._connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)

    def _about(self) -> dict[str, Foreign]:
        try:
            return {name: json.loads(text) for name, text in self._connection.execute("SELECT name, value FROM about")}
        except (ValueError, TypeError, RecursionError):
            raise self._damaged("it does not say which audit its trials belong to") from None

    def _compare(self, here: dict[str, str], *, anyway: bool) -> None:
        """Refuse trials of another identity, and name all that differs; or record the change."""
        about = self._about()
        there, changes = about.get("identity"), about.get("changes")
        if not isinstance(there, dict) or not isinstance(changes, list):
            raise self._damaged("it does not say which audit its trials belong to")
        self.made, self.changes = str(about.get("made", "an unknown date")), [str(change) for change in changes]
        names = _differing(there, here)
        if names and anyway:
            self.changes.append(f"since trial {sum(self.trials.values()):,}, {_listed(names)}")
            self._write_about(identity=here, changes=self.changes)
        elif names:
            lines = [
                f"\n  {_line(name)}: {_line(there.get(name, 'nothing'))} there, {_line(here.get(name, 'nothing'))} here"
                for name in names[:_MAX_LINES]
            ]
            more = f"\n  and {len(names) - _MAX_LINES} more" if len(names) > _MAX_LINES else ""
            raise StoreError(
                f"{self.path} holds the trials of another audit.  What differs:{''.join(lines)}{more}\n"
                f"Its {sum(self.trials.values()):,} runs per dataset are left as they are.  "
                "Name another store, remove this one, or restore what differs"
            )

    def _damaged(self, why: str) -> StoreError:
        return StoreError(f"{self.path} is damaged: {why}.  Restore it from a copy, or remove it and begin again")


class _Place(NamedTuple):
    """Where a block is, and what its body must be."""

    number: int
    stop: int  # trial
    size: int  # bytes of the outputs; the side effects follow
    digest: bytes  # SHA-256 of the body


def seed_of(path: str | Path | None) -> int:
    """The seed of the audit that made a store; a fresh one if there is no store, or nothing in it that says."""
    found = None if path is None else seed_in(Path(path))
    return fresh_seed() if found is None else found


def _differing(there: Mapping[str, object], here: Mapping[str, str]) -> list[str]:
    return [name for name in [*here, *(there.keys() - here.keys())] if there.get(name) != here.get(name)]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LINES} more" if len(names) > _MAX_LINES else ""
    return f"these differ: {', '.join(map(_line, names[:_MAX_LINES]))}{more}"


def _sendable(outputs: RawOutputs) -> RawOutputs:
    return outputs if isinstance(outputs, np.ndarray) else list(outputs)


def _side_effects(reported: dict[str, Foreign]) -> SideEffects:
    known = {entry.name for entry in fields(SideEffects)}
    return SideEffects(**{name: value for name, value in reported.items() if name in known})


def _line(text: object) -> str:
    """A value on one short line; of a fingerprint the first digits are enough."""
    short = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", " ".join(str(text).split()))
    return short if len(short) <= _MAX_VALUE_CHARACTERS + 20 else f"{short[:_MAX_VALUE_CHARACTERS]}…{short[-19:]}"
