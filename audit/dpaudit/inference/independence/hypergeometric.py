"""Tails of hypergeometric counts: what is left of exchangeable runs when an output is one bit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array
from dpaudit.numerics.binomials import log_choose

NOTABLE = 5.0  # standard deviations; what is nearer to its mean cannot be suspicious, and its tail is not computed


def two_sided(x: int, total: int, marked: int, drawn: int) -> float:
    """Twice the smaller tail of a hypergeometric count: of `drawn` out of `total`, x are among the `marked` ones.

    Theorem: P[two_sided(X) <= s] <= s for every s if X is Hypergeometric(total, marked, drawn).
    """
    low, high = max(0, drawn + marked - total), min(drawn, marked)
    k = np.arange(low, high + 1)
    log_mass = log_choose(marked, k) + log_choose(total - marked, drawn - k) - log_choose(total, drawn)
    mass = np.exp(log_mass)
    tail = min(float(mass[: x - low + 1].sum()), float(mass[x - low :].sum()))
    return min(1.0, 2 * tail * (1 + 1e-6))  # the sum is rounded by less than that


Whole = int | npt.NDArray[np.intp]


def most_suspicious(found: Iterable[tuple[float, str]], tests: int, significance: float) -> list[str]:
    """Of p-values and what they mean in words the words of the least one, if it is significant among so many tests.

    Theorem: if all null hypotheses hold, there are words with probability at most `significance` (Bonferroni).
    """
    p_value, words = min(found, key=lambda one: one[0], default=(math.inf, ""))
    return [words] if words and p_value * tests < significance else []


def notable(counts: Array, total: int, marked: Whole, drawn: Whole) -> Iterator[tuple[int, ...]]:
    """Where hypergeometric counts are so far from their means that a tail is worth computing."""
    mean = marked * drawn / total
    variance = mean * (1 - marked / total) * (total - drawn) / max(1, total - 1)
    far = np.abs(counts - mean) > NOTABLE * np.sqrt(variance)
    yield from map(tuple, np.argwhere(far).tolist())
