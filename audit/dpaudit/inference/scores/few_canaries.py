"""The law of right guesses about both sides, if scores are independent likelihood ratios and there are few canaries.

An independent fair coin decides whether each of m canaries is included.  For a number r of guesses, the r // 2 lowest
scores are guessed "left out", and the r - r // 2 highest are guessed "included".  There may be several numbers r; V is
the sum of their right guesses.  In contrast, the guesses of `confident` need not be half on each side.

**Ranks.**  Let W be the rank of a canary's score in its law, from 0 to 1, with ties broken at random.  W is uniform,
and g(w) = P[included | W = w] rises with w.  For a symmetric curve g(1 - w) = 1 - g(w).  With the share a(u) of
`confident`, the integral c of g from 0 is

    c(x) = a(2 x) / 2    for x <= 1/2,        c(x) = x - 1/2 + c(1 - x)    for x >= 1/2.             (1)

**Theorem.**  Divide (0, 1) into cells.  Let V' be the right guesses if canaries of one cell are ordered at random, so
that each of them is included with the mean of g over its cell.  Then P[V >= v] >= P[V' >= v] for every v.  If g is
constant on each cell, both are equal.

*Proof.*  The canary in place p, counted from the lowest score, contributes l(p) if it is left out and h(p) if it is
included.  Here l(p) is the number of r with p <= r // 2, which falls with p, and h rises with p.  So V is a constant
plus the sum of d(p) over the included canaries, and d = h - l rises with p.  Given the ranks, the coins are
independent.  Exchange two canaries that are in the order of their ranks, in places p < q.  The probabilities of both
or none being included stay.  If one is included, it is less probably the one in place q after the exchange, and
d(p) <= d(q).  So V becomes stochastically smaller.  Exchanges of this kind lead from the order of the ranks to every
other order in the cell.  In a random order, the coins of the cell are independent with equal probability.  QED

`law` computes V' by passing through the cells from the lowest.  Given the number n of canaries in earlier cells, the
number in the next cell is Binomial(m - n, its share of the remaining width).  Very large numbers are left out, which
makes the tail smaller.  The errors of `confident.wrong_share` change the probability of each coin by at most
`_ROUNDING`, so the tail is reduced by m times this value.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import bdtrc, xlog1py, xlogy

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores.confident import wrong_share
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.binomials import log_choose
from dpaudit.numerics.caches import kept, read_only

FEW = 256
"""Number of canaries from which other approximations are wrong by at most 3 %."""

_CELLS = 48  # even, so that 1/2 is an end of a cell; the tail is then about 0.1 % too small
_ROUNDING = 1e-7  # maximum error of the mean of g over a cell
_RARE = 1e-10  # numbers of canaries in a cell with a smaller tail probability are left out


def at_least(truth: TradeoffFunction, m: int, numbers: tuple[int, ...], right: int) -> float:
    """Return the probability of `right` or more right guesses, rounded down; see the theorem of this module.

    Args:
        truth: The curve of the mechanism, which is made symmetric.
        m: Number of canaries.
        numbers: Numbers of guesses, at most m.
        right: Number of right guesses, summed over all numbers of guesses.
    """
    if right <= 0:
        return 1.0
    return min(1.0, max(0.0, float(law(truth, m, numbers)[right:].sum()) - m * _ROUNDING))


@kept(64)  # an audit of several runs needs many tails of few laws
def law(truth: TradeoffFunction, m: int, numbers: tuple[int, ...]) -> Array:
    """Return the probabilities of V' = 0, 1, ..., sum(numbers); see the theorem of this module.

    Args:
        truth: The curve of the mechanism, which is made symmetric.
        m: Number of canaries.
        numbers: Numbers of guesses, at most m.
    """
    ends, chances = _cells(m)
    included = np.clip(np.diff(_integral(truth.symmetrized(), ends)) / np.diff(ends), 0.0, 1.0)
    size = sum(numbers) + 1
    z = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)  # the law is computed by its Fourier transform
    place = np.arange(m)
    low = z ** np.sum([place < r // 2 for r in numbers], axis=0)[:, None]
    high = z ** np.sum([place >= m - (r - r // 2) for r in numbers], axis=0)[:, None]
    passed = np.zeros((m + 1, len(z)), dtype=np.complex128)  # by number of canaries in the cells so far
    passed[0] = 1.0
    for share, chance in zip(included, chances, strict=True):
        coin, product = low + share * (high - low), passed
        passed = chance[0][:, None] * passed
        for n in range(1, len(chance)):
            product = product[:-1] * coin[n - 1 :]  # by number of canaries in earlier cells
            passed[n:] += chance[n, : m + 1 - n, None] * product
    return read_only(np.maximum(np.fft.irfft(passed[m], size), 0.0))


@lru_cache(maxsize=64)  # the cells do not depend on the claim
def _cells(m: int) -> tuple[Array, Array]:
    """Return the ends of the cells, and P[n canaries in cell j | b in earlier cells], (cells, n, b)."""
    ends = np.linspace(0.0, 1.0, _CELLS + 1)
    widths = np.diff(ends)
    most = int(np.argmax(bdtrc(np.arange(m + 1), m, widths.max()) <= _RARE))
    n, before = np.arange(most + 1)[:, None], np.arange(m + 1)
    rest = m - before
    share = np.minimum(widths / (1 - ends[:-1]), 1.0)[:, None, None]
    share[-1] = 1.0
    fits = n <= rest
    log = log_choose(rest, np.where(fits, n, 0)) + xlogy(n, share) + xlog1py(np.where(fits, rest - n, 0), -share)
    return read_only(ends), read_only(np.where(fits, np.exp(log), 0.0))


def _integral(claim: TradeoffFunction, x: Array) -> Array:
    """Return c(x) of Eq. (1)."""
    return wrong_share(claim, 2 * np.minimum(x, 1 - x)) / 2 + np.maximum(x - 0.5, 0.0)
