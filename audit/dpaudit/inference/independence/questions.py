"""Yes-no questions about outputs, whose answers are compared between runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_MAX_FREQUENT = 3  # values that are looked at one by one, the most frequent ones
Bits = npt.NDArray[np.bool_]
"""(k, n): k yes-no questions about each of n outputs."""


def columns_of(values: Array) -> Array:
    return values.reshape(len(values), -1)


def bits_of(values: Array) -> Bits:
    """What is asked about each output, (k, n): functions of the values as a multiset, each question once.

    For each column: whether the number is missing, reaches a quantile, is the largest or the least, or equals one of
    the most frequent values.  Questions that fewer than two outputs answer differently from the others are left out.
    """
    found: dict[bytes, Bits] = {}
    n = len(values)
    for column in columns_of(values).T:
        missing = np.isnan(column)
        known = np.where(missing, -np.inf, column)
        ordered = np.sort(known)
        distinct, counts = np.unique(ordered, return_counts=True)
        frequent = distinct[np.argsort(-counts, kind="stable")[:_MAX_FREQUENT]] if counts.max(initial=0) > 1 else ()
        cuts = dict.fromkeys(float(ordered[int(q * n)]) for q in _QUANTILES)
        rows = [missing, *(known >= cut for cut in cuts), *(known > cut for cut in cuts)]
        rows += [known == ordered[-1], known == ordered[0], *(known == value for value in frequent)]
        for row in rows:
            asked = row if 2 * np.count_nonzero(row) <= n else ~row  # a question and its opposite are one
            if np.count_nonzero(asked) > 1:
                found.setdefault(asked.tobytes(), asked)
    return np.array(list(found.values()), dtype=np.bool_).reshape(-1, n)
