"""Bits of outputs, hypergeometric tests of them, and whether runs are correlated with earlier runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from dpaudit.numerics import Array, Flags, log_choose

_LAGS = 20  # maximum distance between two runs in `correlation` and `alike`
_GROUPS = (4, 8)  # numbers of equally large groups into which sorted outputs are divided


def correlation(bits: Bits, significance: float) -> list[str]:
    """Test whether answers for runs at a distance of at most 20 runs are correlated."""
    n = bits.shape[1]
    lags, ones = range(1, min(_LAGS, n // 6) + 1), bits.sum(axis=1)
    far_off = [(i, lag) for lag in lags for (i,) in notable(neighbours(bits, lag), n, ones - 1, ones)]
    return _at_lags(bits, far_off, len(bits) * len(lags), significance)


def alike(values: Array, significance: float) -> list[str]:
    """Test whether outputs, at most 600, are too often in the same group, between two quantiles, as earlier outputs."""
    n = len(values)
    if n > 600:
        return []
    labels = []
    for column in columns_of(values).T:
        known = np.where(np.isnan(column), -np.inf, column)
        ordered = np.sort(known)
        for k in _GROUPS:
            cuts = np.unique(ordered[[i * n // k for i in range(1, k)]])
            group = np.searchsorted(cuts, known, side="right")
            sizes = np.unique(group, return_counts=True)[1]
            if len(sizes) > 2:
                labels.append((group, sizes))
    lags = range(1, min(_LAGS, n // 6) + 1)
    worst, words = 1.0, ""
    for group, sizes in labels:
        expected = float((sizes * (sizes - 1)).sum()) / n
        for lag in lags:
            ordered = group[np.argsort(np.arange(n) % lag, kind="stable")]
            same = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
            if same < expected + NOTABLE * math.sqrt(expected):
                continue
            p_value = few_stretches(n - same, sizes.tolist()) * lag * (lag + 1)  # Bonferroni factor
            if p_value < worst:
                worst = p_value
                words = f"runs at distance {lag} are correlated ({same} of {n} are alike, {expected:.0f} expected)"
    return [words] if words and worst * len(labels) < significance else []


def few_stretches(most: int, sizes: Sequence[int]) -> float:
    """Bound the probability that labels, sizes[i] of kind i, in random order form at most `most` equal stretches.

    Theorem:
        Consider k kinds of labels, with m_i labels of kind i.  Arrange all labels in uniformly random order, and let R
        be the number of maximal sequences of equal labels, called stretches.  Then P[R = r] is at most the sum over all
        r_1 + ... + r_k = r of r! prod_i C(m_i - 1, r_i - 1) / r_i!, divided by the number of arrangements.

    Proof:
        The labels of kind i can be divided into r_i stretches in C(m_i - 1, r_i - 1) ways.  The kinds of the r
        stretches can be ordered in r! / prod_i r_i! ways.  The result is an upper bound, because some of these orders
        put two stretches of the same kind next to each other.
    """
    ways = np.zeros(1)  # logarithms of the sums for r = low, low + 1, ..., without the factor r!
    low = 0
    for m in sizes:
        j = np.arange(1, m + 1)
        of_kind = log_choose(m - 1, j - 1) - gammaln(j + 1)
        longer = np.full(len(ways) + m - 1, -np.inf)
        for i, log_ways in enumerate(of_kind):
            longer[i : i + len(ways)] = np.logaddexp(longer[i : i + len(ways)], ways + log_ways)
        ways, low = longer, low + 1
    stretches = low + np.arange(len(ways))
    arrangements = gammaln(sum(sizes) + 1) - sum(float(gammaln(m + 1)) for m in sizes)
    log_mass = (ways + gammaln(stretches + 1) - arrangements)[stretches <= most]
    return min(1.0, float(np.exp(log_mass).sum()) * (1 + 1e-6))


def far_correlation(bits: Bits, significance: float) -> list[str]:
    """Test whether answers for runs up to half their number apart are correlated, at the most correlated distances."""
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
    largest = np.argsort(-excess, axis=1)[:, :3]
    far_off = [(i, int(lag)) for i in range(len(bits)) for lag in largest[i] if excess[i, lag] > NOTABLE]
    return _at_lags(bits, far_off, len(bits) * (n // 2), significance)


def _at_lags(bits: Bits, places: Sequence[tuple[int, int]], tests: int, significance: float) -> list[str]:
    """Describe the pair of a question and a distance with the smallest p-value, if it is significant."""
    n = bits.shape[1]
    suspicions = []
    for i, lag in places:
        x, ones = int(neighbours(bits[i : i + 1], lag)[0]), int(bits[i].sum())
        words = (
            f"runs at distance {lag} are correlated (an event occurred in {ones} of {n} runs, "
            f"and {x} times in two runs at this distance, {ones * (ones - 1) / n:.1f} expected)"
        )
        suspicions.append((two_sided(x, n, ones - 1, ones), words))
    return most_suspicious(suspicions, tests, significance)


def neighbours(bits: Bits, lag: int) -> Array:
    """Count pairs of neighbouring ones in the order 0, lag, 2 lag, ..., 1, 1 + lag, ... of the runs.

    `bits` are the answers to k yes/no questions about each of n outputs, (k, n), and the result has shape (k,).

    Theorem:
        In a uniformly random arrangement of m ones and n - m zeros, the number of pairs of neighbouring ones has the
        distribution Hypergeometric(n, m - 1, m) (Stevens 1939; Mood 1940).

    Proof:
        If the ones form r stretches of neighbouring ones, the number of pairs of neighbouring ones is m - r.  There are
        C(m - 1, r - 1) C(n - m + 1, r) arrangements with r stretches.  The theorem applies to the order of the runs,
        because exchangeable runs may be put in any fixed order.
    """
    order = np.argsort(np.arange(bits.shape[1]) % lag, kind="stable")
    ordered = bits[:, order]
    return np.asarray(np.count_nonzero(ordered[:, 1:] & ordered[:, :-1], axis=1))


_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_FREQUENT = 3  # maximum number of frequent values for which there is a question
Bits = Flags  # answers to k yes/no questions about each of n outputs; shape (k, n)


def columns_of(values: Array) -> Array:
    """Reshape an array of shape (n, ...) to shape (n, k), with one row for each output."""
    return values.reshape(len(values), -1)


def bits_of(values: Array) -> Bits:
    """Answer yes/no questions about each output, (questions, n); the rarer answer is True.

    The questions ask of each column whether the value is missing, at least or above a quantile, the maximum, the
    minimum, or a frequent value, and do not depend on the order of the outputs.  Questions with fewer than two rarer
    answers, or with the same or opposite answers as others, are omitted.
    """
    answers: dict[bytes, Bits] = {}
    n = len(values)
    for column in columns_of(values).T:
        missing = np.isnan(column)
        known = np.where(missing, -np.inf, column)
        ordered = np.sort(known)
        distinct, counts = np.unique(ordered, return_counts=True)
        frequent = distinct[np.argsort(-counts, kind="stable")[:_FREQUENT]] if counts.max(initial=0) > 1 else ()
        cuts = dict.fromkeys(float(ordered[int(q * n)]) for q in _QUANTILES)
        rows = [missing, *(known >= cut for cut in cuts), *(known > cut for cut in cuts)]
        rows += [known == ordered[-1], known == ordered[0], *(known == value for value in frequent)]
        for row in rows:
            rarer = row if 2 * np.count_nonzero(row) <= n else ~row  # a question and its negation count as one
            if np.count_nonzero(rarer) > 1:
                answers.setdefault(rarer.tobytes(), rarer)
    return np.array(list(answers.values()), dtype=np.bool_).reshape(-1, n)


NOTABLE = 5.0  # minimum distance of a count from its mean for which a p-value is computed; standard deviations


def two_sided(x: int, total: int, marked: int, drawn: int) -> float:
    """Return a two-sided p-value of a hypergeometric count: twice the smaller tail, rounded up, at most 1.

    Theorem:
        If X ~ Hypergeometric(total, marked, drawn), P[two_sided(X) <= s] <= s for every s.
    """
    low, high = max(0, drawn + marked - total), min(drawn, marked)
    k = np.arange(low, high + 1)
    log_mass = log_choose(marked, k) + log_choose(total - marked, drawn - k) - log_choose(total, drawn)
    mass = np.exp(log_mass)
    tail = min(float(mass[: x - low + 1].sum()), float(mass[x - low :].sum()))
    return min(1.0, 2 * tail * (1 + 1e-6))  # the factor exceeds the rounding error of the sum


Whole = int | npt.NDArray[np.intp]  # type of an integer or an array of integers


def most_suspicious(suspicions: Iterable[tuple[float, str]], tests: int, significance: float) -> list[str]:
    """Return the description of the test with the smallest p-value, if this p-value is significant; else nothing.

    Each suspicion is a p-value and a description; `tests` also counts tests whose p-values were not computed.

    Theorem:
        If all null hypotheses are true, P[the result is not empty] <= significance, by the Bonferroni correction.
    """
    p_value, words = min(suspicions, key=lambda suspicion: suspicion[0], default=(math.inf, ""))
    return [words] if words and p_value * tests < significance else []


def notable(counts: Array, total: int, marked: Whole, drawn: Whole) -> Iterator[tuple[int, ...]]:
    """Yield the indices of hypergeometric counts that differ from their means by over 5 standard deviations."""
    mean = marked * drawn / total
    variance = mean * (1 - marked / total) * (total - drawn) / max(1, total - 1)
    far = np.abs(counts - mean) > NOTABLE * np.sqrt(variance)
    yield from map(tuple, np.argwhere(far).tolist())
