"""Bounds from the order of scores: one test for each reference, inverted upwards, and one p-value for all claims.

A path is a nested family of claims f_x, which weaken as x > 0 grows, such as (x, delta) for one delta.  References x_1
< x_2 < ... are fixed.  T_j is the statistic of `ranks` whose reference is f_{x_j}.  The claim f_x with x_{j-1} < x <=
x_j is tested with T_j: it is refuted if the worst-case probability of `rank_laws` that T_j is at least as large as
observed is at most s.  References are tried in their order until one is not refuted, the i-th say.  The bound S is the
largest x < x_i that is refuted.

**Theorem (bound).**  If f_x is true, P[S > x] <= s.
*Proof.*  Let x_{j-1} < x <= x_j.  If S > x, then T_j has refuted f_y for some y >= x.  The worst-case probability of
f_x is at most that of f_y, so T_j would refute f_x, which has probability at most s.

**Theorem (all claims).**  For every claim f, the worst-case probability under f that T_i is at least as large as
observed is a p-value.  The claims that these p-values refute at s are all false with probability at least 1 - s,
together with the claims f_x for x < S and all that promise more.

*Proof.*  Order the possible outcomes by (i, T_i), first by i.  Let U be the event that an outcome is at least the
observed one.  A larger i means that T_i refutes f_{x_i}, which it does not, so T_i is then larger than observed.  So U
implies that T_i is at least as large as observed, and the worst-case probability of U, which is a p-value of f, is at
most the probability above.  It does not fall as f falls.  So a true claim is refuted only if the trade-off function F
of the mechanism is.  For the other claims, note that if f_x with x < S is true, F >= f_x, and U implies that all
references before i are refuted: if x <= x_{i-1}, T_j refutes f_x; otherwise, T_i does.  In both cases the p-value of F
by U is at most s.

Like T, the order of outcomes does not fall when a d1 is exchanged with a d0 just above it, or when a wrong guess
becomes right.  So the worst cases of `rank_laws` are those of U.

**One count.**  For significances that simulations cannot resolve, the p-value is that of a number of right guesses,
which also tests all claims jointly.  Without an assumption, a mixture of normal scores is a weak alternative for curved
claims, so the count is the p-value for these, too.  For others, the order of scores gets a share of 0.95 of the
significance (down to 0.5 for a fixed number, where deltas cost the order of scores more), and the count the rest.  All
of this depends on the path, the significance and the numbers of canaries, but not on the scores.

**Direction of errors.**  Simulated probabilities are upper bounds, but for an error probability of 0.8 % of the level
each.  They are monotone in the observed value, because the sequence of simulations is fixed.

**Power.**  `attained` is the probability of a refutation if scores are independent likelihood ratios.  A claim f_x of a
path is refuted if all references below x are refuted and T_j is large enough, where x_j is the first reference from x
on.  The second condition nearly always implies the first, so the power is that of T_j alone.  For other claims, x is
that of the strongest claim of the path that promises less.  A plan is an estimate and no guarantee, but simulated
probabilities are rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import betaincinv, ndtr

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction
from dpaudit.claims.comparison import pair_curves
from dpaudit.inference.scores.families import largest_refuted
from dpaudit.inference.scores.rank_laws import Independent, Law, Observed, draws_for
from dpaudit.inference.scores.ranks import Blocks, Statistic, posteriors
from dpaudit.numerics import bisect_integers, kept

_EPSILONS = (0.03, 0.08, 0.15, 0.24, 0.35, 0.48, *np.geomspace(0.62, 24, 64).tolist())
_MUS, _MANY_MUS = (tuple(np.geomspace(0.03, 12, number).tolist()) for number in (48, 96))
_MANY = 2_000  # number of scores above which bounds of mu are precise enough for close references
_PARTS = 16  # of the distance between two references, in which the bound is searched
_FINAL = 20_000  # draws of a p-value that is stated
_FREE = 0.75  # share of the significance for deltas, above which a reference is left out
_RANKS, _LEAST_RANKS = 0.95, 0.5  # shares of the significance for the order of scores, if the count has the rest


@dataclass(frozen=True)
class Path:
    """Claims that weaken: (epsilon, delta) for a delta, or mu-GDP if delta is None."""

    delta: float | None

    def references(self, scores: int) -> tuple[float, ...]:
        """Return the references for a number of scores."""
        if self.delta is not None:
            return _EPSILONS
        return _MANY_MUS if scores > _MANY else _MUS

    def claim(self, x: float) -> TradeoffFunction:
        return GaussianDP(x) if self.delta is None else ApproxDP(epsilon=x, delta=self.delta)

    def place(self, claim: TradeoffFunction) -> float:
        """Return an x whose claim promises at most as much as a claim of the path's family; inf for other claims."""
        if self.delta is None:
            return claim.mu() if isinstance(claim, GaussianDP) else math.inf
        within = isinstance(claim, PureDP | ApproxDP) and claim.parameters.get("delta", 0.0) <= self.delta
        return float(claim.parameters["epsilon"]) if within else math.inf

    def log_odds(self, blocks: Blocks, x: float) -> np.ndarray:
        return blocks.prior + (posteriors(blocks, x)[0] if self.delta is None else x)


