"""Scores frozen while an audit goes on, and counted on the outputs that came later: regions for the witness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.learning.blocks import Block
from dpaudit.learning.foreign import guarded, is_foreign
from dpaudit.learning.safe_scoring import same
from dpaudit.learning.score import Score
from dpaudit.learning.selection import BinCounts
from dpaudit.numerics.arrays import Array

_PROBES = 32  # outputs of each dataset that show whether a frozen score is what it was


def _none() -> BinCounts:
    return np.zeros((2, BINS), dtype=np.int64)


@dataclass(kw_only=True, eq=False)
class Moment:
    """A score frozen while an audit goes on, and the outputs that came afterwards.

    The score, `number` and `before` are settled before the first output in `after` is drawn.
    """

    score: Score
    chosen_expert: int | None  # the attack that was bet on alone at that moment
    number: int  # from 1
    before: BinCounts  # (2, BINS), scores of fresh outputs since the moment before this one, as they were bet on
    after: BinCounts = field(default_factory=_none)  # (2, BINS), the frozen score's of the outputs that came later
    trials: int  # of the learner, up to which outputs are counted in `after`
    closed: bool = False  # outputs were forgotten before they were counted: those that come later are left out, too
    probes: Block | None = None  # of a score by a foreign attack: outputs, and how it scored them when it was frozen
    probed: tuple[Array, ...] = ()

    @property
    def frozen(self) -> bool:
        """Whether the score is what it was: a foreign attack may have changed its scorer when it was fitted again."""
        return self.probes is None or all(map(same, _asked_now(self.score, self.probes), self.probed))


def _asked_now(score: Score, sides: Block) -> tuple[Array, ...]:
    """Scores of outputs of both datasets, none of them looked up."""
    with guarded(score.attacks):
        return tuple(score.anew(side) for side in sides)


@dataclass(eq=False)
class Hindsight:
    """The latest two moments, and the scores that were bet on since."""

    first_moment: int  # trials from which a score is frozen
    _moments: list[Moment] = field(default_factory=list, init=False)  # oldest first
    _since: BinCounts = field(default_factory=_none, init=False)  # scores of fresh outputs since the latest moment

    def count(self, scores0: Array, scores1: Array) -> None:
        """Scores of fresh outputs, as they are bet on."""
        self._since += [bin_counts(scores0), bin_counts(scores1)]

    def due(self, trials: int) -> bool:
        """Whether to freeze the score: each time that the trials have doubled."""
        latest = self._moments[-1].score.trials if self._moments else self.first_moment // 2
        return trials >= 2 * latest and bool(self._since.any(axis=1).all())

    def freeze(self, score: Score, chosen_expert: int | None, latest: Callable[[int], Block]) -> None:
        """Keep a score, which knows all outputs so far.

        Args:
            score: It must share no cache with others.
            chosen_expert: The attack that is bet on alone, if there is one.
            latest: The latest outputs, at most as many of each dataset as are asked for.
        """
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
        """Count, for each moment, the outputs that came since.

        Args:
            trials: How many there were so far.
            latest: The latest outputs, so many of each dataset as are asked for or fewer if they were forgotten.
        """
        for moment in self._moments:
            due = trials - moment.trials
            sides = latest(due) if due and not moment.closed else None
            if sides is None:
                continue
            if len(sides[0]) < due:
                moment.closed = True
                continue
            moment.after += np.array([bin_counts(moment.score(side)) for side in sides])
            moment.trials = trials

    def moments(self, chosen_expert: int | None) -> list[Moment]:
        """Moments with outputs on both sides, oldest first.

        `chosen_expert`: the attack that is bet on alone now.  Moments from before that are left out: their scores do
        not show what it shows.  So are moments whose score did not stay what it was, since an attack learned on in a
        scorer that it had returned.
        """
        found = [moment for moment in self._moments if moment.score.ready and moment.after.any(axis=1).all()]
        found = [moment for moment in found if moment.frozen]
        return [moment for moment in found if chosen_expert is None or moment.chosen_expert == chosen_expert]
