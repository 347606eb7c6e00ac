"""Limits of tests that canaries are independent, and tests of how they were included.

**What one run cannot show.**  *Theorem.*  Let the scores of the canaries of one run be independent and identically
distributed given some common state.  A test of independence that has level s for all independent and identically
distributed canaries detects the dependence with probability at most s.  *Proof.*  Given the state, the test rejects
with probability at most s, and therefore on average as well.

So one run cannot reveal a common state.  For example, a mechanism may treat all records badly with probability 0.4.  In
that case, one run looks the same as under a mechanism that always treats all records badly.  The remedies are
`independence=None` or more runs; `exchangeability` tests what several runs, or the order of canaries, can show.
"""

from __future__ import annotations

import math

from scipy.special import bdtr

from dpaudit.numerics import log_choose


def coins_p_value(n0: int, n1: int) -> float:
    """Return a two-sided p-value of "the coins were fair and independent".

    The test cannot detect a design that includes exactly half of the canaries.
    """
    return float(min(1.0, 2 * bdtr(min(n0, n1), n0 + n1, 0.5)))


def number_factor(m: int, included: int, share: float = 0.5) -> float:
    """Return the factor of p-values that allows for a number of included canaries that was fixed beforehand.

    Fair coins rarely include exactly half of the canaries, but many designs always include half.  Coins with a fixed
    sum depend on each other, so a few right guesses reveal information about the other coins.

    **Theorem.**  Let p be a p-value that is valid if independent coins decide which canaries are included.  If a
    uniformly random set of `included` canaries is included instead, P[p / P[B = included] <= s] <= s for every s, with
    B ~ Binomial(m, share).

    *Proof.*  The random set has the law of the coins, given that `included` canaries are included.  The conditional
    probability of an event is at most its probability under coins, divided by the probability of the condition.

    The factor is at least 1, so the p-value remains valid for coins.

    Args:
        m: Number of canaries that guesses are about.
        included: Number of them that were included.
        share: Probability with which each coin includes its canary, in (0, 1).

    Returns:
        1 / P[B = included], rounded up.
    """
    log_chance = float(log_choose(m, included)) + included * math.log(share) + (m - included) * math.log1p(-share)
    return max(1.0, math.exp(-log_chance) * (1 + 1e-9 + 1e-14 * m))


def half_included(n0: int, n1: int) -> bool:
    """Return whether half of all canaries, rounded up or down, were included, so that the number may be fixed."""
    return abs(n0 - n1) <= 1


def half_by_chance(m: int) -> float:
    """Return the probability with which fair coins include half of m canaries, rounded up or down."""
    return sum(1 / number_factor(m, k) for k in {m // 2, (m + 1) // 2})
