"""Bounds from the order of scores: one test for each epsilon, inverted upwards from 0, and one test for all claims.

Let e_1 < e_2 < ... be fixed, and delta.  The claim (epsilon, delta) with e_{j-1} < epsilon <= e_j is tested with the
statistic T_j of the reference e_j: it is refuted if T_j reaches its critical value c_j(epsilon), the (1 - s)-quantile of
its worst case.  Let S be the supremum of the epsilons up to which all claims are refuted.

**Theorem (S).**  If (epsilon, delta) is true, P[S > epsilon] <= s.
*Proof.*  If S > epsilon, T_j has refuted some claim in (e_{j-1}, e_j] that is weaker than or equal to the true one.  The
critical value of T_j rises with epsilon, so T_j refutes the true claim, too, which has probability at most s.

**Theorem (all claims).**  For a claim f, let p_f(x) be its worst-case probability of S >= x.  Then p_f(S) is a p-value,
and all claims, families and deltas that are refuted at s are false together with probability at least 1 - s.
*Proof.*  S is one statistic, fixed before the scores are seen, so p_f(S) is a p-value of f.  It does not fall as f
falls.  So if any true claim is refuted, the trade-off function of the mechanism is refuted, too.

S >= x implies that T_j, for the j with e_{j-1} < x <= e_j, reaches c_j(x).  The bounds use the probability of the latter.
Claims (epsilon, delta) with epsilon < S are then refuted.  Like T_j, S does not fall when a d1 is exchanged with a d0 just
above it, so the worst case of `rank_laws` is that of S, too.

**Direction of errors.**  All simulated probabilities are upper bounds, and the critical values follow from them.
"""

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
        if delta == self.path.delta:
            return self._end[0]
        return self.parameter_lower(lambda epsilon: ApproxDP(epsilon=epsilon, delta=delta))

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
