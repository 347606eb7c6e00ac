"""Yes/no questions about outputs, whose answers are compared between runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_MAX_FREQUENT = 3  # maximum number of frequent values for which there is a question
Bits = npt.NDArray[np.bool_]
"""Answers to k yes/no questions about each of n outputs; shape (k, n)."""


def columns_of(values: Array) -> Array:
    """Reshape an array of shape (n, ...) to shape (n, k), with one row for each output."""
    return values.reshape(len(values), -1)


def bits_of(values: Array) -> Bits:
    """Answer yes/no questions about each output.

    For each column of values, the questions ask whether the value is missing, whether it is at least a quantile of the
    column, and whether it exceeds this quantile.  Other questions ask whether the value is the maximum, the minimum or
    one of the most frequent values of the column.  The questions do not depend on the order of the outputs.  A question
    is omitted if fewer than two outputs have its rarer answer, or if another question has the same or the opposite
    answers.

    Returns:
        The answers as booleans; shape (questions, n).  The rarer answer to each question is True.
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
            asked = row if 2 * np.count_nonzero(row) <= n else ~row  # a question and its negation count as one
            if np.count_nonzero(asked) > 1:
                found.setdefault(asked.tobytes(), asked)
    return np.array(list(found.values()), dtype=np.bool_).reshape(-1, n)
