"""A fingerprint of all outputs of an audit, in the order and the blocks in which it took them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from dpaudit.mechanisms.wire import HEADER, frame
from dpaudit.values import RawOutputs

_BYTES = 32


class OutputsFingerprint:
    """BLAKE2b of the blocks in order, each as the body of a store's record: [outputs of d0, outputs of d1].

    The pair and the first trial of each block come before it, 8 bytes each, little-endian.  See `sampling.store`.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=_BYTES)
        self._complete = True

    def add(self, pair: int, start: int, sides: Sequence[RawOutputs]) -> None:
        """One block."""
        if not self._complete:
            return
        for number in (pair, start):
            self._hash.update(number.to_bytes(8, "little"))
        try:
            body = frame([side if isinstance(side, np.ndarray) else list(side) for side in sides])
        except Exception:  # of an output that only pretends to be a frame or an array: no fingerprint, and no harm
            self._complete = False
        else:
            self._hash.update(memoryview(body)[HEADER.size :])

    def __str__(self) -> str:
        """`blake2b:...`, or "" if an output has no encoding as bytes."""
        return f"blake2b:{self._hash.hexdigest()}" if self._complete else ""
