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

**Direction of errors.**  Simulated probabilities are upper bounds.  They are monotone in the observed value, because
the sequence of simulations is fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.claims.envelope import Envelope
from dpaudit.inference.scores.rank_laws import Assumption, drawn_coins, drawn_independent, draws_for, tail
from dpaudit.inference.scores.ranks import Blocks, Statistic, posteriors
from dpaudit.numerics.caches import kept

_EPSILONS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.26, 0.32, 0.4, 0.48, 0.57, *np.geomspace(0.66, 24, 48).tolist())
_MUS = tuple(np.geomspace(0.02, 12, 80).tolist())
_PARTS = 8  # of the distance between two references, in which the bound is searched
_GUARANTEES = 24  # (epsilon, delta) that stand for a claim
_FREE = 0.5  # share of the significance for deltas, above which a reference is left out


@dataclass(frozen=True)
class Path:
    """Claims that weaken: (epsilon, delta) for a delta, or mu-GDP if delta is None."""

    delta: float | None

    @property
    def references(self) -> tuple[float, ...]:
        return _MUS if self.delta is None else _EPSILONS

    def claim(self, x: float) -> TradeoffFunction:
        return GaussianDP(x) if self.delta is None else ApproxDP(epsilon=x, delta=self.delta)

    def log_odds(self, blocks: Blocks, x: float) -> np.ndarray:
        return blocks.prior + (posteriors(blocks, x)[0] if self.delta is None else x)


@lru_cache(512)
def _statistic(blocks: Blocks, path: Path, x: float) -> Statistic:
    return Statistic.of(blocks, path.log_odds(blocks, x))


@dataclass(frozen=True)
class RankTest:
    """A test of all claims from the right guesses about sorted scores.

    Attributes:
        blocks: The blocks.
        right: The number of right guesses of each block.
        assumption: "independent" or "coins"; see `rank_laws`.
        path: The claims that define S.
        significance: Significance, in (0, 1).
    """

    blocks: Blocks
    right: tuple[int, ...]
    assumption: Assumption
    path: Path
    significance: float

    @cached_property
    def _end(self) -> tuple[float, Statistic, float]:
        """S, the statistic T_j that S implies something about, and its value that S implies."""
        refuted = 0.0
        for e in self.path.references:
            used = _statistic(self.blocks, self.path, e)
            if self.path.delta is not None and self._spent(e, self.path.delta) > _FREE * self.significance:
                continue
            log_t = float(used.log(np.array(self.right)))
            refutes = partial(self._refutes, used, log_t)
            if refutes(e):
                refuted = e
                continue
            inside, outside = 0, _PARTS
            while outside - inside > 1:
                part = (inside + outside) // 2
                if refutes(refuted + (e - refuted) * part / _PARTS):
                    inside = part
                else:
                    outside = part
            return refuted + (e - refuted) * inside / _PARTS, used, log_t
        return refuted, used, log_t

    def _refutes(self, used: Statistic, log_t: float, epsilon: float) -> bool:
        claim = self.path.claim(epsilon)
        return self._tail(used, log_t, claim, self.significance) <= self.significance

    def _spent(self, epsilon: float, delta: float) -> float:
        return self.blocks.scores * delta / (1 + math.exp(epsilon)) if self.assumption == "coins" else 0.0

    def _tail(self, used: Statistic, log_t: float, claim: TradeoffFunction, enough: float) -> float:
        draws = draws_for(self.significance)
        if self.assumption == "independent":
            return tail(partial(drawn_independent, self.blocks, claim), used, log_t, enough=enough, draws=draws)
        least = 1.0
        for epsilon, delta in _profile(claim):
            spent = self._spent(epsilon, delta)
            if spent < min(least, enough or 1.0):
                left = max(enough - spent, 0.0)
                found = tail(partial(drawn_coins, self.blocks, epsilon), used, log_t, enough=left, draws=draws)
                least = min(least, found + spent)
        return least

    def p_value(self, claim: TradeoffFunction, *, enough: float = 0.0) -> float:
        """Return a p-value of a claim."""
        _, used, log_t = self._end
        return self._tail(used, log_t, claim.symmetrized(), enough)

    def refutes(self, claim: TradeoffFunction) -> bool:
        return self.p_value(claim, enough=self.significance) <= self.significance

    def epsilon_lower(self, delta: float) -> float:
        """Return a lower bound of epsilon at a delta."""
        known = self._end[0] if self.path.delta is not None and delta <= self.path.delta else 0.0
        if delta == self.path.delta:
            return known
        return max(known, self.parameter_lower(lambda epsilon: ApproxDP(epsilon=epsilon, delta=delta)))

    def mu_lower(self) -> float:
        return self._end[0] if self.path.delta is None else self.parameter_lower(GaussianDP)

    def parameter_lower(self, family: Callable[[float], TradeoffFunction], precision: float = 5e-3) -> float:
        low, high = 0.0, 1.0
        while self.refutes(family(high)):
            low, high = high, 2 * high
            if high > 64:
                return low
        while high - low > precision:
            middle = (low + high) / 2
            low, high = (middle, high) if self.refutes(family(middle)) else (low, middle)
        return low


@kept(256)
def _profile(claim: TradeoffFunction) -> list[tuple[float, float]]:
    """Return epsilons and deltas of a claim."""
    steep = Envelope.of(claim.symmetrized()).steep.thinned(_GUARANTEES)
    return list(zip(steep.slope.tolist(), steep.gap.tolist(), strict=True))
