"""Signs that runs depend on each other: then no guarantee of an audit holds.

Independent runs are exchangeable: their outputs could have come in any other order as well, whatever the mechanism
does.  Each test here is exact, or conservative, given which outputs came and not in which order.  Outputs are compared
with thresholds, so that what is left of a run is one bit, and numbers of ones have hypergeometric laws.

The level is that of all tests of an audit together: `SUSPICIOUS`.  An audit may end when it likes, which would spoil
tests of the outputs up to that moment.  So the tests look at the first outputs up to one of a few numbers of runs that
are fixed beforehand (`CHECKPOINTS`), and each of these has its own share of the level.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from dpaudit.numerics.arrays import Array

SUSPICIOUS = 1e-9
"""P-value from which independence is called into question, of all tests of an audit together."""

ENOUGH = 100
"""Runs that can show strong dependence: 85 % of random walks.  An audit that finds its evidence in fewer makes further
ones, which count as no evidence.  A mechanism that takes a second then takes three minutes at the most."""

_FEWEST = 30  # outputs below which nothing is said
_KEPT, _KEPT_BYTES = 4000, 2**27  # in each list of a memory: outputs, and bytes of large ones

CHECKPOINTS = (
    _FEWEST,
    40,
    50,
    64,
    80,
    *(round(ENOUGH * 1.2**k) for k in range(int(math.log(_KEPT / ENOUGH, 1.2)) + 1)),
    _KEPT,
)
"""Numbers of runs of which the first outputs are tested: the largest of them that there are."""

_GROWTH = 1.2  # between two numbers of runs at which outputs of the whole audit are tested
_MAX_LAG = 20  # runs before, to which half of the level for correlation goes
_NOTABLE = 5.0  # standard deviations; what is nearer to its mean cannot be suspicious, and its tail is not computed
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_MAX_FREQUENT = 3  # values that are looked at one by one, the most frequent ones
_GROUPS = (4, 8)  # equally large groups of outputs, from low to high
_MAX_GROUPED = 600  # outputs up to which groups are looked at; with more, single thresholds show as much
_PARTS = 4  # of the runs, each of which is compared with the others

Bits = npt.NDArray[np.bool_]
"""(k, n): k yes-no questions about each of n outputs."""

FIRST_SHARE = 0.5 / len(CHECKPOINTS)
"""Share of the level for the first outputs up to one of the `CHECKPOINTS`."""


@dataclass
class Memory:
    """Outputs of one dataset in the order of their runs: the first ones all, later ones more and more thinly."""

    first: list[Any] = field(default_factory=list)
    spread: list[Any] = field(default_factory=list)  # every `_every`-th of all
    _every: int = 1
    _seen: int = 0

    def add(self, outputs: Sequence[Any] | np.ndarray[Any, Any], bytes_each: float = 8.0) -> None:
        """The outputs of the next runs, and how large they are."""
        most = int(min(_KEPT, max(2 * _FEWEST, _KEPT_BYTES / bytes_each)))
        self.first.extend(outputs[: max(0, most - len(self.first))])
        self.spread.extend(outputs[-self._seen % self._every :: self._every])
        self._seen += len(outputs)
        while len(self.spread) > most:
            self.spread = self.spread[::2]
            self._every *= 2

    @property
    def length(self) -> int:
        """How many of the first outputs are tested."""
        return max((n for n in CHECKPOINTS if n <= len(self.first)), default=0)

    @property
    def thinned(self) -> list[Any]:
        """Outputs spread over the audit, up to a number of runs that is fixed beforehand; none of a short audit."""
        if self._every == 1 or self._seen < ENOUGH:
            return []
        until = math.floor(ENOUGH * _GROWTH**self._step)
        return self.spread[: -(-until // self._every)]

    @property
    def spread_share(self) -> float:
        """Share of the level for outputs spread over the audit: over all its lengths, at most a half."""
        step, halvings = self._step, int(math.log2(self._every))
        return 0.5 / ((step + 1) * (step + 2)) / (max(1, halvings) * (halvings + 1))

    @property
    def _step(self) -> int:
        return math.floor(math.log(max(1.0, self._seen / ENOUGH), _GROWTH))


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
    if n < _FEWEST:
        return []
    found = [*_repetition(keys, significance / 4), *_sequences(keys, significance / 4)]
    bits = _bits(values)
    found += _correlation(bits, significance / 8) or _alike(values, significance / 8)
    return found + _far_correlation(bits, significance / 8) + _drift(bits, significance / 8)


def drift(values: Array, significance: float = SUSPICIOUS) -> list[str]:
    """Whether outputs change with time, in words; `values`: (n,) or (n, k), of outputs spread over the whole audit."""
    return _drift(_bits(values), significance) if len(values) >= _FEWEST else []


def coupling(values0: Array, values1: Array, significance: float = SUSPICIOUS) -> list[str]:
    """Whether the runs on d0 and on d1 that were made side by side share their randomness, in words.

    Theorem: among n pairs of runs of which m0 and m1 have a one, the number that have both is Hypergeometric(n, m0, m1)
    if the runs on d1 are exchangeable given those on d0.  Proof: the places of the m1 ones are a uniform subset.

    Args:
        values0, values1: (n,) or (n, k), numbers that are functions of each output; equal columns are compared.
        significance: of all these tests together.
    """
    n = min(len(values0), len(values1))
    if n < _FEWEST:
        return []
    pairs = [(_bits(a), _bits(b)) for a, b in zip(_columns(values0[:n]).T, _columns(values1[:n]).T, strict=False)]
    tests = sum(len(a) * len(b) for a, b in pairs)
    worst, words = 1.0, ""
    for a, b in pairs:
        ones0, ones1 = a.sum(axis=1)[:, None], b.sum(axis=1)[None, :]
        together = a.astype(np.float64) @ b.T.astype(np.float64)
        for i, j in _notable(together, n, ones0, ones1):
            x, expected = int(together[i, j]), float(ones0[i, 0] * ones1[0, j] / n)
            p_value = two_sided(x, n, int(ones0[i, 0]), int(ones1[0, j]))
            if p_value < worst:
                worst = p_value
                words = (
                    f"runs on d0 and d1 share their randomness (two events coincide {x} times in {n} runs, "
                    f"{expected:.1f} expected)"
                )
    return [words] if words and worst * tests < significance else []


def key(output: Any) -> Hashable:
    """Equal for equal outputs."""
    match output:
        case np.ndarray() | np.generic():
            return output.tobytes()
        case str() | bytes() | int() | float() | None:
            return output
    return repr(output)


def two_sided(x: int, total: int, marked: int, drawn: int) -> float:
    """Twice the smaller tail of a hypergeometric count: of `drawn` out of `total`, x are among the `marked` ones.

    Theorem: P[two_sided(X) <= s] <= s for every s if X is Hypergeometric(total, marked, drawn).
    """
    low, high = max(0, drawn + marked - total), min(drawn, marked)
    k = np.arange(low, high + 1)
    log_mass = _log_choose(marked, k) + _log_choose(total - marked, drawn - k) - _log_choose(total, drawn)
    mass = np.exp(log_mass)
    tail = min(float(mass[: x - low + 1].sum()), float(mass[x - low :].sum()))
    return min(1.0, 2 * tail * (1 + 1e-6))  # the sum is rounded by less than that


def _log_choose(n: Any, k: Any) -> Any:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - np.asarray(k) + 1)


def _columns(values: Array) -> Array:
    return values.reshape(len(values), -1)


def _bits(values: Array) -> Bits:
    """What is asked about each output, (k, n): functions of the values as a multiset, each question once.

    For each column: whether the number is missing, reaches a quantile, is the largest or the least, or equals one of
    the most frequent values.  Questions that fewer than two outputs answer differently from the others are left out.
    """
    found: dict[bytes, Bits] = {}
    n = len(values)
    for column in _columns(values).T:
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


def _notable(counts: Array, total: int, marked: Any, drawn: Any) -> Iterator[tuple[int, ...]]:
    """Where hypergeometric counts are so far from their means that a tail is worth computing."""
    mean = marked * drawn / total
    variance = mean * (1 - marked / total) * (total - drawn) / max(1, total - 1)
    far = np.abs(counts - mean) > _NOTABLE * np.sqrt(variance)
    yield from map(tuple, np.argwhere(far).tolist())


def _repetition(keys: Sequence[Hashable], significance: float) -> list[str]:
    """Whether outputs come again after a certain number of runs.

    Theorem: let the keys be exchangeable and m_v of them have the value v; S = sum m_v (m_v - 1).  Among K pairs of
    places that have no place in common, at least k hold equal keys with probability at most
    min over j <= k of C(K, j) prod_{i < j} S / ((n - 2 i) (n - 2 i - 1)).
    Proof: given that i of the pairs are equal, the next one is with probability S' / ((n - 2 i) (n - 2 i - 1)), where
    S' <= S is what is left; there are C(K, j) ways to choose j pairs.
    For each distance d the pairs (t, t + d) are two families without common places, by the parity of t // d.  The
    p-value is multiplied by the number of families at all distances, so that any distance may be looked at.
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
    codes = _codes(keys)
    for distance, _ in distances.most_common(5):
        same = codes[distance:] == codes[:-distance]
        odd = (np.arange(n - distance) // distance) % 2 == 1
        for family in (~odd, odd):
            p_value = math.exp(min(0.0, _log_equal(int(same[family].sum()), int(family.sum()), equal, n)))
            if p_value * 2 * n < significance:
                return [f"{same.sum()} of {n - distance} outputs equal the output {distance} runs earlier"]
    return []


def _log_equal(k: int, pairs: int, equal: int, n: int) -> float:
    """The logarithm of the bound in `_repetition`."""
    i = np.arange(k)
    steps = np.log(equal) - np.log((n - 2.0 * i) * (n - 2.0 * i - 1))
    j = np.arange(k + 1)
    return float(np.min(_log_choose(pairs, j) + np.concatenate([[0.0], np.cumsum(steps)])))


def _sequences(keys: Sequence[Hashable], significance: float) -> list[str]:
    """Whether a sequence of outputs comes again, at any distance, as when a generator is seeded anew.

    Theorem: two given sequences of l places without a common place hold equal keys with probability at most
    prod_{i < l} S / ((n - 2 i) (n - 2 i - 1)), as in `_repetition`; there are fewer than n^2 / 2 pairs of sequences.
    Lengths 1, 2, 4, ... are tried; the p-value is multiplied by their number.
    """
    n = len(keys)
    counts = Counter(keys)
    equal = sum(m * (m - 1) for m in counts.values())
    if equal == 0 or len(counts) == 1:
        return []
    ranks, length, longest = _codes(keys), 1, 0
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


def _codes(keys: Sequence[Hashable]) -> npt.NDArray[np.int64]:
    """A whole number for each key, equal if and only if the keys are."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(found, len(numbers)) for found in keys], dtype=np.int64)


def _correlation(bits: Bits, significance: float) -> list[str]:
    """Whether runs are like, or unlike, those shortly before them."""
    n = bits.shape[1]
    lags = range(1, min(_MAX_LAG, n // 6) + 1)
    tests = len(bits) * len(lags)
    return _at_lags(bits, [(i, lag) for lag in lags for i in _far_off(bits, lag)], tests, significance)


def _alike(values: Array, significance: float) -> list[str]:
    """Whether runs fall into the same group of outputs as those shortly before them, where runs are few."""
    n = len(values)
    if n > _MAX_GROUPED:
        return []
    labels = [found for column in _columns(values).T for k in _GROUPS if len(set(found := _grouped(column, k))) > 2]
    lags = range(1, min(_MAX_LAG, n // 6) + 1)
    worst, words = 1.0, ""
    for group in labels:
        sizes = np.unique(group, return_counts=True)[1]
        expected = float((sizes * (sizes - 1)).sum()) / n
        for lag in lags:
            ordered = group[np.argsort(np.arange(n) % lag, kind="stable")]
            same = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
            if same < expected + _NOTABLE * math.sqrt(expected):
                continue
            p_value = few_stretches(n - same, sizes.tolist()) * lag * (lag + 1)  # the next ones say most
            if p_value < worst:
                worst = p_value
                words = (
                    f"each run is correlated with the run {lag} earlier "
                    f"({same} of {n} are alike, {expected:.0f} expected)"
                )
    return [words] if words and worst * len(labels) < significance else []


def few_stretches(most: int, sizes: Sequence[int]) -> float:
    """A bound for the probability that labels in random order form at most so many stretches of equal ones.

    Theorem: in a uniformly random arrangement of m_1 labels of kind 1, ..., m_k of kind k, the number R of stretches
    has P[R = r] <= r! sum over r_1 + ... + r_k = r of prod_i C(m_i - 1, r_i - 1) / r_i!, divided by the number of
    arrangements.  Proof: the labels of kind i are cut into r_i stretches in C(m_i - 1, r_i - 1) ways; stretches can be
    put in order in r! / prod r_i! ways, not all of which keep those of one kind apart.
    """
    ways = np.zeros(1)  # logarithms of the sum, without r!, by r from `low` on
    low = 0
    for m in sizes:
        j = np.arange(1, m + 1)
        of_kind = _log_choose(m - 1, j - 1) - gammaln(j + 1)
        longer = np.full(len(ways) + m - 1, -np.inf)
        for i, log_ways in enumerate(of_kind):
            longer[i : i + len(ways)] = np.logaddexp(longer[i : i + len(ways)], ways + log_ways)
        ways, low = longer, low + 1
    stretches = low + np.arange(len(ways))
    arrangements = gammaln(sum(sizes) + 1) - sum(float(gammaln(m + 1)) for m in sizes)
    log_mass = (ways + gammaln(stretches + 1) - arrangements)[stretches <= most]
    return min(1.0, float(np.exp(log_mass).sum()) * (1 + 1e-6))


def _grouped(column: Array, groups: int) -> npt.NDArray[np.intp]:
    """The group of each output, of about equally large ones from low to high."""
    known = np.where(np.isnan(column), -np.inf, column)
    ordered = np.sort(known)
    cuts = np.unique(ordered[[i * len(ordered) // groups for i in range(1, groups)]])
    return np.searchsorted(cuts, known, side="right")


def _far_correlation(bits: Bits, significance: float) -> list[str]:
    """The same at all other distances up to half the runs; the Fourier transform shows at which to look."""
    n = bits.shape[1]
    if not len(bits):
        return []
    size = 2 ** math.ceil(math.log2(2 * n))
    spectrum = np.fft.rfft(bits.astype(np.float64), size, axis=1)
    together = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, : n // 2 + 1]
    share = (bits.sum(axis=1) / n)[:, None]
    pairs = n - np.arange(n // 2 + 1)
    excess = np.abs(together - pairs * share**2) / np.sqrt(pairs * share**2 * (1 - share) ** 2 + 1)
    excess[:, :1] = 0.0
    found = [(i, int(lag)) for i in range(len(bits)) for lag in np.argsort(-excess[i])[:3] if excess[i, lag] > _NOTABLE]
    return _at_lags(bits, found, len(bits) * (n // 2), significance)


def _at_lags(bits: Bits, found: Sequence[tuple[int, int]], tests: int, significance: float) -> list[str]:
    """Of these questions and distances in runs, the most suspicious one in words."""
    n = bits.shape[1]
    worst, words = 1.0, ""
    for i, lag in found:
        x, ones = int(_neighbours(bits[i : i + 1], lag)[0]), int(bits[i].sum())
        p_value = two_sided(x, n, ones - 1, ones)
        if p_value < worst:
            worst = p_value
            words = (
                f"each run is correlated with the run {lag} earlier (an event that came {ones} times in {n} runs "
                f"came twice at that distance {x} times, {ones * (ones - 1) / n:.1f} expected)"
            )
    return [words] if words and worst * tests < significance else []


def _far_off(bits: Bits, lag: int) -> list[int]:
    """Questions whose answers are notably often, or rarely, the same at this distance."""
    ones = bits.sum(axis=1)
    return [int(i) for (i,) in _notable(_neighbours(bits, lag), bits.shape[1], ones - 1, ones)]


def _neighbours(bits: Bits, lag: int) -> Array:
    """How often two ones are neighbours when the runs are put in the order 0, lag, 2 lag, ..., 1, 1 + lag, ...: (k,).

    Theorem (Stevens 1939, Mood 1940): in a uniformly random arrangement of m ones among n places, the number of
    neighbouring ones is Hypergeometric(n, m - 1, m).  Proof: the runs of ones are m minus that number, and there are
    C(m - 1, r - 1) C(n - m + 1, r) arrangements with r runs.  Another order of exchangeable runs changes nothing.
    """
    order = np.argsort(np.arange(bits.shape[1]) % lag, kind="stable")
    ordered = bits[:, order]
    both: Array = np.count_nonzero(ordered[:, 1:] & ordered[:, :-1], axis=1)
    return both


def _drift(bits: Bits, significance: float) -> list[str]:
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
    worst, words = 1.0, ""
    for part, meaning in parts:
        inside, size = bits[:, part].sum(axis=1), part.stop - part.start
        for (i,) in _notable(inside, n, ones, size):
            p_value = two_sided(int(inside[i]), n, int(ones[i]), size)
            if p_value < worst:
                worst, words = p_value, meaning
    return [words] if words and worst * len(bits) * len(parts) < significance else []
