"""Randomised responses in a row: the exact composition of pure claims.

n mechanisms that are epsilon-DP are together as private as n randomised responses (Kairouz, Oh & Viswanath 2015,
"The composition theorem for differential privacy", Thm 3.3; of different epsilons: Murtagh & Vadhan 2016): f is a
polygon whose slopes are the possible sums of +-epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.claims.envelope import Envelope, SupportingLines
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.binomials import log_choose

MAX_OUTCOMES = 2**17  # different outcomes up to which this is done
_ROUNDING = 1e-9  # relative; three times the error of the binomial probabilities for n below MOST


def outcomes(counts: Sequence[int]) -> int:
    """How many different outcomes there are, one response being asked counts[i] times."""
    return math.prod(n + 1 for n in counts)


def composed_responses(epsilons: Sequence[float], counts: Sequence[int]) -> Envelope:
    """f of counts[i] randomised responses with epsilons[i] > 0, for every i."""
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
    """delta(s) = sum over losses l > s of (1 - e^(s - l)) mass; both in decreasing order."""
    q = np.exp(log_mass)
    above = np.cumsum(q)
    # sum of e^(-l) mass over the losses seen so far, as a logarithm: e^(-l) may overflow
    below = np.logaddexp.accumulate(log_mass - loss)
    gap = above[: len(slopes)] - np.exp(slopes + below[: len(slopes)])
    # rounding of a difference: relative to what it is the difference of
    gap = np.maximum(gap, 0.0) + _ROUNDING * above[: len(slopes)]
    gap[0] = 0.0  # no loss is larger than the largest
    return SupportingLines.hull(slopes, gap)
