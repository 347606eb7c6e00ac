"""What speaks against independent runs, in words: all tests of one dataset, drift, and coupling of two datasets."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from dpaudit.inference.independence.correlation import alike, correlation, far_correlation
from dpaudit.inference.independence.hypergeometric import most_suspicious, notable, two_sided
from dpaudit.inference.independence.memory import MIN_OUTPUTS, SUSPICIOUS
from dpaudit.inference.independence.questions import Bits, bits_of, columns_of
from dpaudit.inference.independence.recurrence import repetition, sequences
from dpaudit.numerics.arrays import Array

_PARTS = 4  # of the runs, each of which is compared with the others


def dependence(keys: Sequence[Hashable], values: Array, significance: float = SUSPICIOUS) -> list[str]:
    """What speaks against independent runs on one dataset, in words; empty if nothing does.

    Theorem: if the runs are exchangeable, the answer is not empty with probability at most `significance`.  Proof: a
    union bound over the tests, whose number depends on the values and not on their order.  A quarter each goes to
    outputs that come again after a certain number of runs, to sequences of outputs that come again, and to correlation
    with up to 20 runs before; an eighth to correlation with other runs before, and to drift.

    Args:
        keys: outputs in the order of their runs, equal if and only if the outputs are; none to test `values` alone.
        values: (n,) or (n, k), numbers that are functions of each output.
        significance: of all these tests together.
    """
    n = max(len(keys), len(values))
    if n < MIN_OUTPUTS:
        return []
    found = [*repetition(keys, significance / 4), *sequences(keys, significance / 4)]
    bits = bits_of(values)
    found += correlation(bits, significance / 8) or alike(values, significance / 8)
    return found + far_correlation(bits, significance / 8) + drift_of(bits, significance / 8)


def drift(values: Array, significance: float = SUSPICIOUS) -> list[str]:
    """Whether outputs change with time, in words; `values`: (n,) or (n, k), of outputs spread over the whole audit."""
    return drift_of(bits_of(values), significance) if len(values) >= MIN_OUTPUTS else []


def coupling(values0: Array, values1: Array, significance: float = SUSPICIOUS) -> list[str]:
    """Whether the runs on d0 and on d1 that were made side by side share their randomness, in words.

    Theorem: among n pairs of runs of which m0 and m1 have a one, the number that have both is Hypergeometric(n, m0, m1)
    if the runs on d1 are exchangeable given those on d0.  Proof: the places of the m1 ones are a uniform subset.

    Args:
        values0, values1: (n,) or (n, k), numbers that are functions of each output; equal columns are compared.
        significance: of all these tests together.
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
    """Whether the first half of the runs, or a quarter, differs from the others.

    Theorem: of m ones among n exchangeable runs, the number in a part of size k is Hypergeometric(n, m, k).
    """
    n = bits.shape[1]
    half = "outputs drift with time: those of the second half of the runs differ from those of the first"
    parts = [(slice(0, n // 2), half)]
    for i in range(_PARTS):
        part = slice(i * n // _PARTS, (i + 1) * n // _PARTS)
        parts.append((part, f"outputs drift with time: those of quarter {i + 1} of the runs differ from the others"))
    ones = bits.sum(axis=1)
    suspicions = []
    for part, meaning in parts:
        inside, size = bits[:, part].sum(axis=1), part.stop - part.start
        for (i,) in notable(inside, n, ones, size):
            suspicions.append((two_sided(int(inside[i]), n, int(ones[i]), size), meaning))
    return most_suspicious(suspicions, len(bits) * len(parts), significance)
