"""Tests of whether runs are independent: dependence on one dataset, drift, and coupling of two datasets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from dpaudit.inference.independence.correlation import alike, correlation, far_correlation
from dpaudit.inference.independence.hypergeometric import Bits, bits_of, columns_of, most_suspicious, notable, two_sided
from dpaudit.inference.independence.memory import MIN_OUTPUTS, SUSPICIOUS
from dpaudit.numerics import Array, log_choose


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


_PARTS = 4  # number of parts of an audit; each part is compared with all other parts


def dependence(keys: Sequence[Hashable], values: Array, significance: float = SUSPICIOUS) -> list[str]:
    """Test whether the runs on one dataset are independent, and describe the findings.

    Theorem:
        If the runs are exchangeable, P[the result is not empty] <= significance.

    Proof:
        The theorem is a union bound over all tests.  The number of tests depends on the values, but not on their order.
        The functions `repetition` and `sequences` each receive a quarter of the significance.  The functions
        `correlation`, `alike`, `far_correlation` and `drift_of` each receive an eighth of the significance.

    Args:
        keys: Key of each output, in the order of the runs.  Two keys are equal if and only if the outputs are equal.
            If the sequence is empty, only `values` are tested.
        values: Numbers computed from each output; shape (n,) or (n, k).
        significance: Joint significance of all tests that the function makes.

    Returns:
        A list with one sentence for each finding.  The list is empty if there is no finding or if there are fewer than
        `MIN_OUTPUTS` outputs.
    """
    n = max(len(keys), len(values))
    if n < MIN_OUTPUTS:
        return []
    found = [*repetition(keys, significance / 4), *sequences(keys, significance / 4)]
    bits = bits_of(values)
    found += correlation(bits, significance / 8) or alike(values, significance / 8)
    return found + far_correlation(bits, significance / 8) + drift_of(bits, significance / 8)


def drift(values: Array, significance: float = SUSPICIOUS) -> list[str]:
    """Test whether the distribution of the outputs changes over the course of an audit.

    Returns:
        A list with a description of the finding.  The list is empty if there is no finding or if there are fewer than
        `MIN_OUTPUTS` outputs.
    """
    return drift_of(bits_of(values), significance) if len(values) >= MIN_OUTPUTS else []


def coupling(values0: Array, values1: Array, significance: float = SUSPICIOUS) -> list[str]:
    """Test whether corresponding runs on d0 and on d1 share their randomness.

    Theorem:
        Consider n pairs of a run on d0 and a run on d1, and one bit for each run.  Let m0 of the runs on d0 and m1 of
        the runs on d1 have a one.  If the runs on d1 are exchangeable given the runs on d0, the number of pairs with
        two ones has the distribution Hypergeometric(n, m0, m1).

    Proof:
        The positions of the m1 ones are a uniformly random subset of the n positions.

    Args:
        values0: Numbers computed from each output of d0; shape (n,) or (n, k).
        values1: The same numbers computed from each output of d1.  Columns with the same index are compared.
        significance: Joint significance of all tests that the function makes.

    Returns:
        A list with a description of the finding.  The list is empty if there is no finding or if there are fewer than
        `MIN_OUTPUTS` pairs of runs.
    """
    n = min(len(values0), len(values1))
    if n < MIN_OUTPUTS:
        return []
    pairs = [
        (bits_of(a), bits_of(b)) for a, b in zip(columns_of(values0[:n]).T, columns_of(values1[:n]).T, strict=False)
    ]
    tests = sum(len(a) * len(b) for a, b in pairs)
    suspicions = []
    for a, b in pairs:
        ones0, ones1 = a.sum(axis=1)[:, None], b.sum(axis=1)[None, :]
        together = a.astype(np.float64) @ b.T.astype(np.float64)
        for i, j in notable(together, n, ones0, ones1):
            x, expected = int(together[i, j]), float(ones0[i, 0] * ones1[0, j] / n)
            words = (
                f"runs on d0 and d1 share their randomness (two events coincide {x} times in {n} runs, "
                f"{expected:.1f} expected)"
            )
            suspicions.append((two_sided(x, n, int(ones0[i, 0]), int(ones1[0, j])), words))
    return most_suspicious(suspicions, tests, significance)


def drift_of(bits: Bits, significance: float) -> list[str]:
    """Test whether the first half or one of the four quarters of the runs differs from the other runs.

    Theorem:
        Let n exchangeable runs have m ones.  The number of ones in k fixed runs has the distribution Hypergeometric(n,
        m, k).

    Args:
        bits: Answers to k yes/no questions about each of n outputs; shape (k, n).
        significance: Joint significance of all tests that the function makes.

    Returns:
        A list with a description of the finding.  The list is empty if the test does not reject independence.
    """
    n = bits.shape[1]
    half = "outputs drift with time: outputs of the second half of the runs differ from outputs of the first half"
    parts = [(slice(0, n // 2), half)]
    for i in range(_PARTS):
        part = slice(i * n // _PARTS, (i + 1) * n // _PARTS)
        parts.append((part, f"outputs drift with time: outputs of quarter {i + 1} of the runs differ from the others"))
    ones = bits.sum(axis=1)
    suspicions = []
    for part, meaning in parts:
        inside, size = bits[:, part].sum(axis=1), part.stop - part.start
        for (i,) in notable(inside, n, ones, size):
            suspicions.append((two_sided(int(inside[i]), n, int(ones[i]), size), meaning))
    return most_suspicious(suspicions, len(bits) * len(parts), significance)
