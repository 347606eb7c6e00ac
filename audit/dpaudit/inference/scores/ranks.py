"""Scores in their order: right guesses from both ends, and a mixture of likelihood ratios of them.

All m scores are sorted, and ties are broken at random.  Each of the `top` highest scores is guessed to be of d1, or of
an included canary, and each of the others to be of d0.  The ranks of both parts are divided into blocks that grow from
the end inwards.  The data are the numbers of right guesses in the blocks.

A reference gives the log odds of a right guess in each block.  The statistic is a mixture over alternatives k,

    T = sum_k w_k prod_blocks (p_k / q)^right ((1 - p_k) / (1 - q))^wrong,

where q are the probabilities of the reference, and the log odds of p_k are those of q plus l_k.  Here l_k >= 0 does not
rise from the end of a part inwards.  The alternatives are of two kinds:

1. (weight 0.6) Scores N(mu, 1) and N(0, 1), for 14 values of mu: the log odds are the posterior ones at the rank if
   they exceed those of the reference, but at most those of 4 m scores to 1 before the prior odds.
2. (weight 0.4) In the first blocks of both parts, or of one, l_k is a constant that makes right guesses 2.5 standard
   deviations more frequent, but leaves 0.3 wrong guesses.

**Theorem.**  T does not fall when a d1 is exchanged with a d0 just above it, and does not fall when a wrong guess
becomes right.

*Proof.*  Let l_i be the value of l_k at rank i.  The exchange of ranks i and i + 1 multiplies the
product by e^(l_i - l_{i+1}) at the top, by e^(l_{i+1} - l_i) at the bottom, and by e^(l_i + l_{i+1}) at the border.
None of these is below 1.  A guess that becomes right multiplies the product by e^(l_i).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import expit, logit, ndtr

from dpaudit.numerics import Array, Flags, Integers, read_only

_GROWTH = 1.3  # ratio of the sizes of successive blocks
_MEANS = tuple(np.geomspace(0.25, 7, 14).tolist())
_GAUSSIAN = 0.6  # weight of the Gaussian alternatives; 0.5 to 0.8 change median bounds by at most 0.08
_STEPS = (((True, True), 0.2), ((True, False), 0.13), ((False, True), 0.07))  # parts with better guesses, and weights
_AHEAD = 2.5  # standard deviations


@dataclass(frozen=True)
class Blocks:
    """Blocks of ranks: first those of the `top` highest scores, from the highest, then the others, from the lowest."""

    top: int
    bottom: int

    @property
    def scores(self) -> int:
        return self.top + self.bottom

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """Numbers of scores of each part before each block, and at the end."""
        return _ends(self.top), _ends(self.bottom)

    @cached_property
    def sizes(self) -> Integers:
        return np.concatenate([np.diff(ends) for ends in self.ends])

    @cached_property
    def high(self) -> Flags:
        """Whether each block is at the top."""
        return np.arange(len(self.sizes)) < len(self.ends[0]) - 1

    @cached_property
    def prior(self) -> Array:
        """Logarithms of the prior odds that the guesses of each block are right."""
        return np.where(self.high, 1.0, -1.0) * math.log(self.top / self.bottom)

    @cached_property
    def downwards(self) -> list[tuple[int, int]]:
        """Each block from the highest scores to the lowest, and the number of scores up to its end."""
        order = np.concatenate([np.flatnonzero(self.high), np.flatnonzero(~self.high)[::-1]])
        return list(zip(order.tolist(), np.cumsum(self.sizes[order]).tolist(), strict=True))

    def right(self, of_d1: Flags) -> Integers:
        """Count the right guesses of each block; `of_d1` belongs to the scores from the highest to the lowest."""
        high = np.concatenate([[0], np.cumsum(of_d1[: self.top])])
        low = np.concatenate([[0], np.cumsum(~of_d1[self.top :][::-1])])
        return np.concatenate([np.diff(high[self.ends[0]]), np.diff(low[self.ends[1]])]).astype(np.int64)


@lru_cache(256)
def _ends(number: int) -> Integers:
    ends, size = [0, 1], 1.0
    while ends[-1] < number:
        size = max(size * _GROWTH, size + 1)
        ends.append(min(round(size), number))
    found = np.array(ends)
    found.flags.writeable = False
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """The statistic T of a reference."""

    blocks: Blocks
    gains: Array  # l_k, (alternatives, blocks)
    constants: Array  # log weights, plus the log likelihood ratio if all guesses are wrong, (alternatives,)

    @classmethod
    def of(cls, blocks: Blocks, reference: Array) -> Statistic:
        """Return the statistic of the log odds of a right guess in each block."""
        high, sizes = blocks.high, blocks.sizes
        capped = np.minimum(posteriors(blocks, *_MEANS), math.log(4 * blocks.scores)) + blocks.prior
        gains = []
        for gain in np.maximum(capped - reference, 0.0):
            if gain.max() > 1e-3:  # the largest function below the gain that does not rise inwards
                gains.append(np.concatenate([np.minimum.accumulate(gain[high]), np.minimum.accumulate(gain[~high])]))
        gains = gains or [np.zeros(len(sizes))]
        weights = [_GAUSSIAN / len(gains)] * len(gains)
        place = np.concatenate([np.arange(len(ends) - 1) for ends in blocks.ends])
        for parts, weight in _STEPS:
            chosen, steps = np.where(high, *parts), []
            for number in range(2, int(place[chosen].max()) + 2):
                better = chosen & (place < number)
                r = sizes[better].sum()
                if r >= 4:  # a step of fewer guesses says little
                    q = float(sizes[better] @ expit(reference[better]) / r)
                    p = min(q + _AHEAD * math.sqrt(q * (1 - q) / r), 1 - 0.3 / r)
                    steps.append(np.where(better, max(float(logit(p) - logit(q)), 0.0), 0.0))
            gains += steps
            weights += [weight / max(1, len(steps))] * len(steps)
        l_k, shares = np.array(gains), np.array(weights)
        wrong = np.logaddexp(0.0, reference) - np.logaddexp(0.0, reference + l_k)
        return cls(blocks, l_k, np.log(shares / shares.sum()) + wrong @ sizes)

    def log(self, right: Integers) -> Array:
        """Return log T of right guesses of shape (..., blocks)."""
        each = right @ self.gains.T
        each += self.constants
        largest = each.max(axis=-1, keepdims=True)
        each -= largest
        return np.asarray(largest[..., 0] + np.log(np.exp(each, out=each).sum(axis=-1)))

    def log_mean(self, q: Array) -> Array:
        """Return log E[T] if right guesses are independent, with probabilities of shape (..., blocks)."""
        chance = q[..., None, :]
        each = self.constants + np.log(1 - chance + chance * np.exp(self.gains)) @ self.blocks.sizes
        return np.asarray(np.logaddexp.reduce(each, axis=-1))


@lru_cache(512)
def posteriors(blocks: Blocks, *means: float) -> Array:
    """Return log likelihood ratios of right and wrong guesses at block middles, (means, blocks), for normal scores."""
    inner = [np.sqrt(np.maximum(ends[:-1], 0.25 * ends[1:]) * ends[1:]) for ends in blocks.ends]
    share = np.concatenate(inner) / blocks.scores
    from_below = np.where(blocks.high, 1 - share, share)
    x = np.linspace(-9, 16, 50_001)
    ratios = []
    for mean in means:
        below = (blocks.bottom * ndtr(x) + blocks.top * ndtr(x - mean)) / blocks.scores
        ratios.append(np.where(blocks.high, 1, -1) * (mean * np.interp(from_below, below, x) - mean * mean / 2))
    return read_only(np.array(ratios))
