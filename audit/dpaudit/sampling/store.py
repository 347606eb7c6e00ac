"""Trials on disk, so that an audit can be continued: outputs are the only thing that cannot be computed again.

A store is one file to which blocks of trials are appended.  After the line `dpaudit-store/2` come records:

    length of the body (8 bytes), pair, start, stop (8 bytes each, little-endian, signed), SHA-256 of the body, body

The body is a value in the encoding of `dpaudit.mechanisms.wire`, the same as between processes.  Nothing in it can
be executed.  There are three kinds of records:

    pair -1        the first record: {"identity": what the outputs depend on, "seed": ..., "made": date}
    pair p >= 0    a block of trials of pair p: [outputs of d0, outputs of d1]
    pair -2 - p    the side effects of the block after it, as `Conduct` on d0 and on d1

A record that was cut off at the end of the file, as by a crash, is dropped; any other damage is an error.
A store whose identity is not that of the audit is refused, and nothing in it is changed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpaudit.mechanisms.wire import HEADER, Unsendable, frame, unframe
from dpaudit.sampling.side_effects import Conduct
from dpaudit.sampling.store_identity import Identity
from dpaudit.sampling.streams import fresh_seed

Outputs = Sequence[Any] | np.ndarray[Any, Any]

_MAGIC = b"dpaudit-store/2\n"
_OLD_MAGIC = b"dpaudit-store/1\n"  # its first record names the mechanism and nothing of its content
_RECORD = struct.Struct("<qqqq32s")
_ABOUT = -1  # the pair of the first record
_MOST_ABOUT = 2**28  # bytes of that record
_LINE = 60  # characters of one value in a message
_MOST_LINES = 30  # of differences in a message


class StoreError(Exception):
    """Trials that cannot be kept or read; says which file and why."""


class Store:
    """Blocks of trials of one audit.  StoreError if the file holds anything else, or cannot be written."""

    def __init__(self, path: str | Path, identity: Identity, *, seed: int = 0) -> None:
        """Open a store, or make it.

        Args:
            path: the file.
            identity: what decides the outputs, from `sampling.store_identity`.
            seed: of the audit, for `seed_of`.

        Raises:
            StoreError: the file holds trials of another identity, or cannot be read or written.
        """
        self.path = Path(path)
        self.made = datetime.now(UTC).isoformat(timespec="seconds")
        self._places: dict[tuple[int, int], _Place] = {}  # by pair and start
        self._added: set[tuple[int, int]] = set()  # blocks that this object has written
        self._reused: dict[tuple[int, int], int] = {}  # runs that were read of the other blocks
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("ab").close()
            with self.path.open("rb") as file:
                data = file.read(len(_MAGIC))
            size = self.path.stat().st_size
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from None
        about = {"identity": dict(identity), "seed": seed, "made": self.made}
        if data not in (_MAGIC, _OLD_MAGIC) and not _MAGIC.startswith(data):
            raise StoreError(f"{self.path} is not a store of trials of this version ({_MAGIC.decode().strip()})")
        end = self._read_places(size)
        if not self.trials:
            self._begin(about)
            return
        if data == _OLD_MAGIC:
            raise StoreError(
                f"{self.path} was made by an earlier version of dpaudit, which did not record the content of the "
                "mechanism and of the datasets.  Whether its trials are of this audit cannot be known: name another "
                "store, or remove it"
            )
        self._compare(dict(identity))
        if end < size:
            self._cut(end)

    def _begin(self, about: dict[str, Any]) -> None:
        """Write a store without trials, in place of what is there."""
        self._places.clear()
        body = frame(about)[HEADER.size :]
        digest = hashlib.sha256(body).digest()
        self._cut(0)
        self._write(0, _MAGIC + _RECORD.pack(len(body), _ABOUT, 0, 0, digest) + body)

    def _compare(self, here: dict[str, str]) -> None:
        first = self._places.get((_ABOUT, 0))
        about = self._body(first) if first is not None else {}
        there = about.get("identity") if isinstance(about, dict) else None
        if not isinstance(there, dict):
            raise StoreError(f"{self.path} is damaged: it does not say what its trials are of")
        self.made = str(about.get("made", "an unknown date"))
        names = [name for name in [*here, *(there.keys() - here.keys())] if there.get(name) != here.get(name)]
        if not names:
            return
        lines = [
            f"\n  {_line(name)}: {_line(there.get(name, 'nothing'))} there, {_line(here.get(name, 'nothing'))} here"
            for name in names[:_MOST_LINES]
        ]
        more = f"\n  and {len(names) - _MOST_LINES} more" if len(names) > _MOST_LINES else ""
        raise StoreError(
            f"{self.path} holds the trials of another audit.  What differs:{''.join(lines)}{more}\n"
            f"Its {sum(self.trials.values()):,} runs per dataset are left as they are.  "
            "Name another store, remove this one, or restore what differs"
        )

    def words(self, trials: int) -> list[str]:
        """What a reader must know of runs that this audit did not make; `trials`: runs per dataset of the audit."""
        reused = sum(self._reused.values())
        return [f"{reused:,} of the {trials:,} runs per dataset are from a store made at {self.made}"] if reused else []

    @property
    def trials(self) -> dict[int, int]:
        """How many runs per dataset are there of each pair, from the first on without a gap."""
        found: dict[int, int] = {}
        for pair in sorted({pair for pair, _ in self._places if pair >= 0}):
            found[pair] = 0
            while (pair, found[pair]) in self._places and self._places[pair, found[pair]].stop > found[pair]:
                found[pair] = self._places[pair, found[pair]].stop
        return found

    def get(self, pair: int, start: int, stop: int) -> tuple[Outputs, Outputs] | None:
        """The block that starts there, its end cut off at `stop`; None if there is none."""
        if (pair, start) not in self._places:
            return None
        outputs0, outputs1 = self._body(self._places[pair, start])
        outputs0, outputs1 = outputs0[: stop - start], outputs1[: stop - start]
        if (pair, start) not in self._added:
            self._reused[pair, start] = max(len(outputs0), self._reused.get((pair, start), 0))
        return outputs0, outputs1

    def conduct(self, pair: int, start: int) -> tuple[Conduct, Conduct]:
        """The side effects of the runs of a block, on d0 and on d1; none if they are not there."""
        place = self._places.get((_ABOUT - 1 - pair, start))
        found = self._body(place) if place is not None else [{}, {}]
        return _conduct(found[0]), _conduct(found[1])

    def put(
        self,
        pair: int,
        start: int,
        outputs0: Outputs,
        outputs1: Outputs,
        conduct: tuple[Conduct, Conduct] | None = None,
    ) -> None:
        """Keep a block, with the side effects of its runs; what is there already is not written again."""
        if (pair, start) in self._places or len(outputs0) == 0:
            return
        told = [{entry.name: getattr(one, entry.name) for entry in fields(one)} for one in conduct or ()]
        stop = start + len(outputs0)
        try:
            if told:
                self._append(_ABOUT - 1 - pair, start, stop, told)
            self._append(pair, start, stop, [_sendable(outputs0), _sendable(outputs1)])
        except Unsendable as error:
            raise StoreError(f"{self.path}: an output cannot be stored: {error}; audit without a store") from None
        self._added.add((pair, start))

    def _append(self, pair: int, start: int, stop: int, value: Any) -> None:
        body = frame(value)[HEADER.size :]
        digest = hashlib.sha256(body).digest()
        end = self.path.stat().st_size
        self._write(end, _RECORD.pack(len(body), pair, start, stop, digest) + body)
        self._places[pair, start] = _Place(stop, end + _RECORD.size, len(body), digest)

    def _write(self, end: int, data: bytes) -> None:
        """Add to the file, which ends at `end`: as a whole or not at all."""
        try:
            with self.path.open("r+b", buffering=0) as file:
                file.seek(end)
                if file.write(data) != len(data):
                    file.truncate(end)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from None

    def _cut(self, end: int) -> None:
        """Let the file end there."""
        try:
            os.truncate(self.path, end)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from None

    def _read_places(self, size: int) -> int:
        """Find all records; where the last whole block ends."""
        end = whole = len(_MAGIC)
        with self.path.open("rb") as file:
            while end + _RECORD.size <= size:
                file.seek(end)
                length, pair, start, stop, digest = _RECORD.unpack(file.read(_RECORD.size))
                if length < 0 or not 0 <= start <= stop:
                    raise StoreError(f"{self.path} is damaged at byte {end}: there begins no block")
                if end + _RECORD.size + length > size:
                    break
                self._places[pair, start] = _Place(stop, end + _RECORD.size, length, digest)
                end += _RECORD.size + length
                whole = end if pair >= _ABOUT else whole  # side effects belong to the block after them
        return whole

    def _body(self, place: _Place) -> Any:
        with self.path.open("rb") as file:
            file.seek(place.start)
            body = file.read(place.size)
        if hashlib.sha256(body).digest() != place.digest:
            raise StoreError(f"{self.path} is damaged: the block at byte {place.start} is not what was written")
        return unframe(body)


class _Place(NamedTuple):
    """Where a block is."""

    stop: int  # trial
    start: int  # byte of its body
    size: int
    digest: bytes


def seed_of(path: str | Path | None) -> int:
    """The seed of the audit that made a store; a fresh one if there is no store, or nothing in it that says.

    What is wrong with a store is said when it is opened.
    """
    if path is not None:
        with suppress(Exception), Path(path).open("rb") as file:
            if file.read(len(_MAGIC)) == _MAGIC:
                length, pair, *_ = _RECORD.unpack(file.read(_RECORD.size))
                about = unframe(file.read(min(length, _MOST_ABOUT)))
                if pair == _ABOUT and type(about["seed"]) is int:
                    return int(about["seed"])
    return fresh_seed()


def _sendable(outputs: Outputs) -> Outputs:
    return outputs if isinstance(outputs, np.ndarray) else list(outputs)


def _conduct(told: dict[str, Any]) -> Conduct:
    known = {entry.name for entry in fields(Conduct)}
    return Conduct(**{name: value for name, value in told.items() if name in known})


def _line(text: Any) -> str:
    """A value on one short line; of a fingerprint the first digits are enough."""
    short = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", " ".join(str(text).split()))
    return short if len(short) <= _LINE + 20 else f"{short[:_LINE]}…{short[-19:]}"
