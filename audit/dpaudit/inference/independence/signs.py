"""Tests of whether runs are independent, and the storage of the outputs that they need.

An audit may stop at any time, and a test of all outputs until then would not be valid.  So the tests examine only the
outputs of the first n runs, where n is one of `CHECKPOINTS`.  Each of these numbers has a fixed share of `SUSPICIOUS`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.inference.independence.correlation import (
    Bits,
    alike,
    bits_of,
    columns_of,
    correlation,
    far_correlation,
    most_suspicious,
    notable,
    two_sided,
)
from dpaudit.numerics import Array, Integers, log_choose
from dpaudit.values import Output, RawOutputs

SUSPICIOUS = 1e-9  # joint significance of all tests of dependence in an audit

# Minimum number of runs of an audit, which detect strong dependence, such as most random walks.  An audit that stops
# earlier makes additional runs, which are no evidence.
FIRST_CHECKPOINT = 100

TESTED_OUTPUTS = 30  # minimum number of outputs of a dataset for a test of dependence

KEPT, _KEPT_BYTES = 4000, 2**27  # maximum number and total bytes of outputs in a list of Memory

CHECKPOINTS = (
    TESTED_OUTPUTS,
    40,
    50,
    64,
    80,
    *(round(FIRST_CHECKPOINT * 1.2**k) for k in range(int(math.log(KEPT / FIRST_CHECKPOINT, 1.2)) + 1)),
    KEPT,
)
"""Possible numbers of first outputs that are tested; the tests use the largest number available."""

_LONG = 1024  # numbers in a row of an array from which on it stays an array, as in `outputs.plain`
_GROWTH = 1.2  # ratio of successive numbers of runs after which `Memory.thinned` is tested

FIRST_SHARE = 0.5 / len(CHECKPOINTS)  # share of the significance for the tests at each of the `CHECKPOINTS`


@dataclass
class Memory:
    """Outputs of one dataset that are stored for tests of dependence, in the order of their runs."""

    first: list[Output] = field(default_factory=list)  # the first outputs, up to a maximum number
    spread: list[Output] = field(default_factory=list)  # every `_every`-th output of the whole audit
    _every: int = 1
    _seen: int = 0

    def add(self, outputs: RawOutputs, bytes_each: float = 8.0) -> None:
        """Add the outputs of the next runs."""
        most = int(min(KEPT, max(2 * TESTED_OUTPUTS, _KEPT_BYTES / bytes_each)))
        if len(self.first) == self._seen:  # nothing was left out before, so these are consecutive runs
            self.first.extend(values_of(outputs[: max(0, most - self._seen)]))
        self.spread.extend(values_of(outputs[-self._seen % self._every :: self._every]))
        self._seen += len(outputs)
        while len(self.spread) > most:
            self.spread = self.spread[::2]
            self._every *= 2

    @property
    def length(self) -> int:
        """Number of first outputs that are tested; 0 if there are fewer outputs than the smallest checkpoint."""
        return max((n for n in CHECKPOINTS if n <= len(self.first)), default=0)

    @property
    def thinned(self) -> list[Output]:
        """Evenly spaced outputs of the whole audit up to a fixed number of runs; empty for a short audit."""
        if self._every == 1 or self._seen < FIRST_CHECKPOINT:
            return []
        until = math.floor(FIRST_CHECKPOINT * _GROWTH**self._step)
        return self.spread[: -(-until // self._every)]

    @property
    def spread_share(self) -> float:
        """Share of the significance for a test of `thinned`; the shares of all such tests sum to at most 1/2."""
        step, halvings = self._step, int(math.log2(self._every))
        return 0.5 / ((step + 1) * (step + 2)) / (max(1, halvings) * (halvings + 1))

    @property
    def _step(self) -> int:
        return math.floor(math.log(max(1.0, self._seen / FIRST_CHECKPOINT), _GROWTH))


def values_of(outputs: RawOutputs) -> Iterable[Output]:
    """Return the values of outputs, so that a row of an array equals the same output in a list; see `outputs`."""
    if isinstance(outputs, np.ndarray) and (outputs.ndim == 1 or outputs[:1].size <= _LONG):
        return list(outputs.tolist())
    return outputs


def repetition(keys: Sequence[Hashable], significance: float) -> list[str]:
    """Test whether outputs are repeated after a fixed number of runs.

    Equal outputs have equal `keys`, which are in the order of the runs.

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
    """
    n, codes = len(keys), codes_of(keys)
    counts = np.bincount(codes)
    equal = int((counts * (counts - 1)).sum())
    if equal == 0 or len(counts) == 1:
        return []
    last: dict[int, int] = {}
    distances: Counter[int] = Counter()
    for place, code in enumerate(codes.tolist()):
        if code in last:
            distances[place - last[code]] += 1
        last[code] = place
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
    """
    n, ranks = len(keys), codes_of(keys)
    counts = np.bincount(ranks)
    equal = int((counts * (counts - 1)).sum())
    if equal == 0 or len(counts) == 1:
        return []
    length = 1
    longest = 0
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
        pairs = ranks[:-length] * (int(ranks.max()) + 1) + ranks[length:]
        ranks = np.unique(pairs, return_inverse=True)[1]
        length *= 2
    if not longest:
        return []
    i = np.arange(longest)
    log_p = float(np.sum(np.log(equal) - np.log((n - 2.0 * i) * (n - 2.0 * i - 1)))) + 2 * math.log(n)
    if log_p + math.log(math.log2(n) + 1) < math.log(significance):
        return [f"a sequence of {longest} outputs was repeated"]
    return []


