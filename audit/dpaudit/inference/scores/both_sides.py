"""Guesses about both sides: half of them that a canary was left out, and half that one was included."""

from __future__ import annotations

from scipy.special import bdtr

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores import confident


def cuts(m: int, guesses: int) -> tuple[int, int]:
    """Return the numbers of lowest scores at which guesses end and begin again.

    Args:
        m: Number of canaries.
        guesses: Number of guesses.
    """
    return guesses // 2, m - (guesses - guesses // 2)


def attained(truth: TradeoffFunction, m: int, guesses: int, right: int) -> float:
    """Return the probability of `right` or more right guesses by independent likelihood ratios, if fair coins decided.

    It is that of the most confident guesses, which are not half on each side.  If coins leave too few canaries on a
    side, some guesses are wrong for certain.  The probability of too many such guesses is subtracted.

    Args:
        truth: The curve of the mechanism.
        m: Number of canaries.
        guesses: Number of guesses.
        right: Number of right guesses.
    """
    if right <= 0:
        return 1.0
    wrong = guesses - right  # maximum number of wrong guesses
    uneven = sum(
        float(bdtr(half - wrong - 1, m, 0.5)) for half in (guesses // 2, guesses - guesses // 2) if half > wrong
    )
    return max(0.0, confident.p_value(truth, m, guesses, right) - uneven)
