"""Randomness with an address: the same seed and path give the same numbers in any worker and order."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """Return the generator at an address.

    Args:
        seed: The seed of the audit.
        path: The address below the seed.  Different paths give independent streams.
    """
    return np.random.Generator(np.random.Philox(key=_key(seed, path)))


def trial_streams(seed: int, *path: str | int, start: int, stop: int) -> Iterator[np.random.Generator]:
    """Yield the generator of each trial in [start, stop).

    The generator is counter-based, so that any trial can be run alone: trial t uses the Philox counters from
    t * 2**128 on.  Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", SC'11.

    All trials share one Generator object, which is re-seeded for each trial, since creating one may take longer than a
    run.  So a trial must draw all its numbers before the next one begins.

    Args:
        seed: The seed of the audit.
        path: The address of all these trials below the seed.
        start: Index of the first trial.
        stop: Index after the last trial.
    """
    philox = np.random.Philox(key=_key(seed, path))
    generator = np.random.Generator(philox)
    place = philox.state  # a fresh state: no number is drawn or buffered
    counter = place["state"]["counter"] = np.zeros(4, dtype=np.uint64)
    for trial in range(start, stop):
        counter[2] = trial
        philox.state = place
        yield generator


def _key(seed: int, path: tuple[str | int, ...]) -> npt.NDArray[np.uint64]:
    """Return a Philox key of 128 bits.

    It is an array because numpy rounds a list of Python integers to floats if one exceeds 2**63.
    """
    digest = hashlib.sha256(repr((seed, path)).encode()).digest()
    return np.frombuffer(digest[:16], dtype="<u8").astype(np.uint64)


def fresh_seed() -> int:
    """Return a random seed below 10**9, short enough to type."""
    return secrets.randbelow(10**9)
