"""Encodes blocks of outputs as bytes, for stores and for the fingerprint of all outputs of an audit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from dpaudit.mechanisms import wire
from dpaudit.outputs import Raised, Timed
from dpaudit.values import RawOutputs

_BYTES = 32

wire.register(Raised, lambda value: [value.type, value.message], lambda kind, text: Raised(str(kind), str(text)))
wire.register(Timed, lambda value: [value.output, value.seconds], lambda output, time: Timed(output, float(time)))


def encoded(sides: Sequence[RawOutputs]) -> bytes:
    """Return the bytes of the outputs of d0 and of d1, which `wire.unframe` reads."""
    return wire.frame([side if isinstance(side, np.ndarray) else list(side) for side in sides])[wire.HEADER.size :]


class OutputsFingerprint:
    """A BLAKE2b hash of all blocks, in order.

    Each block is encoded as in a store: [outputs of d0, outputs of d1] (see `sampling.store`).  The index of the pair
    and the index of the first trial precede the block.  Each index has 8 bytes, little-endian.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=_BYTES)
        self._complete = True

    def add(self, pair: int, start: int, sides: Sequence[RawOutputs]) -> None:
        """Add one block."""
        if not self._complete:
            return
        for number in (pair, start):
            self._hash.update(number.to_bytes(8, "little"))
        try:
            body = encoded(sides)
        except Exception:  # an output that imitates a data frame or an array may have no encoding
            self._complete = False
        else:
            self._hash.update(body)

    def __str__(self) -> str:
        """Return `blake2b:` and 64 hexadecimal digits, or "" if an output has no encoding as bytes."""
        return f"blake2b:{self._hash.hexdigest()}" if self._complete else ""
