"""Runs that are like, or unlike, those a certain number of runs before them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from dpaudit.inference.independence.hypergeometric import NOTABLE, most_suspicious, notable, two_sided
from dpaudit.inference.independence.questions import Bits, columns_of
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.binomials import log_choose

_MAX_LAG = 20  # runs before, to which half of the level for correlation goes
_GROUPS = (4, 8)  # equally large groups of outputs, from low to high
_MAX_GROUPED = 600  # outputs up to which groups are looked at; with more, single thresholds show as much


def correlation(bits: Bits, significance: float) -> list[str]:
    """Whether runs are like, or unlike, those shortly before them."""
    n = bits.shape[1]
    lags = range(1, min(_MAX_LAG, n // 6) + 1)
    tests = len(bits) * len(lags)
    return _at_lags(bits, [(i, lag) for lag in lags for i in _far_off(bits, lag)], tests, significance)


def alike(values: Array, significance: float) -> list[str]:
    """Whether runs fall into the same group of outputs as those shortly before them, where runs are few."""
    n = len(values)
    if n > _MAX_GROUPED:
        return []
    labels = [found for column in columns_of(values).T for k in _GROUPS if len(set(found := _grouped(column, k))) > 2]
    lags = range(1, min(_MAX_LAG, n // 6) + 1)
    worst, words = 1.0, ""
    for group in labels:
        sizes = np.unique(group, return_counts=True)[1]
        expected = float((sizes * (sizes - 1)).sum()) / n
        for lag in lags:
            ordered = group[np.argsort(np.arange(n) % lag, kind="stable")]
            same = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
            if same < expected + NOTABLE * math.sqrt(expected):
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
        of_kind = log_choose(m - 1, j - 1) - gammaln(j + 1)
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


def far_correlation(bits: Bits, significance: float) -> list[str]:
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
    found = [(i, int(lag)) for i in range(len(bits)) for lag in np.argsort(-excess[i])[:3] if excess[i, lag] > NOTABLE]
    return _at_lags(bits, found, len(bits) * (n // 2), significance)


def _at_lags(bits: Bits, found: Sequence[tuple[int, int]], tests: int, significance: float) -> list[str]:
    """Of these questions and distances in runs, the most suspicious one in words."""
    n = bits.shape[1]
    suspicions = []
    for i, lag in found:
        x, ones = int(neighbours(bits[i : i + 1], lag)[0]), int(bits[i].sum())
        words = (
            f"each run is correlated with the run {lag} earlier (an event that came {ones} times in {n} runs "
            f"came twice at that distance {x} times, {ones * (ones - 1) / n:.1f} expected)"
        )
        suspicions.append((two_sided(x, n, ones - 1, ones), words))
    return most_suspicious(suspicions, tests, significance)


def _far_off(bits: Bits, lag: int) -> list[int]:
    """Questions whose answers are notably often, or rarely, the same at this distance."""
    ones = bits.sum(axis=1)
    return [int(i) for (i,) in notable(neighbours(bits, lag), bits.shape[1], ones - 1, ones)]


def neighbours(bits: Bits, lag: int) -> Array:
    """How often two ones are neighbours when the runs are put in the order 0, lag, 2 lag, ..., 1, 1 + lag, ...: (k,).

    Theorem (Stevens 1939, Mood 1940): in a uniformly random arrangement of m ones among n places, the number of
    neighbouring ones is Hypergeometric(n, m - 1, m).  Proof: the runs of ones are m minus that number, and there are
    C(m - 1, r - 1) C(n - m + 1, r) arrangements with r runs.  Another order of exchangeable runs changes nothing.
    """
    order = np.argsort(np.arange(bits.shape[1]) % lag, kind="stable")
    ordered = bits[:, order]
    both: Array = np.count_nonzero(ordered[:, 1:] & ordered[:, :-1], axis=1)
    return both
