"""Provides fresh global random state for each audit of a test suite, even if fixtures seed the global generators.

Many suites have a fixture that calls `np.random.seed(0)` before each test.  A mechanism that uses numpy's global
generator would then repeat its outputs in every session, and a baseline would count one extreme sample many times.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def own_global_state(seed: int) -> Iterator[None]:
    """Seed the global generators of `random`, numpy and torch from the audit's seed; restore their state afterwards.

    The seed differs for each test, call and run of a baseline.  So the global generators are as fresh as the
    mechanism's `rng`.  Torch is seeded only if it has been imported.
    """
    seeds = random.Random(f"global random state {seed}")
    ours, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    torch = sys.modules.get("torch")
    torchs = None if torch is None else torch.get_rng_state()
    random.seed(seeds.getrandbits(128))
    np.random.seed([seeds.getrandbits(32) for _ in range(4)])  # noqa: NPY002  (mechanisms may use it)
    if torch is not None:
        torch.manual_seed(seeds.getrandbits(62))
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numpys)  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(torchs)
