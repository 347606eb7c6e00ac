"""Freezes scores during an audit and applies them to later outputs, to find a rejection region for the witness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.learning.blocks import Block
from dpaudit.learning.foreign import guarded, in_pieces, is_foreign, same
from dpaudit.learning.score import Score
from dpaudit.learning.weights import BinCounts
from dpaudit.numerics import Array
from dpaudit.outputs import Outputs

_PIECE = 8_192  # number of outputs that are scored at once; their features fit into the processor's cache
_PROBES = 32  # number of outputs of each dataset that are scored again to verify that a frozen score has not changed


def _none() -> BinCounts:
    return np.zeros((2, BINS), dtype=np.int64)


@dataclass(kw_only=True, eq=False)
class Moment:
    """A score that was frozen during an audit, with the histogram of its values on later outputs.

    The attributes `score`, `number` and `before` are fixed before the first output counted in `after` is sampled.
    """

    score: Score
    chosen_expert: int | None  # attack whose scores alone were bet on when the score was frozen; None for the mixture
    number: int  # 1 for the score that was frozen first, 2 for the next score, and so on
    before: BinCounts  # (2, BINS), counts of the scores that were bet on since the previous score was frozen
    after: BinCounts = field(default_factory=_none)  # (2, BINS), counts of the values on later outputs
    trials: int  # number of trials of the learner up to which outputs were counted in `after`
    closed: bool = False  # whether counting has stopped because the memory dropped outputs before they were counted
    probes: Block | None = None  # outputs that verify a third-party score when they are scored again
    probed: tuple[Array, ...] = ()  # scores of the outputs in `probes`, computed when the score was frozen

    @property
    def frozen(self) -> bool:
        """Whether the score has not changed.  A refit of a third-party attack may modify its earlier scorer."""
        return self.probes is None or all(map(same, _asked_now(self.score, self.probes), self.probed))


def _asked_now(score: Score, sides: Block) -> tuple[Array, ...]:
    with guarded(score.attacks):
        return tuple(score.anew(side) for side in sides)


@dataclass(eq=False)
class Hindsight:
    """The two scores that were frozen last, and the counts of the scores that were bet on since then."""

    first_moment: int  # number of trials at which a score is first frozen
    _moments: list[Moment] = field(default_factory=list, init=False)  # the frozen scores, oldest first
    _since: BinCounts = field(default_factory=_none, init=False)  # counts since the last freeze

    def count(self, scores0: Array, scores1: Array) -> None:
        """Count the scores of fresh outputs on which bets are placed.  Both arrays have the shape (n,)."""
        self._since += [bin_counts(scores0), bin_counts(scores1)]

    def due(self, trials: int) -> bool:
        """Return whether to freeze the score now.  A score is frozen each time the number of trials has doubled."""
        latest = self._moments[-1].score.trials if self._moments else self.first_moment // 2
        return trials >= 2 * latest and bool(self._since.any(axis=1).all())

    def freeze(self, score: Score, chosen_expert: int | None, latest: Callable[[int], Block]) -> None:
        number = self._moments[-1].number + 1 if self._moments else 1
        moment = Moment(
            score=score, chosen_expert=chosen_expert, number=number, before=self._since, trials=score.trials
        )
        if any(is_foreign(score.attacks[i]) for i in score.scorers):
            moment.probes = latest(_PROBES)
            moment.probed = _asked_now(score, moment.probes)
        self._moments = [*self._moments[-1:], moment]
        self._since = _none()

    def catch_up(self, trials: int, latest: Callable[[int], Block]) -> None:
        for moment in self._moments:
            due = trials - moment.trials
            sides = latest(due) if due and not moment.closed else None
            if sides is None:
                continue
            if len(sides[0]) < due:
                moment.closed = True
                continue

            def score(side: Outputs, by: Score = moment.score) -> Array:
                return in_pieces(lambda some: (by.unguarded(some), ""), side, size=_PIECE)[0]

            with guarded(moment.score.attacks):
                moment.after += np.array([bin_counts(score(side)) for side in sides])
            moment.trials = trials

    def moments(self, chosen_expert: int | None) -> list[Moment]:
        """Return the frozen scores, oldest first, for which later outputs of both datasets were counted."""
        found = [moment for moment in self._moments if moment.score.ready and moment.after.any(axis=1).all()]
        found = [moment for moment in found if moment.frozen]
        return [moment for moment in found if chosen_expert is None or moment.chosen_expert == chosen_expert]
