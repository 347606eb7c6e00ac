"""Tests for repeated outputs and repeated sequences of outputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.binomials import log_choose


def repetition(keys: Sequence[Hashable], significance: float) -> list[str]:
    """Test whether outputs are repeated after a fixed number of runs.

    Theorem:
        Let the n keys be exchangeable, let m_v be the number of keys with value v, and let S = sum_v m_v (m_v - 1).
        Consider K pairs of positions such that no two pairs share a position.  The probability that the keys are equal
        in at least k of the K pairs is at most min over j <= k of C(K, j) prod_{i < j} S / ((n - 2 i) (n - 2 i - 1)).

    Proof:
        Given that the keys are equal in i of the pairs, they are equal in another pair with probability S' / ((n - 2 i)
        (n - 2 i - 1)).  Here S' is the same sum as S for the remaining keys, so S' <= S.  The theorem follows from a
        union bound over the C(K, j) ways to choose j pairs.

    For each distance d, the pairs (t, t + d) are divided into two families by the parity of t // d.  No two pairs of a
    family share a position.  The p-value is multiplied by the number of all families, which is a Bonferroni correction
    for testing all distances d.

    Args:
        keys: Key of each output, in the order of the runs.  Equal outputs have equal keys.
        significance: Joint significance of the tests at all distances.

    Returns:
        A list with a description of the finding.  The list is empty if the test does not reject independence.
    """
    n = len(keys)
    counts = Counter(keys)
    equal = sum(m * (m - 1) for m in counts.values())
    if equal == 0 or len(counts) == 1:
        return []
    last: dict[Hashable, int] = {}
    distances: Counter[int] = Counter()
    for place, found in enumerate(keys):
        if found in last:
            distances[place - last[found]] += 1
        last[found] = place
    codes = codes_of(keys)
    for distance, _ in distances.most_common(5):
        same = codes[distance:] == codes[:-distance]
        odd = (np.arange(n - distance) // distance) % 2 == 1
        for family in (~odd, odd):
            p_value = math.exp(min(0.0, log_equal(int(same[family].sum()), int(family.sum()), equal, n)))
            if p_value * 2 * n < significance:
                return [f"{same.sum()} of {n - distance} outputs equal the output {distance} runs earlier"]
    return []


def log_equal(k: int, pairs: int, equal: int, n: int) -> float:
    """Return the logarithm of the probability bound in the theorem of `repetition`."""
    i = np.arange(k)
    steps = np.log(equal) - np.log((n - 2.0 * i) * (n - 2.0 * i - 1))
    j = np.arange(k + 1)
    return float(np.min(log_choose(pairs, j) + np.concatenate([[0.0], np.cumsum(steps)])))


def sequences(keys: Sequence[Hashable], significance: float) -> list[str]:
    """Test whether a sequence of outputs occurs twice, for example because a generator was re-seeded.

    Theorem:
        Consider two sequences of l positions without a common position.  The probability that both contain the same
        sequence of keys is at most prod_{i < l} S / ((n - 2 i) (n - 2 i - 1)), with S as in `repetition`.  There are
        fewer than n^2 / 2 pairs of such sequences.  The lengths l = 1, 2, 4, ... are tested, and the p-value is
        multiplied by the number of lengths.

    Args:
        keys: Key of each output, in the order of the runs.  Equal outputs have equal keys.
        significance: Joint significance of the tests of all lengths and distances.

    Returns:
        A list with a description of the finding.  The list is empty if the test does not reject independence.
    """
    n = len(keys)
    counts = Counter(keys)
    equal = sum(m * (m - 1) for m in counts.values())
    if equal == 0 or len(counts) == 1:
        return []
    ranks, length, longest = codes_of(keys), 1, 0
    while True:
        first, last = np.full(n, n), np.zeros(n, dtype=np.int64)
        places = np.arange(len(ranks))
        last[ranks] = places
        first[ranks[::-1]] = places[::-1]
        if not np.any(last - first >= length):
            break
        longest = length
        if len(ranks) <= length:
            break
        pairs = ranks[:-length].astype(np.int64) * (int(ranks.max()) + 1) + ranks[length:]
        ranks = np.unique(pairs, return_inverse=True)[1]
        length *= 2
    if not longest:
        return []
    i = np.arange(longest)
    log_p = float(np.sum(np.log(equal) - np.log((n - 2.0 * i) * (n - 2.0 * i - 1)))) + 2 * math.log(n)
    if log_p + math.log(math.log2(n) + 1) < math.log(significance):
        return [f"a sequence of {longest} outputs was repeated"]
    return []


def codes_of(keys: Sequence[Hashable]) -> npt.NDArray[np.int64]:
    """Replace keys by integers such that equal keys have equal integers; shape (n,)."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(found, len(numbers)) for found in keys], dtype=np.int64)
