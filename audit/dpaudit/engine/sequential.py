"""The audit that may stop at any time.  Each step samples a block, scores it, bets, tests the claim, and learns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector, Progress, ProgressCallback, Turn
from dpaudit.engine.schedule import FAIR_SHARE
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.inference.independence.signs import FIRST_CHECKPOINT
from dpaudit.inference.sequential.late_bets import LATE_LOG_E, MOST_STAGES, STAGES, borrowed, forecast
from dpaudit.inference.sequential.planned import Planned
from dpaudit.inference.sequential.strategy import Strategy, log_threshold, measuring_strategy, strategy
from dpaudit.learning import FIRST_FIT, FewValues, scores_frequencies
from dpaudit.numerics import Array
from dpaudit.pairs.pair import Pair
from dpaudit.result.evidence import Counts, SequentialEvidence
from dpaudit.result.sequential_evidence import LateBets, Stage
from dpaudit.values import key

_NEAR = 1.0  # nats from the threshold at which blocks become small; large blocks often change evidence by this much
_BONUS = 1.0  # nats that are added to the log-wealth of each pair in hindsight
_SOME = 1e-9  # nats; some evidence
_FAR = 700.0  # privacy loss in nats at which the profile of a claim is the probability of all larger losses
_PRIOR = 30.0  # each pair's variance is averaged with the largest variance, which counts as this many trials


@dataclass
class SequentialAudit:
    """An audit that may be examined and stopped at any time: pair and score are fixed before outputs are sampled."""

    collector: Collector
    tested: TradeoffFunction  # the claim, symmetrized
    confidence: float
    measure: bool = False  # whether to continue after the claim has been refuted
    planned: Planned | None = None  # violations that the bets should detect early
    deadline: int | None = None  # the last trial, before which late bets are placed; None without late bets
    confirms: bool = False  # whether fresh runs follow a refutation, which then measure the size of the violation
    history: list[tuple[int, float]] = field(default_factory=list, init=False)  # trials and log-wealth after each block
    most: float = field(default=0.0, init=False)  # maximum log-wealth so far (0 at the start)
    bets: Strategy = field(init=False)
    _log_prices: Array = field(init=False)  # (bets,), prices under the claim
    _counts: Counts = field(init=False)  # (pairs, 2, BINS), bin counts of the scores of fresh outputs
    _gains: Array = field(init=False)  # (pairs, bets), log-wealth of each bet on each pair
    _peak: Counts = field(init=False)  # (pairs, 2, BINS), counts at the analysis with the largest wealth
    _lost_at_peak: tuple[int, ...] = field(default=(), init=False)
    _new: set[int] = field(default_factory=set, init=False)  # pairs whose counts have changed since that analysis
    _late: LateBetting | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        # whether the two runs of a trial may depend on each other
        self._coin_selected = self.collector.sampler.execution.observe_time
        self.bets = (measuring_strategy if self.measure else strategy)(self.tested, self.planned)
        self._log_prices = self.bets.log_prices(self.tested)
        self._counts = np.zeros((len(self.collector.learners), 2, BINS), dtype=np.int64)
        self._gains = np.zeros((len(self._counts), len(self._log_prices)))
        self._peak = self._counts.copy()
        if self.deadline is not None:
            self._late = LateBetting(
                tested=self.tested,
                planned=self.planned,
                confidence=self.confidence,
                trials=self.deadline,
                coin_selected=self._coin_selected,
            )
        if scores_frequencies(self.collector.learners[0].attacks):
            few_values = FewValues.of_pairs(_dataset_keys(self.collector.sampler.pairs), self.tested)
            for learner, its_values in zip(self.collector.learners, few_values, strict=True):
                learner.few_values = its_values

    def go(self, progress: ProgressCallback | None = None, *, to_the_end: bool = False) -> None:
        """Make trials until the claim is refuted (unless `measure`), or no more trials can be made."""
        goes_on = to_the_end or self.measure
        try:
            for turn in self.collector.learn(partial(self._turn, to_the_end=goes_on), self._bet):
                if turn.learned and progress is not None:
                    progress(self.progress)
                if turn.pair in self.collector.dropped:  # a block without outputs has not updated the wealth
                    self._look()
        except KeyboardInterrupt:
            self.collector.interrupted = True

    def _turn(self, *, to_the_end: bool) -> Turn | None:
        """Return the next step; None if the claim is refuted (unless `to_the_end`), or if every attack was dropped."""
        if self.refuted and not to_the_end:
            return None
        if not len(self._usable):
            self.collector.failure = "every attack was dropped, so more runs would show nothing"
            return None
        if self._late is not None and (failed := self._late.failed(self._lost)) is not None:
            self.collector.failure = self.collector.dropped[failed]
            return None
        if self._late is not None and len(self._late.stages) >= MOST_STAGES:
            self.collector.failure = "attacks were dropped on too many pairs, one after another"
            return None
        pair, threshold = self._next_pair(), log_threshold(self.confidence)
        late = self._late is not None and self._late.pair is not None  # small blocks, so that the bet changes often
        near = late or self.log_e > max(threshold - _NEAR, threshold / 2)
        return Turn(pair=pair, near=near and not to_the_end)

    def observe(self) -> None:
        """Make further runs after a refutation that ended the audit early, at most half of those that are left.

        Tests of independence need some on each pair, and on the strongest pair the attacks learn from more of them.
        """
        if not self.refuted or self.measure or self.collector.void or self.collector.interrupted:
            return
        collector, strongest = self.collector, self.strongest
        left = collector.allowed - collector.trials
        pairs = sorted(map(int, self._usable), key=lambda pair: pair != strongest)
        try:
            with collector.limited(collector.allowed - left // 2 if self.confirms else collector.allowed):
                for pair in pairs:
                    if self._counts[pair].any():
                        learns = self.confirms and pair == strongest and not collector.slow
                        collector.observe(pair, collector.spent[pair] + 1_000 if learns else FIRST_CHECKPOINT)
        except KeyboardInterrupt:
            collector.interrupted = True

    @property
    def strongest(self) -> int:
        """Index of the pair with the strongest evidence; a pair that lost its stakes comes last."""
        against, lost = self.accusing_log_e, self._lost
        return max(against, key=lambda pair: -math.inf if pair in lost else against[pair])

    @property
    def _usable(self) -> npt.NDArray[np.intp]:
        """Indices of the pairs on which the mechanism has not failed and at least one attack is left."""
        learners, dropped = self.collector.learners, self.collector.dropped
        left = [i for i, learner in enumerate(learners) if i not in dropped and not learner.hopeless]
        return np.array(left, dtype=np.intp)

    @property
    def refuted(self) -> bool:
        """Whether the wealth has ever reached the threshold."""
        return self.most >= log_threshold(self.confidence)

    @property
    def refuted_at(self) -> int | None:
        """Runs per dataset when the claim was refuted; None if the claim was not refuted."""
        threshold = log_threshold(self.confidence)
        return next((trials for trials, log_e in self.history if log_e >= threshold), None)

    @property
    def log_e(self) -> float:
        """The current log-wealth against the claim, nats."""
        return self.history[-1][1] if self.history else 0.0

    @property
    def evidence(self) -> SequentialEvidence:
        """The counts of scores so far."""
        past_peak = max(self.log_e, 0.0) < self.most
        return SequentialEvidence(
            target=self.tested,
            planned=self.planned,
            counts=self._counts,
            coin_selected=self._coin_selected,
            lost=self._lost,
            peak=self._peak if past_peak else None,
            lost_at_peak=self._lost_at_peak if past_peak else (),
            late=None if self._late is None else self._late.evidence(self._counts),
            confirms=self.confirms,
            measures=self.measure,
        )

    @property
    def _lost(self) -> tuple[int, ...]:
        """Pairs on which bets lost their stakes.  A failure that ends the audit loses no stakes."""
        gone = self.collector.dropped.keys() - {self.collector.last_pair}
        staked = [i for i in gone if self._counts[i].any() or self.collector.learners[i].ready]
        return tuple(sorted(staked))

    @property
    def pair_log_e(self) -> list[float]:
        """The log-wealth of each pair, if bets had been placed on that pair only."""
        return [self.bets.log_wealth(gains[None, :]) for gains in self._gains]

    @property
    def accusing_log_e(self) -> dict[int, float]:
        """Pair index -> log-wealth of the pair; at least that of the audit for the last late bet of a refutation."""
        found = dict(enumerate(self.pair_log_e))
        if self.refuted and self._late is not None and (last := self._late.pair) is not None:
            found |= {stage.pair: max(found[stage.pair], _SOME) for stage in self._late.stages}
            found[last] = max(found[last], self.most)
        return found

    @property
    def progress(self) -> Progress:
        """The state of the audit."""
        return Progress(
            trials=self.collector.trials,
            allowed=self.collector.allowed,
            log_e=self.log_e,
            log_threshold=log_threshold(self.confidence),
            failed=bool(self.collector.dropped),
        )

    def _bet(self, pair: int, scores: tuple[Array, Array] | None) -> None:
        """Count the scores of d0 and d1 in a block, and update the wealth; None means that there is no score yet."""
        if scores is not None:
            if self._coin_selected:
                start, n = self.collector.learners[pair].trials, len(scores[0])
                first = self.collector.sampler.first_sides(pair, start, n)
                scores = scores[0][~first], scores[1][first]
            self._counts[pair] += [bin_counts(side) for side in scores]
            self._new.add(pair)
            counts = self._counts[pair : pair + 1]
            self._gains[pair] = self.bets.gains(self._log_prices, counts, coin_selected=self._coin_selected)[0]
        self._look()

    def _look(self) -> None:
        late = self._late.log_e(self._counts, self._lost) if self._late is not None else None
        log_e = self.bets.log_wealth(self._gains, self._lost) if late is None else late
        self.history.append((self.collector.trials, log_e))
        if self.log_e > self.most:
            self.most, self._lost_at_peak = self.log_e, self._lost
            for pair in self._new:
                self._peak[pair] = self._counts[pair]
            self._new.clear()

    def _next_pair(self) -> int:
        """Return the pair whose evidence has the largest upper confidence bound on its growth rate.

        The bound is growth + sqrt(2 log(all trials) variance / trials of the pair) of its best bet so far (UCB: Auer,
        Cesa-Bianchi & Fischer 2002).  Pairs without a score come first, and every pair gets at least a quarter of an
        even share, because rare leaks show in many runs only.
        """
        spent, learners = self.collector.spent, self.collector.learners
        left = self._usable
        if new := [int(i) for i in left if not learners[i].ready and spent[i] < FIRST_FIT]:
            return min(new, key=lambda i: spent[i])
        if self._late is not None:
            ready = [int(i) for i in left if learners[i].ready]
            if len(learners) == 1 and ready:
                self._late.follow(self.collector.trials, self._counts, self._gains, self.log_e, learners[0])
            self._late.choose(self.collector.trials, self._counts, self._gains, self.log_e, ready, self._lost)
            if self._late.pair in ready:
                return self._late.pair
        if len(left) == 1:
            return int(left[0])
        bets = self._counts[left].sum(axis=(1, 2)) / 2
        if not np.all(bets):  # a pair without bets may have lost all its attacks, so it must not get all further trials
            return min((int(i) for i in left), key=lambda i: spent[i])
        if bets.min() < FAIR_SHARE * bets.sum() / len(bets):
            return int(left[np.argmin(bets)])
        if (pair := self._best_in_hindsight(left)) is not None:
            return pair
        gains = self._gains[left]
        best = np.argmax(self.bets.log_weights + gains, axis=1)
        growth = gains[np.arange(len(best)), best] / bets
        variance = self.bets.variances(self._counts[left], best)
        variance = (bets * variance + _PRIOR * variance.max()) / (bets + _PRIOR)
        return int(left[np.argmax(growth + np.sqrt(2 * math.log(bets.sum()) * variance / bets))])

    def _best_in_hindsight(self, left: npt.NDArray[np.intp]) -> int | None:
        """Return the pair whose present score would have won most per output; None unless outputs have few values."""
        growth = []
        for pair in left:
            few = self.collector.learners[pair].few_values
            counts = None if few is None else few.in_hindsight()
            if few is None or counts is None:
                return None
            gains = self.bets.gains(self._log_prices, counts[None])
            growth.append((self.bets.log_wealth(gains) + _BONUS) / few.trials)
        return int(left[np.argmax(growth)])


def _dataset_keys(pairs: Sequence[Pair]) -> list[tuple[Hashable, Hashable]]:
    """Return a key of d0 and of d1 for each pair; scores are learned together on datasets with equal keys."""
    keys: dict[tuple[int, int], Hashable] = {}
    for i, pair in enumerate(pairs):
        for side, dataset in enumerate((pair.d0, pair.d1)):
            keys[i, side] = i, side
            if len(pairs) > 1:
                with suppress(Exception):  # pickling or `repr` calls methods of the dataset
                    keys[i, side] = "equal", key(dataset)
    return [(keys[i, 0], keys[i, 1]) for i in range(len(pairs))]


class Learned(Protocol):
    """What the choice of bets needs of a learner."""

    @property
    def fitted_at(self) -> int: ...

    def identified(self) -> Counts | None: ...


@dataclass(kw_only=True)
class LateBetting:
    """The choice of late bets after half of the trials, as soon as the wealth is at least e^`LATE_LOG_E`.

    Bets on values that identify a dataset begin earlier.
    """

    tested: TradeoffFunction  # the claim, symmetrized
    planned: Planned | None
    confidence: float
    trials: int  # the largest number of trials of the audit
    coin_selected: bool
    stages: list[Stage] = field(default_factory=list, init=False)
    _before: Counts = field(init=False)  # counts of all pairs before the first late bet
    _lost: tuple[int, ...] = field(default=(), init=False)
    _at: int = field(default=0, init=False)  # number of trials at which the bet is chosen next
    _followed: int = field(default=0, init=False)  # number of trials at the last fit after which `follow` chose a bet
    _log_e: float = field(default=0.0, init=False)  # log-wealth at the start of the present stage
    _start: Counts = field(init=False)  # (2, BINS), counts of the pair at the start of the present stage

    def __post_init__(self) -> None:
        self._at = -(-self.trials // 2)
        self._bets = strategy(self.tested, self.planned)
        self._log_prices = self._bets.log_prices(self.tested)
        self._rare = float(self.tested.delta(np.array([_FAR]))[0]) > 0

    @property
    def pair(self) -> int | None:
        """The pair on which all wealth is bet; None before the first late bet."""
        return self.stages[-1].pair if self.stages else None

    def choose(
        self, made: int, counts: Counts, gains: Array, log_e: float, ready: Sequence[int], lost: tuple[int, ...]
    ) -> None:
        """Choose the bet of the next stage, if one is due."""
        gone = self.pair is not None and self.pair not in ready
        enough = log_e > -math.inf if self.stages else log_e >= LATE_LOG_E
        if not (made >= self._at or gone) or not len(ready) or not enough:
            return
        left = self.trials - made
        plan = forecast(self.tested, self.planned, coin_selected=self.coin_selected)
        needed = log_threshold(self.confidence) - log_e
        chances = plan.chances(counts[ready], gains[ready], needed=needed, left=left)
        at, bet = divmod(int(np.argmax(chances)), chances.shape[1])
        self._at = made - (-self.trials // (2 * STAGES))
        self._begin(ready[at], bet, left, counts, log_e, lost)

    def follow(self, made: int, counts: Counts, gains: Array, log_e: float, learner: Learned) -> None:
        """Choose the bet on values that identify a dataset, after each fit in the first half of the trials."""
        if made >= self._at or learner.fitted_at <= self._followed or not self._rare:
            return
        self._followed, seen = learner.fitted_at, learner.identified()
        if seen is not None:
            won = self._bets.gains(self._log_prices, borrowed(seen)[None], coin_selected=True)[0]
        elif self.stages:
            won = self._bets.log_weights + gains[0]
        else:
            return
        bet = int(np.argmax(won))
        if self.stages or (won[bet] > 0 and log_e >= LATE_LOG_E):
            self._begin(0, bet, self.trials - made, counts, log_e, ())

    def _begin(self, pair: int, bet: int, left: int, counts: Counts, log_e: float, lost: tuple[int, ...]) -> None:
        """Put all wealth on one bet, unless it is there."""
        if not self.stages:
            self._before, self._lost = counts.copy(), lost
        elif (self.stages[-1].pair, self.stages[-1].bet) == (pair, bet):
            return
        else:
            self._finish(counts)
        self._start, self._log_e = counts[pair].copy(), log_e
        self.stages.append(Stage(pair=pair, bet=bet, left=left, counts=np.zeros_like(counts[pair])))

    def failed(self, lost: tuple[int, ...]) -> int | None:
        """Return the pair of a late bet among the lost pairs, so that all wealth is lost; None without such a pair."""
        return min(set(lost) - set(self._lost), default=None) if self.stages else None

    def log_e(self, counts: Counts, lost: tuple[int, ...]) -> float | None:
        """Return the log-wealth; None before the first late bet."""
        if not self.stages:
            return None
        if self.failed(lost) is not None:
            return -math.inf
        stage = self.stages[-1]
        won = counts[stage.pair] - self._start
        gains = self._bets.gains(self._log_prices, won[None], coin_selected=self.coin_selected)
        return self._log_e + float(gains[0, stage.bet])

    def evidence(self, counts: Counts) -> LateBets | None:
        """Return the late bets so far; None before the first of them."""
        if not self.stages:
            return None
        self._finish(counts)
        found = LateBets(before=self._before, lost=self._lost, stages=tuple(self.stages))
        if not np.array_equal(found.counts, counts):
            raise AssertionError("outputs were counted after the first late bet on which no wealth was bet")
        return found

    def _finish(self, counts: Counts) -> None:
        """Record the outputs that the present stage has counted."""
        last = self.stages[-1]
        self.stages[-1] = replace(last, counts=counts[last.pair] - self._start)
