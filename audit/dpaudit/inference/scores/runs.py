"""Independent scores: the worst case of any order, and a test from the number of d1 among the highest scores.

There are n0 runs on d0 and n1 runs on d1, all independent.  The scores of all runs are sorted, with ties broken at
random.  Of the r highest scores, k come from d1; r is chosen before the scores are seen.  The cut is a rank, so no
threshold has to be learned and no pilot is needed.  Unlike the test of `fixed.exact_binomial`, this test has no unknown
rate.

**Theorem.**  Let f be the claim and g = 1 - f.  Write down the datasets of all runs, in the order of their scores.  Let
h be any function of this sequence that does not fall when a d1 is exchanged with a d0 just above it.  Let U be uniform,
and let P[W <= a] = g(a).  Under the claim, P[h >= c] is at most its value if the scores of d0 are replaced by
independent copies of U, the scores of d1 by independent copies of W, and small numbers are ranked first.

*Proof.*  By Blackwell's theorem (Dong, Roth & Su 2022, Thm 2) each score is a randomised function of such a copy of U
or W.  Condition on the n0 + n1 numbers, but not on which runs are on d1.  The probability that a given set of n1
numbers is that of d1 is proportional to the product of their likelihood ratios.  These ratios fall as the numbers grow.
The scores put the numbers in some order.  If two neighbours are not in the order of their ratios, exchange their
numbers.  The probability of (d1, d0) then grows at the expense of (d0, d1).  The probabilities of (d0, d0) and (d1, d1)
do not change.  So P[h >= c] does not fall.  A sequence of such exchanges leads to the order of the ratios.  (Hollander,
Proschan & Sethuraman 1977, Ann. Stat. 5, call such functions arrangement increasing.)

**Corollary.**  With U' ~ Beta(r - k + 1, n0 - r + k), the (r - k + 1)-th of n0 uniform numbers,

    P[K >= k] <= E P[Binomial(n1, g(U')) >= k].

*Proof.*  Consider the k-th number of d1.  This number is among the first r if and only if fewer than r - k + 1 numbers
of d0 come before it.

The bound rises as f falls.  So the bound can be inverted along nested families (`families.largest_refuted`).

**Direction of errors.**  The integrand rises with U'.  The sum over cells takes its value at each cell's upper end.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import betainc, betaincinv, ndtr

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.comparison import Curve
from dpaudit.claims.envelope import Envelope
from dpaudit.inference.fixed.binomial import check_count
from dpaudit.inference.scores.ranks import Blocks
from dpaudit.numerics import Array, Integers, kept, read_only

_CELLS = 1000  # number of cells of the law of U'
_NEAR, _FAR = 7.0, 38.0  # range of integration over U' in standard deviations; _FAR for p-values < _TINY
_LINES = 36  # of a polygon in each direction
_TINY = 1e-9  # a p-value below this needs the range _FAR


def p_value(claim: TradeoffFunction, n0: int, n1: int, r: int, k: int) -> float:
    """Return the maximum probability, under a claim, that k or more of the r highest scores are of d1."""
    check_count(r, n0 + n1)
    if not 0 <= k <= min(r, n1):
        raise ValueError(f"between 0 and {min(r, n1)} of {r} high scores must be of d1, got {k}")
    if k <= r - n0 or k == 0:  # always
        return 1.0
    f = claim.symmetrized()
    p = 1.0
    for reach in (_NEAR, _FAR):
        ends, mass = _cells(float(r - k + 1), float(n0 - r + k), reach)
        reached = betainc(float(k), n1 - k + 1.0, np.clip(1 - np.asarray(f.beta(ends)), 0.0, 1.0))
        p = min(p, float(mass @ reached) * (1 + 1e-9) + 1e-300)
        if p > _TINY:
            break
    return p


@lru_cache(maxsize=256)  # the cells do not depend on the claim
def _cells(before: float, after: float, reach: float) -> tuple[Array, Array]:
    """Return the upper ends of the cells of U' and their probabilities."""
    z = np.linspace(-_NEAR, reach, _CELLS)
    upper = np.maximum.accumulate(betaincinv(after, before, ndtr(-z[::-1])))  # 1 - U', which may be tiny
    rest = np.concatenate([[0.0], upper, [1.0]])[::-1]  # 1 - U' at the ends of the cells, descending
    return read_only(1 - rest[1:]), read_only(-np.diff(betainc(after, before, rest)))


