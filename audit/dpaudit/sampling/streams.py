"""Randomness with an address: same seed and path, same numbers, in any worker and order."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """The generator that lives at `path`.  Different paths give independent streams."""
    return np.random.Generator(np.random.Philox(key=_key(seed, path)))


def trial_streams(seed: int, *path: str | int, start: int, stop: int) -> Iterator[np.random.Generator]:
    """The randomness of each trial in [start, stop): counter-based, so that any trial can be run alone.

    Trial t uses the Philox counters from t * 2**128 on.  Salmon et al. 2011, "Parallel random numbers: as easy as
    1, 2, 3", SC'11.  It is one generator that is moved on from trial to trial, since making one takes as long as many
    a mechanism: what a trial wants to draw, it must draw before the next one begins.
    """
    philox = np.random.Philox(key=_key(seed, path))
    generator = np.random.Generator(philox)
    place = philox.state  # nothing drawn, nothing kept back
    counter = place["state"]["counter"] = np.zeros(4, dtype=np.uint64)
    for trial in range(start, stop):
        counter[2] = trial
        philox.state = place
        yield generator


def _key(seed: int, path: tuple[str | int, ...]) -> npt.NDArray[np.uint64]:
    """A Philox key of 128 bits.  A list of Python integers would be rounded to floats if one of them is above 2**63."""
    digest = hashlib.sha256(repr((seed, path)).encode()).digest()
    return np.frombuffer(digest[:16], dtype="<u8").astype(np.uint64)


def fresh_seed() -> int:
    """A seed that nobody has used, short enough to be typed."""
    return secrets.randbelow(10**9)
