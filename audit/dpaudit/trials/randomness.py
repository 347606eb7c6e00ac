"""Global random state, kept from code that is not the mechanism, which may draw from it."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

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
    drawn: Any = None
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