@kept(256)
def chords(curve: Curve) -> tuple[Array, Array]:
    """Return the probabilities of the segments of a polygon through points of a curve, which reveals a little less."""
    small = np.geomspace(1e-8, 0.5, 36)
    alpha = np.concatenate([[0.0], small, 1 - small[-2::-1], [1.0]])
    power = np.concatenate([[0.0], np.maximum.accumulate(1 - np.asarray(curve.beta(alpha)))])
    of_d0, of_d1 = np.diff(np.concatenate([[0.0], alpha])), np.diff(power)
    return read_only(of_d0 / of_d0.sum()), read_only(of_d1 / of_d1.sum())


@kept(256)
def levels(claim: TradeoffFunction) -> tuple[Array, Array]:
    """Return the probabilities of the segments of a polygon below a symmetric f, from the largest ratio on."""
    whole = Envelope.of(claim)
    envelope = Envelope(whole.steep.thinned(_LINES), whole.flat.thinned(_LINES))
    steep, flat = envelope.steep, envelope.flat
    alpha, beta = envelope.crossing()
    start, end = np.array([0.0, steep.gap[-1]]), np.array([1 - flat.gap[-1], 1.0])
    a = np.concatenate([[0.0, 0.0], np.exp(steep.log_alpha[::-1]), [alpha], 1 - flat.power, end])
    b = np.concatenate([start, steep.power[::-1], [1 - beta], 1 - np.exp(flat.log_alpha), [1.0, 1.0]])
    of_d0, of_d1 = np.diff(a).clip(0), np.diff(b).clip(0)
    some = (of_d0 > 0) | (of_d1 > 0)
    return read_only(of_d0[some] / of_d0.sum()), read_only(of_d1[some] / of_d1.sum())


def draw_independent(
    blocks: Blocks, of_d0: Array, of_d1: Array, draws: int, rng: np.random.Generator, included: Integers | None = None
) -> Integers:
    """Draw right guesses, (draws, blocks), if scores are independent and sorted by likelihood ratio.

    `of_d0` and `of_d1` are the probabilities of the ratios, from the largest on, and `included` the number of scores of
    d1 in each draw, by default those at the top.
    """
    n1 = np.full(draws, blocks.top) if included is None else included
    rows = np.arange(draws)
    ones = rng.multinomial(n1, of_d1)
    end = np.cumsum(ones + rng.multinomial(blocks.scores - n1, of_d0), axis=1)  # ranks at which likelihood ratios end
    end, of_ones = (np.pad(each, ((0, 0), (1, 0))) for each in (end, np.cumsum(ones, axis=1)))
    right = np.empty((len(blocks.sizes), draws), dtype=np.int64)
    place, rank, found = (np.zeros(draws, dtype=np.int64) for _ in range(3))
    for block, until in blocks.downwards:
        # within the likelihood ratio that the block's last score has, the order is random
        last = place.copy()
        while np.any(behind := end[rows, place] < until):
            place += behind
        before = np.where(place == last, rank, end[rows, place - 1])
        known = np.where(place == last, found, of_ones[rows, place - 1])
        good = of_ones[rows, place] - known
        now = known + rng.hypergeometric(good, end[rows, place] - before - good, until - before)
        right[block] = now - found
        rank, found = np.full(draws, until), now
    low = ~blocks.high
    right[low] = blocks.sizes[low, None] - right[low]
    return right.T
