"""Seeds and restores the global random state of `random`, of the functions of `numpy.random`, and of torch.

Mechanisms, attacks, test fixtures and all other code in the process may use this state.  `Runs` seeds the state and the
`rng` of the mechanism from the address of the trials.  So no other seed affects the mechanism.  Afterwards the state is
restored.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np

from dpaudit.mechanisms.error_state import foreign_error_state


@contextmanager
def kept_global_randomness() -> Iterator[None]:
    """Restore the global random state, and numpy's error state, at the end of the `with` block.

    The state covers `random`, the functions of `numpy.random` and, if torch is loaded, its CPU generator.  Without
    this restoration, an attack that calls `np.random.seed` could make a mechanism repeat learned outputs.
    """
    put_back = global_randomness()
    try:
        with foreign_error_state():
            yield
    finally:
        put_back()


def global_randomness() -> Callable[[], None]:
    """Return a function that restores the current global random state."""
    python = random.getstate()
    generator = np.random.mtrand.get_bit_generator()
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002  (mechanisms use it)
    torch = sys.modules.get("torch")
    drawn: object = None
    with suppress(Exception):  # torch may be only half imported
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
