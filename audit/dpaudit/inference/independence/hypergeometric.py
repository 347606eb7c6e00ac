"""Tail probabilities of the hypergeometric distribution, and Bonferroni corrections of tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array, log_choose

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


NOTABLE = 5.0  # minimum distance of a count from its mean for which a p-value is computed; standard deviations


def two_sided(x: int, total: int, marked: int, drawn: int) -> float:
    """Return a two-sided p-value of a hypergeometric count.

    Theorem:
        If X ~ Hypergeometric(total, marked, drawn), P[two_sided(X) <= s] <= s for every s.

    Args:
        x: Number of marked elements among the drawn elements.
        total: Number of elements of the population.
        marked: Number of marked elements.
        drawn: Number of elements drawn without replacement.

    Returns:
        Twice the smaller tail probability, rounded up, but at most 1.
    """
    low, high = max(0, drawn + marked - total), min(drawn, marked)
    k = np.arange(low, high + 1)
    log_mass = log_choose(marked, k) + log_choose(total - marked, drawn - k) - log_choose(total, drawn)
    mass = np.exp(log_mass)
    tail = min(float(mass[: x - low + 1].sum()), float(mass[x - low :].sum()))
    return min(1.0, 2 * tail * (1 + 1e-6))  # the factor exceeds the rounding error of the sum


Whole = int | npt.NDArray[np.intp]
"""Type of an integer or an array of integers."""


def most_suspicious(found: Iterable[tuple[float, str]], tests: int, significance: float) -> list[str]:
    """Return the description of the test with the smallest p-value, if this p-value is significant.

    Theorem:
        If all null hypotheses are true, P[the result is not empty] <= significance, by the Bonferroni correction.

    Args:
        found: Pairs of a p-value and a description of the alternative hypothesis.
        tests: Number of all tests, including the tests whose p-values were not computed.
        significance: Joint significance of all tests.

    Returns:
        A list with one description, or an empty list if no p-value is significant.
    """
    p_value, words = min(found, key=lambda one: one[0], default=(math.inf, ""))
    return [words] if words and p_value * tests < significance else []


def notable(counts: Array, total: int, marked: Whole, drawn: Whole) -> Iterator[tuple[int, ...]]:
    """Yield the indices of hypergeometric counts that differ from their means by over 5 standard deviations."""
    mean = marked * drawn / total
    variance = mean * (1 - marked / total) * (total - drawn) / max(1, total - 1)
    far = np.abs(counts - mean) > NOTABLE * np.sqrt(variance)
    yield from map(tuple, np.argwhere(far).tolist())