def codes_of(keys: Sequence[Hashable]) -> Integers:
    """Replace keys by integers such that equal keys have equal integers; shape (n,)."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


_PARTS = 4  # number of parts of an audit; each part is compared with all other parts


def dependence(keys: Sequence[Hashable], values: Array, significance: float = SUSPICIOUS) -> list[str]:
    """Test whether the runs on one dataset are independent, and describe the findings.

    Keys are in the order of the runs, and equal if and only if the outputs are; without keys, only `values`, numbers of
    each output (n,) or (n, k), are tested.  The test needs `TESTED_OUTPUTS` outputs.

    Theorem:
        If the runs are exchangeable, P[the result is not empty] <= significance.

    Proof:
        The theorem is a union bound over all tests.  The number of tests depends on the values, but not on their order.
        The functions `repetition` and `sequences` each receive a quarter of the significance.  The functions
        `correlation`, `alike`, `far_correlation` and `drift_of` each receive an eighth of the significance.
    """
    n = max(len(keys), len(values))
    if n < TESTED_OUTPUTS:
        return []
    findings = [*repetition(keys, significance / 4), *sequences(keys, significance / 4)]
    bits = bits_of(values)
    findings += correlation(bits, significance / 8) or alike(values, significance / 8)
    return findings + far_correlation(bits, significance / 8) + drift_of(bits, significance / 8)


def drift(values: Array, significance: float = SUSPICIOUS) -> list[str]:
    """Test whether the distribution of the outputs changes over the course of an audit; see `drift_of`.

    Without a finding, or with fewer than `TESTED_OUTPUTS` outputs, the list of findings is empty.
    """
    return drift_of(bits_of(values), significance) if len(values) >= TESTED_OUTPUTS else []


def coupling(values0: Array, values1: Array, significance: float = SUSPICIOUS) -> list[str]:
    """Test whether corresponding runs on d0 and on d1 share their randomness.

    The values are numbers of each output of d0, and the same of d1, (n,) or (n, k).

    Theorem:
        Consider n pairs of a run on d0 and a run on d1, and one bit for each run.  Let m0 of the runs on d0 and m1 of
        the runs on d1 have a one.  If the runs on d1 are exchangeable given the runs on d0, the number of pairs with
        two ones has the distribution Hypergeometric(n, m0, m1).

    Proof:
        The positions of the m1 ones are a uniformly random subset of the n positions.
    """
    n = min(len(values0), len(values1))
    if n < TESTED_OUTPUTS:
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
