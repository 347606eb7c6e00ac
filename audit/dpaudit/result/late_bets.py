"""The part of the evidence that late bets have counted; see `inference.sequential.late_bets`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.grid import BINS
from dpaudit.inference.sequential.late_bets import STAGES, Forecast
from dpaudit.inference.sequential.strategy import Strategy
from dpaudit.result.histograms import Counts, check_trials, dense, sparse
from dpaudit.values import Json, JsonObject

_NO_BETTER = 1e-6  # relative difference between probabilities that may be a rounding error


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
        return self._starts[-1]

    @property
    def _starts(self) -> list[Counts]:
        """Counts of all pairs at the start of each stage, and at the end."""

        def added(counts: Counts, stage: Stage) -> Counts:
            total = counts.copy()
            total[stage.pair] += stage.counts
            return total

        return list(accumulate(self.stages, added, initial=self.before))

    def wealth_on(
        self, bets: Strategy, counts: Counts, lost: Collection[int], *, coin_selected: bool
    ) -> Callable[[TradeoffFunction], float]:
        """Return a function that maps a claim to the log-wealth at a moment of the audit.

        Args:
            bets: The bets of the audit.
            counts: Counts of all pairs at this moment; shape (pairs, 2, BINS).
            lost: Indices of the pairs whose wealth was 0 at this moment.
            coin_selected: Whether only one output of each trial is counted, which a fair coin selects.

        Raises:
            ValueError: If the audit has no moment with these counts.
        """
        parts = self.until(counts)
        if parts is None:
            return bets.wealth_on(counts, lost, coin_selected=coin_selected)
        if not set(lost) <= set(self.lost):  # all wealth was on the pair on which a run failed
            return lambda claim: -math.inf
        early = bets.wealth_on(self.before, self.lost, coin_selected=coin_selected)

        def log_e(claim: TradeoffFunction) -> float:
            prices = bets.log_prices(claim)
            late = (
                bets.gains(prices, stage.counts[None], coin_selected=coin_selected)[0, stage.bet] for stage in parts
            )
            return early(claim) + float(sum(late))

        return log_e

    def until(self, counts: Counts) -> tuple[Stage, ...] | None:
        """Return the stages until a moment, the last one with its counts until then; None before the first late bet.

        Raises:
            ValueError: If the audit has no moment with these counts.
        """
        total, starts = counts.sum(), self._starts
        if total <= self.before.sum():
            return None
        at = max(i for i, start in enumerate(starts[:-1]) if start.sum() < total)
        rest = counts - starts[at]
        stage = self.stages[at]
        others = np.delete(rest, stage.pair, axis=0)
        if np.any(others) or np.any(rest < 0) or np.any(rest[stage.pair] > stage.counts):
            raise ValueError("evidence must have counts at its peak that its late bets can have passed")
        last = Stage(pair=stage.pair, bet=stage.bet, left=stage.left, counts=rest[stage.pair])
        return (*self.stages[:at], last)

    def is_chosen(
        self, bets: Strategy, claim: TradeoffFunction, plan: Forecast, *, enough: float, coin_selected: bool
    ) -> bool:
        """Return whether every bet is the one that most probably reached the threshold, given the earlier counts.

        Args:
            bets: The bets of the audit.
            claim: The audited claim, symmetrized.
            plan: The growth of the bets.
            enough: Log-wealth of the threshold, nats.
            coin_selected: As in `wealth_on`.
        """
        prices = bets.log_prices(claim)
        for stage, start in zip(self.stages, self._starts, strict=False):
            log_e = self.wealth_on(bets, start, self.lost, coin_selected=coin_selected)(claim)
            counts = start[stage.pair][None]
            gains = bets.gains(prices, counts, coin_selected=coin_selected)
            chances = plan.chances(counts, gains, needed=enough - log_e, left=stage.left)[0]
            if not chances[stage.bet] >= chances.max() * (1 - _NO_BETTER):
                return False
        return True

    def to_json(self) -> JsonObject:
        stages = [
            {"pair": one.pair, "bet": one.bet, "left": one.left, "counts": sparse(one.counts)} for one in self.stages
        ]
        return {"lost": list(self.lost), "stages": stages}

    @classmethod
    def from_json(
        cls, values: Mapping[str, Json], counts: Counts, lost: tuple[int, ...], *, bets: int, coin_selected: bool
    ) -> LateBets:
        """Read late bets.

        Args:
            values: The lists that `to_json` returned.
            counts: The counts of all pairs at the end; shape (pairs, 2, BINS).
            lost: The pairs that were lost before the first late bet.
            bets: Number of bets of the audit.
            coin_selected: As in `wealth_on`.

        Raises:
            ValueError: If the stages are not part of the counts, or name a pair or a bet that does not exist.
        """
        stated = values["stages"]
        most = STAGES + len(counts)  # a stage also ends if its pair has no attack left
        if not isinstance(stated, list) or not 0 < len(stated) <= most:
            raise ValueError(f"evidence must list 1 to {most:,} late bets")
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
    most = {"pair": pairs - 1, "bet": bets - 1, "left": 2**53}
    for name, largest in most.items():
        value = stated[name]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
            raise ValueError(f"{name} of a late bet must be between 0 and {largest:,}, got {value!r}")
    counts = dense(stated["counts"])
    if counts.shape != (2, BINS):
        raise ValueError("a late bet must count outputs of d0 and d1")
    return Stage(pair=stated["pair"], bet=stated["bet"], left=stated["left"], counts=counts)
