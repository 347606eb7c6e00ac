"""Worst-case laws of the right guesses of `ranks`, and bounds of their tails.

Let T be a statistic that does not fall when a d1 is exchanged with a d0 just above it, nor when a wrong guess becomes
right.

**Theorem (independent scores).**  Let the scores of n1 runs on d1 and of n0 runs on d0 be independent, or those of
canaries given which n1 of them were included, each depending on its own inclusion only.  All sets of n1 canaries must
be equally likely, as for coins or for one random set, but not for a fixed number in each of several runs.  Under the
claim f, P[T >= t] is at most its value if scores of d0 are independent uniform numbers, those of d1 have the
distribution function 1 - f, and small numbers are ranked first.  *Proof.*  That of `inference.scores.runs`, given n1.

The same holds for each f' <= f.  If f' is a polygon, the uniform numbers fall into its segments.  Likelihood ratios are
constant on a segment, so the order inside it is that of a random permutation.

**Theorem (any dependence).**  Let each of m canaries be included by an independent coin with probability pi, and let
everything else depend on the coins in any way that is (epsilon, delta)-DP for each canary.  The guesses depend on the
output only, and a fixed number of them is "included".  Let the logit of q be epsilon + logit(pi) for these guesses, and
epsilon - logit(pi) for the others.  Let the right guesses be independent with these probabilities under P_q.  Then

    P[T >= t] <= P_q[T >= t] + m delta (pi (1 - q_in) + (1 - pi) (1 - q_out)),

and this is at most E_q[T] / t plus the same term, by Markov's inequality.

*Proof.*  Let A be the event T >= t, x_k = 1 if the guess at rank k is right, and D_k = P_q[A | x_1 ... x_{k-1}, 1] -
P_q[A | x_1 ... x_{k-1}, 0], which is in [0, 1].  A telescoping sum gives 1_A - P_q[A] = sum_k (x_k - q_k) D_k = sum_k
(1 - q_k) (x_k - o_k (1 - x_k)) D_k, where o_k are the odds of q_k.  D_k depends on the output and on the coins of other
canaries only.  Take one canary, and split its D into the outcomes in which it is guessed to be included and those in
which it is not.  In the first part, x means included, which has the odds pi / (1 - pi) beforehand.  So the claim bounds
the expectation of (x - o (1 - x)) D by pi delta, and in the second part by (1 - pi) delta.

**Corollary (fixed number).**  If a fixed number n1 of canaries is included at random, the bound for coins with pi =
n1 / m, divided by their probability of including n1, is valid.  *Proof.*  A random set has the law of the coins, given
their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from scipy.special import betaincinv, expit

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.comparison import Curve
from dpaudit.claims.envelope import Envelope
from dpaudit.inference.one_run import number_factor, p_value_exact, shape_of
from dpaudit.inference.one_run import p_value as one_run_p_value
from dpaudit.inference.scores.ranks import Blocks, Statistic
from dpaudit.inference.scores.runs import chords, draw_independent, levels
from dpaudit.inference.scores.runs import p_value as runs_p_value
from dpaudit.numerics import Array, Flags, Integers, bisect_integers, kept, read_only

Draw = Callable[[int, np.random.Generator], Integers]
Parts = Callable[[int], Array]  # the parts of a fixed sequence of simulated values of log T, by number

_UNSURE = 1e-3  # share of a level with which a simulated bound is too small at one look
_LOOKS = 8  # largest number of looks of one simulation
_FIRST = 400  # draws after which most questions are answered
_PARTS = 2_000  # number of parts of simulations that are kept, each of 13 kB
_POWER = 0.75  # exponent of the number of guesses
_GUARANTEES = 24  # (epsilon, delta) that stand for a claim


@dataclass(frozen=True, eq=False)
class Observed:
    """A statistic and its observed logarithm."""

    statistic: Statistic
    log: float


@dataclass(frozen=True)
class Independent:
    """Scores that are independent given how many are of d1; `blocks.top` of them are."""

    blocks: Blocks
    factor: ClassVar[float] = 1.0
    finest: ClassVar[float] = 1e-3  # smallest significance that simulations resolve
    most_draws: ClassVar[int] = 25_000  # of one simulation; these draws are dear

    def spent(self, epsilon: float, delta: float) -> float:
        return 0.0

    def tail(self, claim: TradeoffFunction, t: Observed, *, level: float, enough: float, draws: int) -> float:
        """Bound the probability of T under a symmetric claim, as precisely as a comparison with `enough` needs."""
        m, n1 = self.blocks.scores, self.blocks.top
        anyhow = Inclusion(self.blocks, n1 / m, number_factor(m, n1, n1 / m))  # allows all that this law allows
        least = anyhow.by_mean(claim, t)
        if least <= enough:
            return least
        parts = partial(_independent, self.blocks, claim, t.statistic)
        return min(least, tail(parts, t, level=level, enough=enough, draws=draws))

    def critical(self, claim: TradeoffFunction, statistic: Statistic, level: float) -> float:
        """Return a value of log T that refutes a symmetric claim at a level; inf if there is none."""
        return critical(partial(_independent, self.blocks, claim, statistic), level)

    def counted(self, right: Integers) -> Integers:
        """Return the number of right guesses at the top, from counts of shape (..., blocks)."""
        return np.asarray(right[..., self.blocks.high].sum(axis=-1))

    @property
    def guesses(self) -> int:
        """Number of guesses that `counted` counts."""
        return self.blocks.top

    def of_count(self, claim: TradeoffFunction, counted: int) -> float:
        """Return the p-value of a number of right guesses."""
        return runs_p_value(claim, self.blocks.bottom, self.blocks.top, self.blocks.top, counted)

    def draw(self, curve: Curve, draws: int, rng: np.random.Generator) -> Integers:
        """Draw right guesses, (draws, blocks), if scores are independent likelihood ratios on a curve."""
        return draw_independent(self.blocks, *chords(curve), draws, rng)


@kept(256)
def guarantees(claim: TradeoffFunction) -> list[tuple[float, float]]:
    """Return epsilons and deltas of a claim."""
    steep = Envelope.of(claim).steep.thinned(_GUARANTEES)
    return list(zip(steep.slope.tolist(), steep.gap.tolist(), strict=True))


@dataclass(frozen=True)
class Inclusion:
    """Canaries included at random with probability `share` (pi), whose scores depend on each other in any way.

    P-values are multiplied by `factor`: at least 1 / P[coins include the number] if the number was fixed.
    """

    blocks: Blocks
    share: float = 0.5
    factor: float = 1.0
    finest: ClassVar[float] = 1e-4
    most_draws: ClassVar[int] = 200_000

    def log_odds(self, epsilon: float) -> Array:
        """Return the log odds of right guesses in each block."""
        prior = math.log(self.share / (1 - self.share))
        return epsilon + np.where(self.blocks.high, prior, -prior)

    def spent(self, epsilon: float, delta: float) -> float:
        """Return the term of the theorem with delta."""
        wrong = expit(-self.log_odds(epsilon))
        return self.factor * self.blocks.scores * delta * float(self.share * wrong[0] + (1 - self.share) * wrong[-1])

    def tail(self, claim: TradeoffFunction, t: Observed, *, level: float, enough: float, draws: int) -> float:
        """As `Independent.tail`."""
        least = self.by_mean(claim, t)
        if least <= enough:
            return least
        known = guarantees(claim)
        each = level / self.factor / len(known)  # the errors of all simulations together are those of one
        for epsilon, delta in known:
            spent = self.spent(epsilon, delta)
            if spent < min(least, enough or 1.0):
                left = max(enough - spent, 0.0) / self.factor
                parts = partial(_guessed, self, epsilon, t.statistic)
                least = min(least, self.factor * tail(parts, t, level=each, enough=left, draws=draws) + spent)
        return least

    def by_mean(self, claim: TradeoffFunction, t: Observed) -> float:
        """Return the bound of Markov's inequality."""
        known = [(epsilon, spent) for epsilon, delta in guarantees(claim) if (spent := self.spent(epsilon, delta)) < 1]
        if not known:
            return 1.0
        q = expit(np.array([self.log_odds(epsilon) for epsilon, _ in known]))
        chance = self.factor * np.exp(np.minimum(t.statistic.log_mean(q) - t.log, 0.0)) * (1 + 1e-9)
        return min(1.0, float(np.min(chance + [spent for _, spent in known])))

    def critical(self, claim: TradeoffFunction, statistic: Statistic, level: float) -> float:
        """As `Independent.critical`."""
        least = math.inf
        for epsilon, delta in guarantees(claim):
            left = (level - self.spent(epsilon, delta)) / self.factor
            if left > level / self.factor / 10:
                least = min(least, critical(partial(_guessed, self, epsilon, statistic), left))
        return least

    @cached_property
    def _guessed(self) -> Flags:
        """Which blocks are counted: the most extreme ones of both sides, or of the rarer one if coins are biased."""
        both = self.share == 0.5
        wanted = max(math.ceil((2 * min(self.blocks.top, self.blocks.bottom)) ** _POWER), 30)
        last = [int(np.searchsorted(ends, max(1, wanted // (1 + both)), "right")) - 1 for ends in self.blocks.ends]
        high = (np.arange(len(ends) - 1) < n for ends, n in zip(self.blocks.ends, last, strict=True))
        chosen = (self.share <= 0.5, self.share >= 0.5)
        return np.concatenate([each & use for each, use in zip(high, chosen, strict=True)])

    def counted(self, right: Integers) -> Integers:
        """Return the number of right guesses about the most extreme scores, from counts of shape (..., blocks)."""
        return np.asarray(right[..., self._guessed].sum(axis=-1))

    @property
    def guesses(self) -> int:
        """Number of guesses that `counted` counts."""
        return int(self.blocks.sizes[self._guessed].sum())

    def of_count(self, claim: TradeoffFunction, counted: int) -> float:
        """Return the p-value of a number of right guesses about the most extreme scores.

        Theorem:
            For fair coins, it is that of `inference.one_run`.  For others, the guesses are about the rarer side, whose
            share is pi.  (1) of that module then holds with epsilon + logit(pi) and pi delta, because the
            flip of a coin has these odds, and `p_value_exact` follows from its first inequality.
        """
        m, rare = self.blocks.scores, min(self.share, 1 - self.share)
        if rare == 0.5:
            return min(1.0, self.factor * one_run_p_value(claim, m, self.guesses, counted))
        shape = shape_of(claim)
        epsilon = shape.epsilon + math.log(rare / (1 - rare))
        found = p_value_exact(epsilon, rare * shape.delta, m, self.guesses, counted)
        return min(1.0, self.factor * float(np.min(found)))

    def draw(self, curve: Curve, draws: int, rng: np.random.Generator) -> Integers:
        """As `Independent.draw`; scores of canaries are independent, too."""
        included = rng.binomial(self.blocks.scores, self.share, size=draws)
        return draw_independent(self.blocks, *chords(curve), draws, rng, included)


Law = Independent | Inclusion


@kept(_PARTS)
def _independent(blocks: Blocks, claim: TradeoffFunction, statistic: Statistic, part: int) -> Array:
    return simulated(partial(draw_independent, blocks, *levels(claim)), statistic, part)


@kept(_PARTS)
def _guessed(law: Inclusion, epsilon: float, statistic: Statistic, part: int) -> Array:
    blocks, q = law.blocks, expit(law.log_odds(epsilon))

    def drawn(draws: int, rng: np.random.Generator) -> Integers:
        return rng.binomial(blocks.sizes, q, size=(draws, len(blocks.sizes)))

    return simulated(drawn, statistic, part)


def simulated(drawn: Draw, statistic: Statistic, part: int) -> Array:
    """Return a part of a sequence of simulated values of log T, which depends on nothing observed."""
    blocks = statistic.blocks
    rng = np.random.default_rng([blocks.top, blocks.bottom, part])
    return read_only(statistic.log(drawn((1, 3, 4)[min(part, 2)] * _FIRST, rng)))


def tail(parts: Parts, t: Observed, *, level: float, enough: float, draws: int) -> float:
    """Bound the probability of at least the observed T by simulation.

    It is a Clopper-Pearson upper bound plus the probability that it is too small at any look, at most 0.8 % of the
    level.  The simulation ends once it is clear on which side of `enough` the probability is; 0 means never.
    """
    unsure = _UNSURE * level
    made, looks, highest = 0, 0, 1.0
    while made < draws and looks < _LOOKS:
        made, looks = min(max(4 * made, _FIRST), draws), looks + 1
        reached = int(np.count_nonzero(_first(parts, made) >= t.log - 1e-9))
        highest = _upper(reached, made, unsure) + _LOOKS * unsure
        lowest = float(betaincinv(reached, made - reached + 1, unsure)) if reached else 0.0
        if enough and not lowest <= enough < highest:
            break
    return min(1.0, highest)


def _first(parts: Parts, number: int) -> Array:
    last = math.ceil(number / _FIRST / 4) if number > _FIRST else 0
    return np.concatenate([parts(k) for k in range(1 + last)])[:number]


def critical(parts: Parts, level: float) -> float:
    """Return about the least log T for which the bound of `tail` is at most a level; inf if there is none."""
    draws, unsure = min(max(1_000, math.ceil(15 / level)), 20_000), _UNSURE * level
    values = np.sort(_first(parts, draws))
    made = draws_for(level)
    reached = bisect_integers(
        lambda n: _upper(n, made, unsure) + _LOOKS * unsure <= level, inside=0, outside=made
    ).inside
    place = draws - reached * draws // made
    above = values[values > values[place - 1] + 1e-9] if place else values
    return float(above[0]) if len(above) else math.inf


def _upper(reached: int, made: int, unsure: float) -> float:
    return 1.0 if reached == made else float(betaincinv(reached + 1, made - reached, 1 - unsure))


def draws_for(significance: float) -> int:
    """Return the number of draws that bounds of tails at a significance need."""
    return math.ceil(1_000 / math.sqrt(significance))
