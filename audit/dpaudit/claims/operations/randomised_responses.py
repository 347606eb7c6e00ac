"""The exact composition of pure claims, as a composition of randomised responses.

The joint promise of n epsilon-DP mechanisms is that of n randomised responses (Kairouz, Oh & Viswanath 2015, "The
composition theorem for differential privacy", Thm 3.3; for different epsilons: Murtagh & Vadhan 2016).  f is a polygon
whose log-slopes are the possible sums of +-epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.claims.envelope import Envelope, SupportingLines
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.binomials import log_choose

MAX_OUTCOMES = 2**17  # compositions with more distinct outcomes use privacy-loss distributions instead
_ROUNDING = 1e-9  # relative; three times the error of the binomial probabilities for n below MAX_OUTCOMES


def outcomes(counts: Sequence[int]) -> int:
    """Return the number of distinct outcomes if randomised response i is repeated counts[i] times."""
    return math.prod(n + 1 for n in counts)


def composed_responses(epsilons: Sequence[float], counts: Sequence[int]) -> Envelope:
    """Return f of the composition of counts[i] randomised responses with epsilons[i], for all i.

    Args:
        epsilons: Nats, > 0.
        counts: Number of responses for each epsilon, >= 1.
    """
    loss, log_mass = np.zeros(1), np.zeros(1)  # privacy loss log q/p and the log of its probability under Q
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
    """Return delta(s) = sum over losses l > s of (1 - e^(s - l)) mass.  Losses and slopes s are in decreasing order."""
    q = np.exp(log_mass)
    above = np.cumsum(q)
    # Logarithm of the cumulative sum of e^(-l) mass; e^(-l) itself may overflow.
    below = np.logaddexp.accumulate(log_mass - loss)
    gap = above[: len(slopes)] - np.exp(slopes + below[: len(slopes)])
    # The rounding error of the difference is relative to its minuend.
    gap = np.maximum(gap, 0.0) + _ROUNDING * above[: len(slopes)]
    gap[0] = 0.0  # delta is 0 at the largest loss
    return SupportingLines.hull(slopes, gap)
