"""Detects scores or outputs that were copied."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from dpaudit.engine.read_scores import Given
from dpaudit.inference.scores.repeats import repeats_p_value
from dpaudit.mechanisms.wire import Unsendable, frame
from dpaudit.text.rounding import upper

_LEVEL = 1e-6  # maximum probability with which independent scores are called copied


def copied(given: Given) -> tuple[str, ...]:
    """Return the reason why the scores must contain copies; empty if the test finds no copies.

    Copies are not independent runs, and their coins are not independent.  So no choice of `independence` allows them.
    A mechanism may also repeat scores, but it repeats different scores different numbers of times.  The test accepts
    such scores.
    """
    if given.numbers is not None:
        sides = [np.unique(side, return_counts=True)[1] for side in given.numbers]
    else:
        try:
            sides = [np.array(list(Counter(map(_key, side)).values())) for side in given.outputs]
        except Unsendable:
            return ()  # these outputs cannot be compared
    p_value = repeats_p_value(*sides)
    if p_value > _LEVEL:
        return ()
    all_, different = sum(int(side.sum()) for side in sides), sum(map(len, sides))
    return (
        f"scores seem to be copied: only {different:,} of {all_:,} differ, and independent scores with one common law "
        f"repeat in this way with probability at most {upper(p_value)}, whatever this law is; a file may have been "
        "concatenated with itself, or a run recorded several times; give one score for each run or canary",
    )


def _key(output: Any) -> bytes:
    return frame(output)
