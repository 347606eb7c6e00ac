"""The part of the evidence that late bets have counted; see `inference.sequential.late_bets`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.sequential.late_bets import LEAST_LOG_E, MOST_STAGES, Forecast
from dpaudit.inference.sequential.strategy import Strategy
from dpaudit.numerics.arrays import Array
from dpaudit.result.histograms import Counts, check_trials, dense, sparse
from dpaudit.values import Json, JsonObject

_ROUNDING = 1e-6  # difference of log-wealth, and relative difference of probabilities, that may be rounding errors
_NO_MOMENT = "evidence must have counts at its peak that its late bets can have passed"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """Outputs that were counted while all wealth was on one bet and one pair."""

    pair: int  # index of the pair
    bet: int  # index of the bet in `strategy`
    left: int  # number of trials that were left when the bet was chosen
    counts: Counts  # counts of outputs of d0 and d1 of the pair; shape (2, BINS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LateBets:
    """The counts before the first late bet, and the late bets."""

    before: Counts  # counts of all pairs before the first late bet; shape (pairs, 2, BINS)
    lost: tuple[int, ...]  # indices of the pairs whose wealth was 0 before the first late bet
    stages: tuple[Stage, ...]  # at least one; all but the last are complete

    @property
    def counts(self) -> Counts:
        """The counts of all outputs; shape (pairs, 2, BINS)."""
        total = self.before.copy()
        for stage in self.stages:
            total[stage.pair] += stage.counts
        return total

    def wealth_on(
        self, bets: Strategy, counts: Counts, lost: Collection[int], *, coin_selected: bool
    ) -> Callable[[TradeoffFunction], float]:
        """Return a function that maps a claim to the log-wealth at a moment of the audit."""
        parts = self.until(counts)
        if parts is None:
            return bets.wealth_on(counts, lost, coin_selected=coin_selected)
        if not set(lost) <= set(self.lost):  # all wealth was on the pair on which a run failed
            return lambda claim: -math.inf
        early = bets.wealth_on(self.before, self.lost, coin_selected=coin_selected)

        def log_e(claim: TradeoffFunction) -> float:
            prices = bets.log_prices(claim)
            return early(claim) + sum(_gain(bets, prices, stage, coin_selected=coin_selected) for stage in parts)

        return log_e

    def until(self, counts: Counts) -> tuple[Stage, ...] | None:
        """Return the stages until a moment, the last one with its counts until then; None before the first late bet."""
        total, made = counts.sum(), self.before.sum()
        if total <= made:
            if np.any(counts > self.before):
                raise ValueError(_NO_MOMENT)
            return None
        rest, at = counts - self.before, 0
        while at < len(self.stages) - 1 and made + self.stages[at].counts.sum() < total:
            stage = self.stages[at]
            rest[stage.pair] -= stage.counts
            made += stage.counts.sum()
            at += 1
        stage = self.stages[at]
        last = rest[stage.pair].copy()
        rest[stage.pair] = 0
        if np.any(rest) or np.any(last < 0) or np.any(last > stage.counts):
            raise ValueError(_NO_MOMENT)
        return (*self.stages[:at], replace(stage, counts=last))

    def is_chosen(self, plan: Forecast, *, enough: float, allowed: int) -> bool:
        """Return whether the recorded bets are those that the earlier counts choose.

        The first late bet needs half of the trials and enough wealth.  Each bet must be the one on its pair that most
        probably reaches the threshold in the trials that are left.
        """
        bets, coins = plan.bets, plan.coin_selected
        each = 1 if coins else 2  # counted outputs of a trial
        prices = bets.log_prices(plan.claim)
        counts = self.before.copy()
        log_e = bets.wealth_on(self.before, self.lost, coin_selected=coins)(plan.claim)
        left = min(allowed // 2, allowed - int(self.before.sum()) // each)
        if log_e < LEAST_LOG_E - _ROUNDING:
            return False
        for stage in self.stages:
            if stage.left > left or stage.pair in self.lost:
                return False
            own = counts[stage.pair][None]
            gains = bets.gains(prices, own, coin_selected=coins)
            chances = plan.chances(own, gains, needed=enough - log_e, left=stage.left)[0]
            best = int(np.argmax(chances))
            if stage.bet != best and not chances[stage.bet] >= chances[best] * (1 - _ROUNDING) > 0:
                return False
            counts[stage.pair] += stage.counts
            log_e += _gain(bets, prices, stage, coin_selected=coins)
            left = stage.left - int(stage.counts.sum()) // each
        return left >= 0

    def to_json(self) -> JsonObject:
        stages = [
            {"pair": one.pair, "bet": one.bet, "left": one.left, "counts": sparse(one.counts)} for one in self.stages
        ]
        return {"lost": list(self.lost), "stages": stages}

    @classmethod
    def from_json(
        cls, values: Mapping[str, Json], counts: Counts, lost: tuple[int, ...], *, bets: int, coin_selected: bool
    ) -> LateBets:
        """Read late bets."""
        stated = values["stages"]
        if not isinstance(stated, list) or not 0 < len(stated) <= MOST_STAGES:
            raise ValueError(f"evidence must list 1 to {MOST_STAGES} late bets")
        stages = tuple(_stage(one, len(counts), bets) for one in stated)
        before = counts.copy()
        for stage in stages:
            before[stage.pair] -= stage.counts
            if not coin_selected:
                check_trials(stage.counts)
        if np.any(before < 0):
            raise ValueError("evidence must count no more outputs during late bets than in all")
        lefts = [stage.left for stage in stages]
        if lefts != sorted(lefts, reverse=True):
            raise ValueError(f"evidence must list late bets in their order, but {lefts} trials were left")
        return cls(before=before, lost=lost, stages=stages)


def _stage(stated: Json, pairs: int, bets: int) -> Stage:
    for name, least, most in (("pair", 0, pairs - 1), ("bet", 0, bets - 1), ("left", 1, 2**53)):
        value = stated[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{name} of a late bet must be between {least} and {most:,}, got {value!r}")
    return Stage(pair=stated["pair"], bet=stated["bet"], left=stated["left"], counts=dense(stated["counts"]))


def _gain(bets: Strategy, prices: Array, stage: Stage, *, coin_selected: bool) -> float:
    """Return the change in log-wealth of a stage under the claim with the given log-prices, nats."""
    return float(bets.gains(prices, stage.counts[None], coin_selected=coin_selected)[0, stage.bet])
