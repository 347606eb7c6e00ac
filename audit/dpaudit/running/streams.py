"""Provides random streams.  A seed and a path are the address of a stream; equal addresses give equal numbers."""

from __future__ import annotations

import hashlib
import random
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISpawnableSeedSequence

from dpaudit.running.foreign import foreign_code


class _Key(ISpawnableSeedSequence):
    """A seed sequence with the key of a Philox generator, whose children depend on key, trial and number only."""

    def __init__(self, seed: int, path: tuple[str | int, ...]) -> None:
        digest = hashlib.sha256(repr((seed, path)).encode()).digest()
        # An array, because numpy rounds a list of Python integers to floats if an integer exceeds 2**63.
        self.key = np.frombuffer(digest[:16], dtype="<u8").astype(np.uint64)
        self.trial = 0
        self.spawned = 0  # number of children so far in the current trial

    def generate_state(self, n_words: int, dtype: npt.DTypeLike = np.uint32) -> npt.NDArray[np.uint64]:
        """Return the key as the two words of 64 bits that Philox requests."""
        assert (n_words, dtype) == (2, np.uint64)
        return self.key

    def spawn(self, n_children: int) -> list[np.random.SeedSequence]:  # type: ignore[override]
        """Return the seeds of the next children."""
        first, self.spawned = self.spawned, self.spawned + n_children
        key = [int(word) for word in self.key]
        return [np.random.SeedSequence(key, spawn_key=(self.trial, i)) for i in range(first, self.spawned)]


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """Return the generator at an address."""
    return np.random.Generator(np.random.Philox(_Key(seed, path)))  # type: ignore[arg-type]  # of the stubs


def trial_streams(seed: int, *path: str | int, start: int, stop: int) -> Iterator[np.random.Generator]:
    """Yield the generator of each trial in [start, stop), which can run alone: Philox counters from t * 2**128 on.

    All trials share one Generator object, which is cheaper, so a trial must use all its numbers before the next begins.
    Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
    """
    key = _Key(seed, path)
    philox = np.random.Philox(key)  # type: ignore[arg-type]  # the stubs allow only `SeedSequence`
    generator = np.random.Generator(philox)
    place = philox.state  # a fresh state without used or buffered numbers
    counter = place["state"]["counter"] = np.zeros(4, dtype=np.uint64)
    for trial in range(start, stop):
        counter[2] = key.trial = trial
        key.spawned = 0
        philox.state = place
        yield generator


def fresh_seed() -> int:
    """Return a random seed below 10**9, short enough to type."""
    return secrets.randbelow(10**9)


@contextmanager
def kept_global_randomness() -> Iterator[None]:
    """Restore the global random state and numpy's error state: an attack's seed must not reach a mechanism."""
    python = random.getstate()
    generator = np.random.mtrand.get_bit_generator()
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002  (mechanisms use it)
    torch = sys.modules.get("torch")
    drawn: object = None
    with suppress(Exception):  # torch may be only half imported
        drawn = torch.get_rng_state() if torch is not None else None
    try:
        with foreign_code():
            yield
    finally:
        random.setstate(python)
        if np.random.mtrand.get_bit_generator() is not generator:
            np.random.mtrand.set_bit_generator(generator)
        np.random.set_state(numpy)  # noqa: NPY002
        if torch is not None and drawn is not None:
            torch.set_rng_state(drawn)


def seed_global_randomness(seed: int, *path: str | int) -> None:
    """Seed the global random state from an address.  Call this function inside `kept_global_randomness`."""
    key = hashlib.sha512(repr((seed, "global", *path)).encode()).digest()
    random.seed(int.from_bytes(key[:16], "little"))
    words = np.frombuffer(key[16:48], dtype="<u4")
    if isinstance(np.random.mtrand.get_bit_generator(), np.random.MT19937):
        np.random.seed(words)  # noqa: NPY002
    else:  # np.random.seed works only with MT19937
        np.random.mtrand.set_bit_generator(np.random.MT19937(np.random.SeedSequence(words.tolist())))
    if (torch := sys.modules.get("torch")) is not None:
        with suppress(Exception):
            torch.default_generator.manual_seed(int.from_bytes(key[48:55], "little"))
