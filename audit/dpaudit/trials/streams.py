"""Randomness with an address: same seed and path, same numbers, in any worker and order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """The generator that lives at `path`.  Different paths give independent streams."""
    return np.random.Generator(np.random.Philox(key=_key(seed, path)))


def trial_streams(seed: int, *path: str | int, start: int, stop: int) -> Iterator[np.random.Generator]:
    """One generator for each trial in [start, stop): counter-based, so that any trial can be run alone.

    Trial t uses the Philox counters from t * 2**128 on.  Salmon et al. 2011, "Parallel random numbers: as easy as
    1, 2, 3", SC'11.
    """
    key = _key(seed, path)
    for trial in range(start, stop):
        yield np.random.Generator(np.random.Philox(key=key, counter=[0, 0, trial, 0]))


def _key(seed: int, path: tuple[str | int, ...]) -> list[int]:
    digest = hashlib.sha256(repr((seed, path)).encode()).digest()
    return [int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")]
