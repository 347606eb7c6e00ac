"""Late bets of a sequential audit: all wealth on one bet of one pair at a time, before the last trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.sequential.late_bets import LEAST_LOG_E, MOST_STAGES, STAGES, forecast
from dpaudit.inference.sequential.planned import Planned
from dpaudit.inference.sequential.strategy import log_threshold, strategy
from dpaudit.numerics import Array
from dpaudit.result.base_evidence import Counts
from dpaudit.result.sequential_evidence import LateBets, Stage


@dataclass(kw_only=True)
class LateBetting:
    """The choice of late bets, and the wealth since the first of them.

    After half of the trials, all wealth is put on one bet as soon as it is at least e^`LEAST_LOG_E`.
    """

    tested: TradeoffFunction  # the claim, symmetrized
    planned: Planned | None
    confidence: float
    trials: int  # the largest number of trials of the audit
    coin_selected: bool
    _stages: list[Stage] = field(default_factory=list, init=False)
    _before: Counts = field(init=False)  # counts of all pairs before the first late bet
    _lost: tuple[int, ...] = field(default=(), init=False)
    _at: int = field(default=0, init=False)  # number of trials at which the bet is chosen next
    _log_e: float = field(default=0.0, init=False)  # log-wealth at the start of the present stage
    _start: Counts = field(init=False)  # (2, BINS), counts of the pair at the start of the present stage

    def __post_init__(self) -> None:
        self._at = -(-self.trials // 2)
        self._bets = strategy(self.tested, self.planned)
        self._log_prices = self._bets.log_prices(self.tested)

    @property
    def pair(self) -> int | None:
        """The pair on which all wealth is bet; None before the first late bet."""
        return self._stages[-1].pair if self._stages else None

    @property
    def pairs(self) -> set[int]:
        """The pairs of all late bets so far."""
        return {stage.pair for stage in self._stages}

    @property
    def ended(self) -> bool:
        """Whether no further bet may be chosen, because the attacks were dropped on many pairs."""
        return len(self._stages) >= MOST_STAGES

    def choose(
        self, made: int, counts: Counts, gains: Array, log_e: float, ready: Sequence[int], lost: tuple[int, ...]
    ) -> None:
        """Choose the bet of the next stage, if one is due."""
        gone = self.pair is not None and self.pair not in ready
        enough = log_e > -math.inf if self._stages else log_e >= LEAST_LOG_E
        if not (made >= self._at or gone) or not len(ready) or not enough:
            return
        left = self.trials - made
        plan = forecast(self.tested, self.planned, coin_selected=self.coin_selected)
        needed = log_threshold(self.confidence) - log_e
        chances = plan.chances(counts[ready], gains[ready], needed=needed, left=left)
        at, bet = divmod(int(np.argmax(chances)), chances.shape[1])
        pair = ready[at]
        self._at = made - (-self.trials // (2 * STAGES))
        if self._stages and (self._stages[-1].pair, self._stages[-1].bet) == (pair, bet):
            return
        if self._stages:
            self._finish(counts)
        else:
            self._before, self._lost = counts.copy(), lost
        self._start, self._log_e = counts[pair].copy(), log_e
        self._stages.append(Stage(pair=pair, bet=bet, left=left, counts=np.zeros_like(counts[pair])))

    def failed(self, lost: tuple[int, ...]) -> int | None:
        """Return the pair of a late bet among the lost pairs, so that all wealth is lost; None without such a pair."""
        return min(set(lost) - set(self._lost), default=None) if self._stages else None

    def log_e(self, counts: Counts, lost: tuple[int, ...]) -> float | None:
        """Return the log-wealth; None before the first late bet."""
        if not self._stages:
            return None
        if self.failed(lost) is not None:
            return -math.inf
        stage = self._stages[-1]
        won = counts[stage.pair] - self._start
        gains = self._bets.gains(self._log_prices, won[None], coin_selected=self.coin_selected)
        return self._log_e + float(gains[0, stage.bet])

    def evidence(self, counts: Counts) -> LateBets | None:
        """Return the late bets so far; None before the first of them."""
        if not self._stages:
            return None
        self._finish(counts)
        found = LateBets(before=self._before, lost=self._lost, stages=tuple(self._stages))
        if not np.array_equal(found.counts, counts):
            raise AssertionError("outputs were counted after the first late bet on which no wealth was bet")
        return found

    def _finish(self, counts: Counts) -> None:
        """Record the outputs that the present stage has counted."""
        last = self._stages[-1]
        won = counts[last.pair] - self._start
        self._stages[-1] = Stage(pair=last.pair, bet=last.bet, left=last.left, counts=won)
