"""Trials on disk, so that an audit can be continued: outputs are the only thing that cannot be computed again.

A store is one file to which blocks of trials are appended.  After the line `dpaudit-store/1` come records:

    length of the body (8 bytes), pair, start, stop (8 bytes each, little-endian, signed), SHA-256 of the body, body

The body is a value in the encoding of `dpaudit.mechanisms.worker`, the same as between processes: of the first record
(pair -1) what the trials are of, of the others [outputs of d0, outputs of d1].  Nothing in it can be executed.

A record that was cut off at the end of the file, as by a crash, is dropped; any other damage is an error.
"""

from __future__ import annotations

import errno
import hashlib
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpaudit.mechanisms.worker import HEADER, Unsendable, frame, unframe
from dpaudit.trials.streams import fresh_seed

Outputs = Sequence[Any] | np.ndarray[Any, Any]

_MAGIC = b"dpaudit-store/1\n"
_RECORD = struct.Struct("<qqqq32s")
_ABOUT = -1  # the pair of the first record
_MOST_ABOUT = 2**28  # bytes of that record


class StoreError(Exception):
    """Trials that cannot be kept or read; says which file and why."""


class Store:
    """Blocks of trials of one audit.  StoreError if the file holds anything else, or cannot be written."""

    def __init__(self, path: str | Path, about: Mapping[str, Any]) -> None:
        """Open `path`, or make it.  `about`: what decides the outputs; a file about anything else is refused."""
        self.path = Path(path)
        self._places: dict[tuple[int, int], _Place] = {}  # by pair and start
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("ab").close()
            size = self.path.stat().st_size
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from None
        if size == 0:
            self._write(0, _MAGIC)
            self._append(_ABOUT, 0, 0, dict(about))
            return
        self._read_places(size)
        first = self._places.pop((_ABOUT, 0), None)
        known = self._body(first) if first is not None else {}
        if known != dict(about):
            other = next((name for name in about if known.get(name) != about[name]), "content")
            raise StoreError(
                f"{self.path} holds the trials of another audit: {other} is {known.get(other)!r} there and "
                f"{about.get(other)!r} here; name another store, or remove it"
            )

    @property
    def trials(self) -> dict[int, int]:
        """How many runs per dataset are there of each pair, from the first on without a gap."""
        found: dict[int, int] = {}
        for pair in sorted({pair for pair, _ in self._places}):
            found[pair] = 0
            while (pair, found[pair]) in self._places:
                found[pair] = self._places[pair, found[pair]].stop
        return found

    def get(self, pair: int, start: int, stop: int) -> tuple[Outputs, Outputs] | None:
        """The block that starts there, its end cut off at `stop`; None if there is none."""
        if (pair, start) not in self._places:
            return None
        outputs0, outputs1 = self._body(self._places[pair, start])
        return outputs0[: stop - start], outputs1[: stop - start]

    def put(self, pair: int, start: int, outputs0: Outputs, outputs1: Outputs) -> None:
        """Keep a block; what is there already is not written again."""
        if (pair, start) in self._places or len(outputs0) == 0:
            return
        try:
            self._append(pair, start, start + len(outputs0), [_sendable(outputs0), _sendable(outputs1)])
        except Unsendable as error:
            raise StoreError(f"{self.path}: an output cannot be stored: {error}; audit without a store") from None

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

    def _read_places(self, size: int) -> None:
        end = len(_MAGIC)
        with self.path.open("r+b") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise StoreError(f"{self.path} is not a store of trials of this version ({_MAGIC.decode().strip()})")
            while end + _RECORD.size <= size:
                file.seek(end)
                length, pair, start, stop, digest = _RECORD.unpack(file.read(_RECORD.size))
                if length < 0 or not (pair >= _ABOUT and 0 <= start <= stop):
                    raise StoreError(f"{self.path} is damaged at byte {end}: there begins no block")
                if end + _RECORD.size + length > size:
                    break
                self._places[pair, start] = _Place(stop, end + _RECORD.size, length, digest)
                end += _RECORD.size + length
            if end < size:
                file.truncate(end)  # cut off in the middle of a block

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
    """The seed of the trials that a store holds; a fresh one if there is no store, or nothing in it that says.

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
