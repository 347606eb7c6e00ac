"""Arbitrarily dependent canaries in several runs.

The bounds for one run are in `inference.one_run`.  Sharper bounds are in `tight`.

**Several runs.**  Runs are independent of each other: each run has its own coins and its own randomness.  The canaries
of one run need not be independent.  Let V_k be the number of right guesses in run k.  Let D_k be a random
variable with P[D_k >= v] = `one_run.p_value(claim, m_k, r_k, v)` for every v.  This p-value is an upper bound of
P[V_k >= v].

*Theorem.*  Under the claim P[V_1 + ... + V_n >= v] <= P[D_1 + ... + D_n >= v], with independent D_k.
*Proof.*  V_k is stochastically at most D_k, and sums of independent variables preserve that order.

D_k grows as the claim weakens, so the test can be inverted along nested families.

**Limit of all such tests.**  If canaries may depend on each other, a mechanism may reveal nothing with probability
1 - w.  With probability w, the mechanism may treat all canaries like a worse mechanism.  Every valid test must allow
every w.  `benchmarks/one_run_tables.py limits` prints the resulting limits, which hold for every valid test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect_integers

_POWER = 0.75  # exponent of m; docs/measurements.md compares several numbers of guesses
_FADED = 1e-9  # smaller tails of D_k are rounded up to a tail at a smaller v


def default_guesses(m: int) -> int:
    """Return a number of guesses for dependent canaries: m^0.75, rounded up, at least 30 and at most m."""
    return min(m, max(math.ceil(math.pow(m, _POWER)), 30))


def sum_p_value(tails: Sequence[Array], right: int) -> float:
    """Bound the probability of `right` or more right guesses in all runs.

    Returns:
        P[D_1 + ... + D_n >= right], with the notation of the module's theorem, rounded up.
    """
    total = np.ones(1)
    for tail in tails:
        total = np.convolve(total, -np.diff(tail))
    return float(min(1.0, total[right:].sum() * (1 + 1e-9)))


def reached(p_value: Callable[[int], float], r: int) -> Array:
    """Return bounds of P[V >= 0], ..., P[V >= r], and 0 at the end.

    Far in the tail, P[V >= v] is replaced by the value at a smaller v.
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
