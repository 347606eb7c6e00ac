"""Worst-case laws of the right guesses of `ranks`, and bounds of their tails.

Let T be a statistic that does not fall when a d1 is exchanged with a d0 just above it, nor when a wrong guess becomes
right.

**Theorem (independent scores).**  Let the scores of n1 runs on d1 and of n0 runs on d0 be independent, or those of
canaries given which n1 of them were included, each depending on its own inclusion only.  Under the claim f, P[T >= t]
is at most its value if scores of d0 are independent uniform numbers, those of d1 have the distribution function 1 - f,
and small numbers are ranked first.  *Proof.*  That of `scores.runs`.  It conditions on n1, so the inclusions may be
coins or a random set of fixed size.

The same holds for each f' <= f.  If f' is a polygon, the uniform numbers fall into its segments.  Likelihood ratios are
constant on a segment, so the order inside it is that of a random permutation.

**Theorem (any dependence).**  Let each of m canaries be included by a fair coin, and let everything else depend on the
coins in any way that is (epsilon, delta)-DP for each canary.  The guesses depend on the output only, and half of them
are "included", rounded down.  With q = logistic(epsilon) and independent right guesses of probability q under P_q,

    P[T >= t] <= P_q[T >= t] + m delta / (1 + e^epsilon).

*Proof.*  Let A be the event T >= t, x_k = 1 if the guess at rank k is right, and D_k = P_q[A | x_1 ... x_{k-1}, 1] -
P_q[A | x_1 ... x_{k-1}, 0], which is in [0, 1].  A telescoping sum gives 1_A - P_q[A] = sum_k (x_k - q) D_k =
(1 - q) sum_k (x_k - e^epsilon (1 - x_k)) D_k.  D_k depends on the output and on the coins of other canaries only.  Take
one canary, and split its D into the outcomes in which it is guessed to be included and those in which it is not.  For
each part, the claim bounds the expectation of (x - e^epsilon (1 - x)) D by delta / 2, because the coin is fair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.special import betaincinv, expit

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.envelope import Envelope
from dpaudit.inference.scores.ranks import Blocks, Counts, Statistic
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.caches import kept, read_only

Assumption = Literal["independent", "coins"]
Draw = Callable[[int, np.random.Generator], Counts]

UNSURE = 1e-7  # probability with which a simulated bound is too small at one look; the sequence of simulations is fixed
_LINES = 48  # of a polygon in each direction
_FIRST = 1_000  # draws after which most questions are answered


def drawn_independent(blocks: Blocks, claim: TradeoffFunction, draws: int, rng: np.random.Generator) -> Counts:
    """Draw right guesses, (draws, blocks), in the worst case of independent scores, top of d1 and bottom of d0."""
    of_d0, of_d1 = levels(claim)
    zeros = rng.multinomial(blocks.bottom, of_d0, size=draws).T.copy()
    ones = rng.multinomial(blocks.top, of_d1, size=draws).T.copy()
    right = np.empty((len(blocks.sizes), draws), dtype=np.int64)
    downwards = np.concatenate([np.flatnonzero(blocks.high), np.flatnonzero(~blocks.high)[::-1]])
    first = 0  # no draw has scores of a level before this one left
    for block in downwards:
        need, found = np.full(draws, blocks.sizes[block]), np.zeros(draws, dtype=np.int64)
        for level in range(first, len(ones)):
            taken = np.minimum(zeros[level] + ones[level], need)
            high = rng.hypergeometric(ones[level], zeros[level], taken)
            ones[level] -= high
            zeros[level] -= taken - high
            found += high
            need -= taken
            first += level == first and not np.any(zeros[level] + ones[level])
            if not np.any(need):
                break
        right[block] = found if blocks.high[block] else blocks.sizes[block] - found
    return right.T


def drawn_coins(blocks: Blocks, epsilon: float, draws: int, rng: np.random.Generator) -> Counts:
    """Draw independent right guesses with probability logistic(epsilon), (draws, blocks)."""
    return rng.binomial(blocks.sizes, expit(epsilon), size=(draws, len(blocks.sizes)))


@kept(256)
def levels(claim: TradeoffFunction) -> tuple[Array, Array]:
    """Return the probabilities of the segments of a polygon below f, under d0 and d1, from the largest ratio on."""
    whole = Envelope.of(claim.symmetrized())
    envelope = Envelope(whole.steep.thinned(_LINES), whole.flat.thinned(_LINES))
    steep, flat = envelope.steep, envelope.flat
    alpha, beta = envelope.crossing()
    a = [[0.0, 0.0], np.exp(steep.log_alpha[::-1]), [alpha], 1 - flat.power, [1 - flat.gap[-1], 1.0]]
    b = [[0.0, steep.gap[-1]], steep.power[::-1], [1 - beta], 1 - np.exp(flat.log_alpha), [1.0, 1.0]]
    of_d0, of_d1 = (np.diff(np.concatenate(each)).clip(0) for each in (a, b))
    some = (of_d0 > 0) | (of_d1 > 0)
    return read_only(of_d0[some] / of_d0.sum()), read_only(of_d1[some] / of_d1.sum())


def tail(drawn: Draw, statistic: Statistic, log_t: float, *, enough: float, draws: int) -> float:
    """Bound P[log T >= log_t] by simulation.

    The result is a Clopper-Pearson upper bound, wrong with probability below 1e-6.  The simulation
    ends as soon as it is clear on which side of `enough` the probability is; 0 means that all draws are made.
    """
    blocks = statistic.blocks
    rng = np.random.default_rng([blocks.top, blocks.bottom])
    made = reached = 0
    while made < draws:
        more = min(3 * made or _FIRST, draws - made, 10**7 // len(blocks.sizes))
        reached += int(np.count_nonzero(statistic.log(drawn(more, rng)) >= log_t - 1e-9))
        made += more
        if enough and not lower(reached, made) <= enough < upper(reached, made):
            break
    return upper(reached, made)


def upper(reached: int, made: int) -> float:
    return 1.0 if reached == made else float(betaincinv(reached + 1, made - reached, 1 - UNSURE))


def lower(reached: int, made: int) -> float:
    return 0.0 if reached == 0 else float(betaincinv(reached, made - reached + 1, UNSURE))


def draws_for(significance: float) -> int:
    """Return the number of draws that bounds of tails at a significance need."""
    return math.ceil(7_000 / math.sqrt(significance))
