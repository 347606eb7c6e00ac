"""Selects random subsets of the counted outputs and arranges them in new blocks, which are scored a second time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dpaudit.outputs import Outputs

_MAX_AGAIN = 64  # maximum number of outputs of a block that are scored a second time
_SHARE_ALONE = 0.25  # probability that only one output of a block is scored a second time


def again(sides: tuple[Outputs, Outputs], rng: np.random.Generator) -> Iterator[tuple[Outputs, npt.NDArray[np.intp]]]:
    """Select a few outputs of both datasets at random, and read these outputs again in random order.

    Yields:
        A block of outputs, and the index of each of these outputs.  Indices count the outputs of d0 first and then the
        outputs of d1.
    """
    n0 = len(sides[0])
    n = n0 + len(sides[1])
    size = 1 if rng.random() < _SHARE_ALONE else int(rng.integers(1, min(_MAX_AGAIN, n) + 1))
    at = rng.permutation(n)[:size] if n < 10 * _MAX_AGAIN else rng.choice(n, size, replace=False)
    of_d0 = at < n0
    found = [(sides[0].read_again(at[of_d0]), at[of_d0]), (sides[1].read_again(at[~of_d0] - n0), at[~of_d0])]
    found = [(some, places) for some, places in found if len(places)]
    if len(found) == 2:
        order = rng.permutation(size)
        both, places = Outputs.join([found[0][0], found[1][0]]), np.concatenate([found[0][1], found[1][1]])
        found = [(both.read_again(order), places[order])]
    yield from found
