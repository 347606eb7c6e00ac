"""Global random state: of `random`, of the functions of `numpy.random`, of torch.

A mechanism may draw from it, and so may attacks, test fixtures and everything else in the process. `Runs` seed it from
the address of what they run, as they do the `rng` that the mechanism is given. So nobody else's seed reaches the
mechanism, and the user finds the state as it was.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np


@contextmanager
def kept_global_randomness() -> Iterator[None]:
    """Leave the global random state as it was found, whatever is drawn or seeded inside.

    It holds for `random`, for the functions of `numpy.random` and, where torch is loaded, for its generator on the CPU.
    A mechanism may draw from these too. An attack that calls `np.random.seed` would else make it repeat its runs, and
    outputs that the attack has learned would come again. Entry and exit together take about 0.1 milliseconds.
    """
    put_back = global_randomness()
    try:
        yield
    finally:
        put_back()


def global_randomness() -> Callable[[], None]:
    """What puts the global random state back to what it is now."""
    python = random.getstate()
    generator = np.random.mtrand.get_bit_generator()
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002  (others use it)
    torch = sys.modules.get("torch")
    drawn: object = None
    with suppress(Exception):  # a torch that is only half imported
        drawn = torch.get_rng_state() if torch is not None else None

    def put_back() -> None:
        random.setstate(python)
        if np.random.mtrand.get_bit_generator() is not generator:
            np.random.mtrand.set_bit_generator(generator)
        np.random.set_state(numpy)  # noqa: NPY002
        if torch is not None and drawn is not None:
            torch.set_rng_state(drawn)

    return put_back


def seed_global_randomness(seed: int, *path: str | int) -> None:
    """Seed the global random state with what lives at `path`; inside of `kept_global_randomness`."""
    key = hashlib.sha512(repr((seed, "global", *path)).encode()).digest()
    random.seed(int.from_bytes(key[:16], "little"))
    words = np.frombuffer(key[16:48], dtype="<u4")
    if isinstance(np.random.mtrand.get_bit_generator(), np.random.MT19937):
        np.random.seed(words)  # noqa: NPY002
    else:  # which knows no seeds
        np.random.mtrand.set_bit_generator(np.random.MT19937(np.random.SeedSequence(words.tolist())))
    if (torch := sys.modules.get("torch")) is not None:
        with suppress(Exception):
            torch.default_generator.manual_seed(int.from_bytes(key[48:55], "little"))
