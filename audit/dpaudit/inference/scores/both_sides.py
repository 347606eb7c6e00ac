"""Guesses about both sides: half of the guesses are "left out", and half are "included".

An independent fair coin decides whether each of m canaries is included.  For a number r of guesses, the r // 2 lowest
scores are guessed "left out", and the r - r // 2 highest are guessed "included".  There may be several numbers r; V is
the sum of their right guesses.  This module computes the law of V if scores are independent likelihood ratios.  In
contrast, the guesses of `confident` need not be half on each side.

**Ranks.**  Let W be the rank of a canary's score in its law, from 0 to 1, with ties broken at random.  W is uniform,
and g(w) = P[included | W = w] rises with w.  For a symmetric curve g(1 - w) = 1 - g(w).  With the share a(u) of
`confident`, the integral c of g from 0 is

    c(x) = a(2 x) / 2    for x <= 1/2,        c(x) = x - 1/2 + c(1 - x)    for x >= 1/2.             (1)

For any other curve h, a cut with type I error alpha has the rank x, and h(alpha) / 2 of all canaries are included and
below the cut:

    c(x) = h(alpha) / 2    with    1 - alpha + h(alpha) = 2 x.                                         (2)

If ranks are counted from 1 downwards, canaries that are left out take the place of the included ones, and the integral
of their probability is x - 1/2 + c(1 - x).  If d0 and d1 are exchanged, the two integrals change places.

**Theorem.**  For each number of guesses there are two cuts: the ranks of the last canary that is guessed "left out",
and of the last canary that is guessed "included", counted from the extremes inwards.  Given all cuts, each canary
between two neighbouring cuts x < y is included with probability (c(y) - c(x)) / (y - x).  The canary at a cut x is
included with probability g(x).  All of these events are independent.

*Proof.*  The ranks are independent uniform numbers.  Given some of their order statistics, the ranks between two of
these are independent and uniform between them.  The coins are independent given the ranks.  QED

V is simulated by this theorem: cuts are sums of exponential variables, and the right guesses between them are binomial.
If a fixed number of canaries is included instead, the law is that of the coins, given their total.  The number of
included canaries in the largest block is then determined by all other numbers.  Its binomial probability is the weight
of the draw.

The time does not depend on m.  The random numbers are always the same, so equal arguments give equal results.  For the
canary at a cut, g is rounded to the unfavourable side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, xlog1py, xlogy

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.operations.pair_curves import Curve, pair_curves
from dpaudit.inference.one_run import check_counts
from dpaudit.inference.scores.confident import wrong_share
from dpaudit.numerics.arrays import Array, Flags, Integers
from dpaudit.numerics.binomials import log_choose
from dpaudit.numerics.bisect import bisect_each
from dpaudit.numerics.caches import kept, read_only

_DRAWS = 40_000
_ERRORS = 3.0  # standard deviations of a normal variable; reduces a probability near 0.9 by about 0.5 %
_STEPS = 50  # bisection steps for Eq. (2); the error is below 1e-15
_KNOTS = (1 - np.cos(np.linspace(0, np.pi, 2_000))) / 2  # c is interpolated between them with an error below 1e-6
_SEED = 8_128
_TIES = 2305_08846  # seed of the permutation that breaks ties between scores

MOST_POWER = 0.999
"""Maximum power of a plan, with some distance to 0.9998, the largest probability that a simulation can show."""


def cuts(m: int, guesses: int) -> tuple[int, int]:
    """Return how many scores are guessed "left out", and how many are not guessed "included"."""
    return guesses // 2, m - (guesses - guesses // 2)


def guess(scores: Array, guesses: int) -> npt.NDArray[np.int8]:
    """Guess "included" (1) for the highest scores and "left out" (-1) for the lowest; 0 means no guess, (m,).

    Ties are broken by a fixed pseudo-random permutation.  Breaking them by position would bias the guesses if all
    included canaries came first.
    """
    m = len(scores)
    check_counts(m, guesses, 0)
    low, high = cuts(m, guesses)
    shuffled = np.random.default_rng(_TIES).permutation(m)
    order = shuffled[np.argsort(scores[shuffled], kind="stable")]
    answers = np.zeros(m, dtype=np.int8)
    answers[order[:low]] = -1
    answers[order[high:]] = 1
    return answers


@kept(1_000)  # audits with equal numbers of canaries and guesses search the same truths
def attained(
    truth: TradeoffFunction, m: int, numbers: tuple[int, ...], right: int, *, included: int | None = None
) -> float:
    """Return the probability of `right` or more right guesses from independent likelihood ratios.

    If the two directions of a pair of datasets have different curves, the smaller probability is returned.  The result
    is the lower Clopper-Pearson bound of the simulated probability at the level of three standard errors.
    For weighted draws, it is computed with their effective number (Kish 1965).
    """
    if right <= 0:
        return 1.0
    return min(_attained(curve, m, numbers, right, included) for curve in pair_curves(truth))


def _attained(curve: Curve, m: int, numbers: tuple[int, ...], right: int, included: int | None) -> float:
    values, weights = _right_guesses(curve, m, numbers, included)
    total = float(weights.sum())
    share = float(weights[np.searchsorted(values, right) :].sum()) / total if total else 0.0
    draws = total**2 / float(weights @ weights) if total else 0.0
    return float(betaincinv(share * draws, (1 - share) * draws + 1, ndtr(-_ERRORS))) if share else 0.0


@kept(8)  # an audit of several runs needs many tails of one law
def _right_guesses(curve: Curve, m: int, numbers: tuple[int, ...], included: int | None) -> tuple[Array, Array]:
    """Return simulated values of V, sorted, and their weights."""
    drawn, rng = _drawn_ranks(m, tuple(sorted(set(numbers)))), np.random.default_rng()
    rng.bit_generator.state = drawn.state
    wrong, mirrored = _integrals(curve)
    counts = [sum(number >= one for number in numbers) for one in sorted(set(numbers))]
    groups = [
        *_groups(drawn.low, wrong, drawn.steps, counts, into=True),
        *_groups(drawn.high, mirrored, drawn.steps_high, counts, into=False),
        _Group(m - numbers[-1], _mean(wrong, *drawn.middle), 0, into=True),
    ]
    solved = max(range(len(groups)), key=lambda i: groups[i].size) if included is not None else len(groups) - 1
    count, total = np.zeros(_DRAWS), np.zeros(_DRAWS)
    for i, group in enumerate(groups):
        if i != solved:
            wrong_guesses = _binomial(rng, group.size, group.chance)
            count += wrong_guesses if group.into else group.size - wrong_guesses
            total += group.weight * (group.size - wrong_guesses)
    if included is None:
        return read_only(np.sort(total)), read_only(np.ones(_DRAWS))
    last = groups[solved]
    failed = included - count if last.into else last.size - (included - count)
    possible = (failed >= 0) & (failed <= last.size)
    n = np.where(possible, failed, 0)
    log: Array = log_choose(last.size, n) + xlogy(n, last.chance) + xlog1py(last.size - n, -last.chance)
    weights = np.where(possible, np.exp(log), 0.0)
    total = total + last.weight * (last.size - n)
    order = np.argsort(total)
    return read_only(total[order]), read_only(weights[order])


def _binomial(rng: np.random.Generator, size: int, chance: Array) -> Array | Integers:
    """Return what `rng.binomial(size, chance)` does, which is slow for a single canary."""
    if size != 1 or not np.all(chance > 0):  # numpy draws no number for a probability of 0
        return rng.binomial(size, chance)
    drawn = rng.random(len(chance))
    return np.where(chance <= 0.5, drawn > 1 - chance, drawn <= chance).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Rank:
    """A simulated rank W in each draw, as a place between two knots."""

    rank: Array
    knot: Integers  # index of the knot below
    share: Array  # share of the way to the next knot

    @classmethod
    def of(cls, rank: Array) -> _Rank:
        knot = np.clip(np.searchsorted(_KNOTS, rank, side="right") - 1, 0, len(_KNOTS) - 2)
        return cls(rank, knot, (rank - _KNOTS[knot]) / (_KNOTS[knot + 1] - _KNOTS[knot]))


@dataclass(frozen=True, slots=True, eq=False)
class _DrawnRanks:
    """Simulated ranks of the cuts, which do not depend on the truth."""

    low: tuple[_Rank, ...]  # 0 and the cuts of the guesses "left out", for ascending numbers of guesses
    high: tuple[_Rank, ...]  # the same for the guesses "included", with ranks that are counted from 1 downwards
    middle: tuple[_Rank, _Rank]  # the last cuts of both sides
    steps: tuple[int, ...]  # number of canaries that each cut of `low` adds to the previous ones
    steps_high: tuple[int, ...]
    state: Any  # state of the generator for the guesses


@lru_cache(maxsize=2)
def _drawn_ranks(m: int, numbers: tuple[int, ...]) -> _DrawnRanks:
    """Draw the ranks of the cuts for different numbers of guesses in ascending order."""
    low, high = zip(*(cuts(m, r) for r in numbers), strict=True)
    places = [0, *low, *(place + 1 for place in reversed(high)), m + 1]  # of the canaries at the cuts, from 1 to m
    steps = np.diff(places).tolist()
    rng = np.random.default_rng(_SEED)
    ranks = np.cumsum([rng.standard_gamma(step, _DRAWS) for step in steps], axis=0)
    ranks = np.concatenate([np.zeros((1, _DRAWS)), ranks / ranks[-1]])
    b = len(numbers)
    return _DrawnRanks(
        low=tuple(map(_Rank.of, ranks[: b + 1])),
        high=tuple(map(_Rank.of, 1 - ranks[: -b - 2 : -1])),
        middle=(_Rank.of(ranks[b]), _Rank.of(ranks[b + 1])),
        steps=tuple(steps[:b]),
        steps_high=tuple(steps[: -b - 1 : -1]),
        state=rng.bit_generator.state,
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """Canaries that are guessed wrong independently and with equal probability."""

    size: int
    chance: Array  # probability of a wrong guess, (draws,)
    weight: int  # how often each of these guesses counts, because several numbers of guesses contain it
    into: bool  # whether a wrong guess means that the canary is included


def _groups(
    ranks: Sequence[_Rank], wrong: Array, steps: Sequence[int], counts: Sequence[int], *, into: bool
) -> Iterator[_Group]:
    """Yield the guesses on one side: those between two cuts, and that at each cut."""
    slope = np.diff(wrong) / np.diff(_KNOTS)
    for size, weight, (x, y) in zip(steps, counts, pairwise(ranks), strict=True):
        if size:
            # the slope to the right of y, which is at least that at y, because the probability rises
            at_cut = slope[np.minimum(y.knot + 1, len(slope) - 1)]
            yield _Group(size - 1, _mean(wrong, x, y), weight, into)
            yield _Group(1, np.clip(at_cut, 0.0, 1.0), weight, into)


def _mean(wrong: Array, x: _Rank, y: _Rank) -> Array:
    """Return the mean of g between the ranks x and y."""
    change = np.diff(wrong)
    first, second = (wrong[at.knot] + at.share * change[at.knot] for at in (x, y))
    return np.clip((second - first) / np.maximum(y.rank - x.rank, 1e-300), 0.0, 1.0)


@kept(8)  # the integrals do not depend on the number of canaries
def _integrals(curve: Curve) -> tuple[Array, Array]:
    """Return c at the knots x, and the same integral for ranks that are counted from 1 downwards."""
    x = _KNOTS
    if isinstance(curve, TradeoffFunction):  # a symmetric claim; Eq. (1)
        wrong = read_only(wrong_share(curve, 2 * np.minimum(x, 1 - x)) / 2 + np.maximum(x - 0.5, 0.0))
        return wrong, wrong

    def below(alpha: Array) -> Flags:
        return np.asarray(1 - alpha + curve.forward(alpha) >= 2 * x)

    alpha = bisect_each(below, np.zeros_like(x), np.ones_like(x), steps=_STEPS).inside
    wrong = read_only(np.clip(x - (1 - alpha) / 2, 0.0, x))  # h(alpha) / 2 by Eq. (2)
    mirrored = read_only(np.clip(x - 0.5 + wrong[::-1], 0.0, x))  # the knots are symmetric about 1/2
    return (mirrored, wrong) if curve.backward else (wrong, mirrored)
