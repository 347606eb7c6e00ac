"""The part of the evidence that late bets have counted; see `inference.sequential.late_bets`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.sequential.strategy import Strategy
from dpaudit.numerics.arrays import Array
from dpaudit.result.histograms import Counts, dense, is_whole, sparse
from dpaudit.values import Json, JsonObject


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
            return None
        rest, at = counts - self.before, 0
        while at < len(self.stages) - 1 and made + self.stages[at].counts.sum() < total:
            stage = self.stages[at]
            rest[stage.pair] -= stage.counts
            made += stage.counts.sum()
            at += 1
        stage = self.stages[at]
        return (*self.stages[:at], replace(stage, counts=rest[stage.pair]))

    def to_json(self) -> JsonObject:
        stages = [
            {"pair": one.pair, "bet": one.bet, "left": one.left, "counts": sparse(one.counts)} for one in self.stages
        ]
        return {"lost": list(self.lost), "stages": stages}

    @classmethod
    def from_json(cls, values: Mapping[str, Json], counts: Counts, lost: tuple[int, ...], *, bets: int) -> LateBets:
        """Read late bets."""
        stages = tuple(_stage(one, len(counts), bets) for one in values["stages"])
        before = counts.copy()
        for stage in stages:
            before[stage.pair] -= stage.counts
        if np.any(before < 0):
            raise ValueError("evidence must count no more outputs during late bets than in all")
        return cls(before=before, lost=lost, stages=stages)


def _stage(stated: Json, pairs: int, bets: int) -> Stage:
    for name, most in (("pair", pairs - 1), ("bet", bets - 1)):
        if not is_whole(stated[name], most):
            raise ValueError(f"{name} of a late bet must be between 0 and {most:,}, got {stated[name]!r}")
    return Stage(pair=stated["pair"], bet=stated["bet"], left=int(stated["left"]), counts=dense(stated["counts"]))


def _gain(bets: Strategy, prices: Array, stage: Stage, *, coin_selected: bool) -> float:
    """Return the change in log-wealth of a stage under the claim with the given log-prices, nats."""
    return float(bets.gains(prices, stage.counts[None], coin_selected=coin_selected)[0, stage.bet])
