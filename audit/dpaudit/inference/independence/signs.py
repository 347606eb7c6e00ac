"""Tests of whether runs are independent: dependence on one dataset, drift, and coupling of two datasets."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from dpaudit.inference.independence.correlation import alike, correlation, far_correlation
from dpaudit.inference.independence.hypergeometric import most_suspicious, notable, two_sided
from dpaudit.inference.independence.memory import MIN_OUTPUTS, SUSPICIOUS
from dpaudit.inference.independence.questions import Bits, bits_of, columns_of
from dpaudit.inference.independence.recurrence import repetition, sequences
from dpaudit.numerics.arrays import Array

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
