"""Guesses about both sides: half of the guesses are "left out", and half are "included"."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, bdtrc

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores import confident, few_canaries
from dpaudit.inference.scores.confident import wrong_share
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.binomials import log_choose

_MANY = 0.7  # share of canaries; with more guesses, guesses against the score are frequent enough to matter
_REACH = 6.0  # standard deviations of the number of canaries that lean to a side; other numbers count as no success


def cuts(m: int, guesses: int) -> tuple[int, int]:
    """Return the numbers of scores below which the guesses "left out" end and the guesses "included" begin.

    Args:
        m: Number of canaries.
        guesses: Number of guesses.
    """
    return guesses // 2, m - (guesses - guesses // 2)


def attained(truth: TradeoffFunction, m: int, guesses: int, right: int) -> float:
    """Return the probability of `right` or more right guesses from independent likelihood ratios under fair coins.

    The probability for fewer than `few_canaries.FEW` canaries is rounded down; see the theorem of that module.

    For more canaries, it is computed for the most confident guesses, which need not be half on each side.  If the coins
    leave too few canaries on a side, some guesses are certainly wrong.  The probability of too many certainly wrong
    guesses is subtracted.  With guesses about nearly all canaries, the result is at most the probability of `split`.
    The result is then too large by at most 3 % where it is near 0.9, as measured.

    Args:
        truth: The curve of the mechanism.
        m: Number of canaries.
        guesses: Number of guesses.
        right: Number of right guesses.
    """
    if right <= 0:
        return 1.0
    if m < few_canaries.FEW:
        return few_canaries.at_least(truth, m, (guesses,), right)
    wrong = guesses - right  # maximum number of wrong guesses
    uneven = sum(
        float(bdtr(half - wrong - 1, m, 0.5)) for half in (guesses // 2, guesses - guesses // 2) if half > wrong
    )
    free = max(0.0, confident.p_value(truth, m, guesses, right) - uneven)
    if not many(m, guesses):
        return free
    chance, (mean,) = split(truth, m, (guesses,))
    return min(free, float(chance @ bdtrc(right - 1, guesses, np.clip(mean / guesses, 0.0, 1.0))))


def many(m: int, guesses: int) -> bool:
    """Return whether the guesses are so many that `split` is needed."""
    return guesses > _MANY * m


def split(truth: TradeoffFunction, m: int, numbers: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the mean number of right guesses, given how many likelihood ratios favour "left out".

    The likelihood ratios of L canaries favour "left out", where L ~ Binomial(m, 1/2).  If L is below the number of
    guesses "left out", the remaining guesses "left out" contradict the likelihood ratio.  They are about the least
    confident canaries of the other side.  The same holds for the guesses "included".  Shares of confidence are
    replaced by their means.  The number of right guesses is then approximately binomial, given L.

    Args:
        truth: The curve of the mechanism.
        m: Number of canaries.
        numbers: Numbers of guesses.

    Returns:
        The probabilities of several L, (n,), and the means for each number of guesses, (len(numbers), n).
    """
    reach = _REACH * np.sqrt(m) / 2
    left = np.arange(max(0, round(m / 2 - reach)), min(m, round(m / 2 + reach)) + 1)
    chance = np.exp(log_choose(m, left) - m * math.log(2))
    f, mean = truth.symmetrized(), np.zeros((len(numbers), len(left)))
    for i, guesses in enumerate(numbers):
        for wanted, own in ((guesses // 2, left), (guesses - guesses // 2, m - left)):
            agreeing, other = np.minimum(wanted, own), m - own
            against = wanted - agreeing
            mean[i] += agreeing - own * wrong_share(f, agreeing / np.maximum(own, 1))
            mean[i] += other * (wrong_share(f, 1.0) - wrong_share(f, 1 - against / np.maximum(other, 1)))
    return chance, mean
