"""Composes pure DP claims exactly, as a composition of randomised responses.

The joint claim of n epsilon-DP mechanisms is the claim of n randomised responses (Kairouz, Oh & Viswanath 2015, "The
composition theorem for differential privacy", Thm 3.3; for different epsilons: Murtagh & Vadhan 2016).  The trade-off
function is a polygon whose log-slopes are all possible sums of the terms +-epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.claims.envelope import Envelope, SupportingLines
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.binomials import log_choose

# maximum number of distinct outcomes of an exact composition; larger compositions use privacy-loss distributions
MAX_OUTCOMES = 2**17
_ROUNDING = 1e-9  # relative error bound of the binomial probabilities for n <= MAX_OUTCOMES, with a safety factor of 3


def outcomes(counts: Sequence[int]) -> int:
    """Return the number of distinct outcomes if the randomised response with index i is repeated counts[i] times."""
    return math.prod(n + 1 for n in counts)


def composed_responses(epsilons: Sequence[float], counts: Sequence[int]) -> Envelope:
    """Compose counts[i] randomised responses with epsilons[i], for all i, and return the exact trade-off function."""
    # privacy losses log q/p of the outcomes, and logarithms of their probabilities under Q
    loss, log_mass = np.zeros(1), np.zeros(1)
    for epsilon, n in zip(epsilons, counts, strict=True):
        right = np.arange(n + 1.0)
        log_binomial = log_choose(n, right)
        one = log_binomial - right * np.logaddexp(0, -epsilon) - (n - right) * np.logaddexp(0, epsilon)
        loss = np.add.outer(loss, (2 * right - n) * epsilon).ravel()
        log_mass = np.add.outer(log_mass, one).ravel()
    order = np.argsort(loss)[::-1]
    loss, log_mass = loss[order], log_mass[order]
    supporting = _profile_at(loss, log_mass, loss[loss >= 0])
    return Envelope(supporting, supporting)


def _profile_at(loss: Array, log_mass: Array, slopes: Array) -> SupportingLines:
    """Return delta(s), the sum over losses l > s of (1 - e^(s - l)) mass(l).

    Losses and slopes s are in decreasing order.
    """
    q = np.exp(log_mass)
    above = np.cumsum(q)
    # The sum of e^(-l) mass(l) is accumulated in logarithms, because e^(-l) may overflow.
    below = np.logaddexp.accumulate(log_mass - loss)
    gap = above[: len(slopes)] - np.exp(slopes + below[: len(slopes)])
    # The rounding error of a difference is bounded relative to its first term.
    gap = np.maximum(gap, 0.0) + _ROUNDING * above[: len(slopes)]
    gap[0] = 0.0  # delta is 0 at the largest privacy loss
    return SupportingLines.hull(slopes, gap)
