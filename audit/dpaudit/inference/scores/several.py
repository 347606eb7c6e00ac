"""Arbitrarily dependent canaries: tests with several numbers of guesses, and with several runs.

The bounds for one number of guesses in one run are in `inference.one_run`, and sharper ones in `tight`.

**Several numbers of guesses.**  Few guesses resolve a large privacy loss, and many guesses a small one.  Which is
better is not known in advance.  All J numbers are chosen before the scores are seen, and each is tested at a share of
the significance.  The probability that any of them refutes a true claim is at most the sum of the shares (Bonferroni).

**Several runs.**  Runs are independent of each other: each has its own coins and its own randomness.  The canaries of
one run need not be independent.  Let V_k be the number of
right guesses in run k.  Let D_k have P[D_k >= v] = `one_run.p_value(claim, m_k, r_k, v)`, a bound of P[V_k >= v] for
every v.

*Theorem.*  Under the claim P[V_1 + ... + V_n >= v] <= P[D_1 + ... + D_n >= v], with independent D_k.
*Proof.*  V_k is stochastically at most D_k, and sums of independent variables preserve that order.

D_k grows as the claim weakens, so both tests can be inverted along nested families.

**Limit of all such tests.**  If canaries may depend on each other, a mechanism may reveal nothing with probability
1 - w.  With probability w, it may treat all canaries like a worse mechanism.  Every valid test must allow every w.
`benchmarks/one_run_tables.py --limits` prints the resulting limits for any test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from dpaudit.claims import GaussianDP, TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.inference.one_run import check_counts
from dpaudit.inference.scores import tight
from dpaudit.inference.scores.families import largest_refuted
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect_integers

_POWER = 0.75  # see docs/measurements.md
_FADED = 1e-9  # smaller tails of D_k are rounded up to a tail at a smaller v


def default_guesses(m: int) -> int:
    """Return a number of guesses for dependent canaries: m^0.75, rounded up, at least 30 and at most m.

    Args:
        m: Number of canaries.
    """
    return min(m, max(math.ceil(math.pow(m, _POWER)), 30))


def several_p_value(claim: TradeoffFunction, m: int, counts: Sequence[tuple[int, int]]) -> float:
    """Return a p-value from several numbers of guesses about the same canaries.

    Args:
        claim: The claim about one canary.
        m: Number of canaries.
        counts: (r, v) for each number of guesses r, with v right ones.  Every r must be chosen before the scores are
            seen.

    Returns:
        The smallest p-value times the number of p-values, at most 1.

    Raises:
        ValueError: If `counts` is empty or contains impossible counts.
    """
    _check(counts)
    return min(1.0, len(counts) * min(tight.p_value(claim, m, r, v) for r, v in counts))


def several_mu_lower(m: int, counts: Sequence[tuple[int, int]], *, significance: float) -> float:
    """Compute a lower confidence bound of mu from several numbers of guesses.

    Theorem:
        If the mechanism is mu-GDP, P[several_mu_lower > mu] <= significance.

    Args:
        m: Number of canaries.
        counts: As in `several_p_value`.
        significance: In (0, 1).

    Returns:
        The largest mu refuted, rounded down; 0 if none is.

    Raises:
        ValueError: If `counts` is empty or contains impossible counts.
    """
    _check(counts)
    share = significance / len(counts)
    return max(tight.mu_lower(m, r, v, significance=share) for r, v in counts)


def runs_p_value(claim: TradeoffFunction, runs: Sequence[tuple[int, int, int]]) -> float:
    """Return a p-value from canaries in several independent runs.

    Args:
        claim: The claim about one canary in one run.
        runs: (m, r, v) for each run: canaries, guesses, right guesses.  Every r must be chosen before the scores are
            seen.

    Returns:
        The bound of the module's theorem for the total number of right guesses.

    Raises:
        ValueError: If there is no run, or counts are impossible.
    """
    if not runs:
        raise ValueError("runs must contain at least one run, got none")
    for m, r, v in runs:
        check_counts(m, r, v)
    f = claim.symmetrized()
    if len(runs) == 1:
        return one_run.p_value(f, *runs[0])
    right = sum(v for _, _, v in runs)
    return sum_p_value([reached(partial(one_run.p_value, f, m, r), r) for m, r, _ in runs], right)


def sum_p_value(tails: Sequence[Array], right: int) -> float:
    """Bound the probability of `right` or more right guesses in all runs.

    Args:
        tails: For each run, bounds of P[V_k >= v] for v = 0, ..., r_k, and 0 at the end; they must not rise with v.
        right: Total number of right guesses.

    Returns:
        P[D_1 + ... + D_n >= right], with the notation of the module's theorem, rounded up.
    """
    total = np.ones(1)
    for tail in tails:
        total = np.convolve(total, -np.diff(tail))
    return float(min(1.0, total[right:].sum() * (1 + 1e-9)))


def runs_mu_lower(runs: Sequence[tuple[int, int, int]], *, significance: float) -> float:
    """Compute a lower confidence bound of mu from canaries in several runs.

    Theorem:
        If the mechanism is mu-GDP in every run, P[runs_mu_lower > mu] <= significance.

    Args:
        runs: As in `runs_p_value`.
        significance: In (0, 1).

    Returns:
        The largest mu refuted, rounded down; 0 if none is.

    Raises:
        ValueError: If there is no run, or counts are impossible.
    """
    return largest_refuted(
        GaussianDP, lambda claim: runs_p_value(claim, runs), significance=significance, precision=tight.PRECISION
    )


def reached(p_value: Callable[[int], float], r: int) -> Array:
    """Return bounds of P[V >= 0], ..., P[V >= r], and 0 at the end.

    Far in the tail, P[V >= v] is replaced by the value at a smaller v.

    Args:
        p_value: Bound of P[V >= v], a function of v that does not rise.
        r: Number of guesses.
    """
    low = bisect_integers(lambda v: p_value(v) >= 1, inside=0, outside=r + 1).inside
    tail = np.zeros(r + 2)
    tail[: low + 1] = 1.0  # P[D >= low] = 1, and P[D >= low + 1] < 1
    last = 1.0
    for v in range(low + 1, r + 1):
        if last > _FADED:
            last = min(last, p_value(v))
        tail[v] = last
    return tail


def _check(counts: Sequence[tuple[int, int]]) -> None:
    if not counts:
        raise ValueError("counts must contain at least one number of guesses, got none")
