"""Guesses about both sides: half of the guesses are "left out", and half are "included".

An independent fair coin decides whether each of m canaries is included.  For a number r of guesses, the r // 2 lowest
scores are guessed "left out", and the r - r // 2 highest are guessed "included".  There may be several numbers r; V is
the sum of their right guesses.  This module computes the law of V if scores are independent likelihood ratios.  In
contrast, the guesses of `confident` need not be half on each side.

**Ranks.**  Let W be the rank of a canary's score in its law, from 0 to 1, with ties broken at random.  W is uniform,
and g(w) = P[included | W = w] rises with w.  For a symmetric curve g(1 - w) = 1 - g(w).  With the share a(u) of
`confident`, the integral c of g from 0 is

    c(x) = a(2 x) / 2    for x <= 1/2,        c(x) = x - 1/2 + c(1 - x)    for x >= 1/2.             (1)

**Theorem.**  A cut is the rank of the last canary that belongs to a number of guesses, on one of the two sides.  Given
all cuts, each canary between two neighbouring cuts x < y is included with probability (c(y) - c(x)) / (y - x).  The
canary at a cut x is included with probability g(x).  All of these events are independent.

*Proof.*  The ranks are independent uniform numbers.  Given some of their order statistics, the ranks between two of
these are independent and uniform between them.  The coins are independent given the ranks.  QED

V is simulated by this theorem: cuts are sums of exponential variables, and the right guesses between them are binomial.
The time does not depend on m.  The random numbers are always the same, so equal arguments give equal results.  For the
canary at a cut, g is rounded to the unfavourable side.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv, ndtr

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores.confident import wrong_share
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.caches import kept, read_only

_DRAWS = 40_000
_ERRORS = 3.0  # standard deviations of a normal variable; reduces a probability near 0.9 by about 0.5 %
_KNOTS = 2_000  # c is interpolated between these points; the error is below 1e-6
_SEED = 8_128

MOST_POWER = 0.999
"""Maximum probability that a simulation can show with some room, because it shows at most 0.9998."""


def cuts(m: int, guesses: int) -> tuple[int, int]:
    """Return the numbers of scores below which the guesses "left out" end and the guesses "included" begin.

    Args:
        m: Number of canaries.
        guesses: Number of guesses.
    """
    return guesses // 2, m - (guesses - guesses // 2)


def attained(truth: TradeoffFunction, m: int, numbers: tuple[int, ...], right: int) -> float:
    """Return the probability of `right` or more right guesses from independent likelihood ratios under fair coins.

    The result is the lower Clopper-Pearson bound of the simulated probability at the level of three standard errors.

    If exactly half of the canaries are included, instead of each with a fair coin, the probability is larger if it is
    near 0.9 or more, as measured in `tests/inference/test_right_guesses.py`.

    Args:
        truth: The curve of the mechanism, which is made symmetric.
        m: Number of canaries.
        numbers: Numbers of guesses, at most m, in ascending order.
        right: Number of right guesses, summed over all numbers of guesses.
    """
    if right <= 0:
        return 1.0
    enough = _DRAWS - int(np.searchsorted(_right_guesses(truth, m, numbers), right))
    return float(betaincinv(enough, _DRAWS - enough + 1, ndtr(-_ERRORS))) if enough else 0.0


@kept(8)  # an audit of several runs needs many tails of one law
def _right_guesses(truth: TradeoffFunction, m: int, numbers: tuple[int, ...]) -> Array:
    """Return simulated values of V, sorted; see the theorem of this module."""
    low, high = zip(*(cuts(m, r) for r in numbers), strict=True)
    places = [0, *low, *(place + 1 for place in reversed(high)), m + 1]  # of the canaries at the cuts, from 1 to m
    rng = np.random.default_rng(_SEED)
    ranks = np.cumsum([rng.standard_gamma(steps, _DRAWS) for steps in np.diff(places)], axis=0)
    ranks = np.concatenate([np.zeros((1, _DRAWS)), ranks / ranks[-1]])
    knots = (1 - np.cos(np.linspace(0, np.pi, _KNOTS))) / 2
    wrong = _integral(truth.symmetrized(), knots)
    left_out = _right_on_one_side(knots, wrong, ranks[: len(low) + 1], np.diff(places[: len(low) + 1]), rng)
    steps = np.diff(places)[::-1][: len(high)]
    included = _right_on_one_side(knots, wrong, 1 - ranks[: -len(high) - 2 : -1], steps, rng)
    return read_only(np.sort(left_out + included))


def _right_on_one_side(knots: Array, wrong: Array, ranks: Array, steps: Array, rng: np.random.Generator) -> Array:
    """Return the right guesses on one side, summed over all numbers of guesses, (draws,).

    By symmetry, guesses "included" have the law of guesses "left out" if ranks are counted from 1 downwards.

    Args:
        knots: Points in [0, 1], ascending.
        wrong: Values of c at the knots.
        ranks: 0 and the cuts of each number of guesses, (numbers + 1, draws), ascending.
        steps: Number of canaries that each cut adds to the previous ones, (numbers,).
        rng: Generator.
    """
    slope = np.diff(wrong) / np.diff(knots)
    total = np.zeros(ranks.shape[1])
    for added, (size, x, y) in enumerate(zip(steps, ranks[:-1], ranks[1:], strict=True)):
        if size:
            between = (np.interp(y, knots, wrong) - np.interp(x, knots, wrong)) / np.maximum(y - x, 1e-300)
            at_cut = slope[np.minimum(np.searchsorted(knots, y), len(slope) - 1)]  # at least g(y), because g rises
            right = rng.binomial(size - 1, 1 - np.clip(between, 0.0, 1.0)) + (rng.random(len(y)) >= at_cut)
            total += (len(steps) - added) * right  # these guesses belong to this number and to all larger ones
    return total


def _integral(claim: TradeoffFunction, x: Array) -> Array:
    """Return c(x) of Eq. (1) for a symmetric claim."""
    return wrong_share(claim, 2 * np.minimum(x, 1 - x)) / 2 + np.maximum(x - 0.5, 0.0)