@lru_cache(512)
def statistic_of(blocks: Blocks, path: Path, x: float) -> Statistic:
    return Statistic.of(blocks, path.log_odds(blocks, x))


@dataclass(frozen=True)
class RankTest:
    """A test of all claims from the right guesses of each block under a `law`; `path` and `significance` define S."""

    law: Law
    right: tuple[int, ...]
    path: Path
    significance: float

    @cached_property
    def share(self) -> float:
        """The share of every significance for the order of scores; the count has the rest."""
        if isinstance(self.law, Independent):
            return 1.0 if self.significance >= self.law.finest else 0.0
        if self.path.delta is None or self.significance < self.law.finest * self.law.factor:
            return 0.0
        share = max(_LEAST_RANKS, 1 - (1 - _RANKS) * self.law.factor)
        free = self.law.spent(_EPSILONS[-1], self.path.delta) <= _FREE * share * self.significance
        return share if free else 0.0

    @cached_property
    def references(self) -> list[float]:
        """The references of the path whose test the deltas leave enough significance."""
        if (delta := self.path.delta) is None or not self.share:
            return list(self.path.references(self.law.blocks.scores))
        most = _FREE * self.share * self.significance
        return [one for one in _EPSILONS if self.law.spent(one, delta) <= most]

    def reference(self, claim: TradeoffFunction) -> float:
        """Return the first reference that promises less than a symmetric claim, or the last one."""
        x = claim.mu() if self.path.delta is None else float(claim.epsilon(self.path.delta))
        return next((one for one in self.references if one >= x), self.references[-1])

    def _observed(self, x: float) -> Observed:
        """Return the statistic of a reference with its value."""
        statistic = statistic_of(self.law.blocks, self.path, x)
        return Observed(statistic, float(statistic.log(np.array(self.right))))

    @cached_property
    def _end(self) -> tuple[float, Observed]:
        """S, and the statistic T_i with its value."""
        level = self.share * self.significance
        refuted = 0.0
        for e in self.references:
            t = self._observed(e)
            if self._tail(t, self.path.claim(e), level) <= level:
                refuted = e
                continue

            def inside(part: int, low: float = refuted, high: float = e, t: Observed = t) -> bool:
                return self._tail(t, self.path.claim(low + (high - low) * part / _PARTS), level) <= level

            part = bisect_integers(inside, inside=0, outside=_PARTS).inside
            return refuted + (e - refuted) * part / _PARTS, t
        return refuted, t

    def _tail(self, t: Observed, claim: TradeoffFunction, enough: float, *, roughly: bool = False) -> float:
        draws = min(draws_for(self.significance / self.law.factor), self.law.most_draws)
        draws = draws // 4 if roughly else min(4 * draws, max(draws, _FINAL)) if not enough else draws
        level = self.share * self.significance
        return self.law.tail(claim.symmetrized(), t, level=level, enough=enough, draws=draws)

    def p_value(self, claim: TradeoffFunction, *, enough: float = 0.0, roughly: bool = False) -> float:
        """Return a p-value of a claim, as precisely as a comparison with `enough` needs; 0 means any comparison.

        If `roughly`, there are fewer simulations, so the p-value is a little larger.
        """
        share = self.share
        p = 1.0
        if share > 0 and 0 < self._end[0] >= self.path.place(claim):  # S > 0 refutes it
            p = self.significance
        if share < 1:
            p = min(p, self._of_count(claim.symmetrized()) / (1 - share))
        if share > 0 and p > enough:
            p = min(p, self._tail(self._end[1], claim, share * enough, roughly=roughly) / share)
        return p

    def _of_count(self, claim: TradeoffFunction) -> float:
        return self.law.of_count(claim, int(self.law.counted(np.array(self.right))))

    def epsilon_lower(self, delta: float, *, significance: float) -> float:
        """Return a lower bound of epsilon at a delta, in nats."""

        def family(x: float) -> TradeoffFunction:
            return ApproxDP(epsilon=x, delta=delta)

        if self.path.delta is None or delta > self.path.delta or significance != self.significance:
            return self.parameter_lower(family, significance=significance)
        of_order = self._end[0] if self.share else 0.0  # a bound at a delta is one at each smaller delta
        if self.share == 1:
            return of_order
        level = (1 - self.share) * significance
        return max(of_order, largest_refuted(family, self._of_count, significance=level, precision=1e-3))

    @cached_property
    def most(self) -> float:
        """A reference that S does not exceed, for right guesses only, where refutations are monotone."""
        level = self.share * self.significance

        def refuted(place: int) -> bool:
            x = self.references[place]
            claim = self.path.claim(x)
            if level and self._tail(self._observed(x), claim, level) <= level:
                return True
            count = self._of_count(claim.symmetrized()) if self.share < 1 else 1.0
            return count <= self.significance - level

        first = bisect_integers(refuted, inside=-1, outside=len(self.references) - 1).outside
        return self.references[first]

    def mu_lower(self, *, significance: float) -> float:
        """Return a lower bound of mu."""
        if self.path.delta is None and self.share == 1 and significance == self.significance:
            return self._end[0]
        return self.parameter_lower(GaussianDP, significance=significance)

    def parameter_lower(
        self, family: Callable[[float], TradeoffFunction], *, significance: float, precision: float = 1e-2
    ) -> float:
        """Return the largest refuted parameter of a nested family; see `families.largest_refuted`."""
        return largest_refuted(
            family,
            lambda claim: self.p_value(claim, enough=significance, roughly=True),
            significance=significance,
            precision=precision,
            guess=max(self._end[0], 0.1) if self.share else 1.0,
            step=0.1,
        )


_DRAWS = 400
_ERRORS = 3.0  # standard deviations; reduces a probability near 0.9 by about 5 %
_SEED = 8_128

MOST_POWER = 0.97
"""Maximum power of a plan, with some distance to 0.983, the largest probability that a simulation can show."""


@dataclass(frozen=True, eq=False)
class Needed:
    """What refutes a claim: a value of log T, or a number of right guesses; inf or a number above all if nothing."""

    statistic: Statistic | None
    log_t: float
    largest: float  # log T if all guesses are right
    counted: int


@kept(256)
def needed(law: Law, path: Path, significance: float, claim: TradeoffFunction) -> Needed:
    """Return what refutes a symmetric claim at the significance that defines the path's bound."""
    test = RankTest(law, tuple(law.blocks.sizes.tolist()), path, significance)
    share, few = test.share, law.guesses + 1
    if share < 1:
        level = (1 - share) * significance
        if law.of_count(claim, law.guesses) <= level:
            few = bisect_integers(lambda v: law.of_count(claim, v) <= level, inside=law.guesses, outside=0).inside
    if share == 0:
        return Needed(None, np.inf, 0.0, few)
    used = statistic_of(law.blocks, path, test.reference(claim))
    largest = float(used.log(law.blocks.sizes))
    return Needed(used, law.critical(claim, used, share * significance), largest, few)


@kept(1_000)
def attained(law: Law, found: Needed, truth: TradeoffFunction) -> float:
    """Return the probability that a claim is refuted, the smaller one of both directions; see the module.

    It is the lower Clopper-Pearson bound of the simulated probability at the level of three standard errors.
    """
    least = 1.0
    for curve in pair_curves(truth):
        right = law.draw(curve, _DRAWS, np.random.default_rng(_SEED))
        refuted = law.counted(right) >= found.counted
        if found.statistic is not None:
            refuted |= found.statistic.log(right) >= found.log_t
        n = int(refuted.sum())
        least = min(least, float(betaincinv(n, _DRAWS - n + 1, ndtr(-_ERRORS))) if n else 0.0)
    return least
