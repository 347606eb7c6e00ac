"""Whether a score that counts is a function of its own output: some outputs are asked about a second time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.learning.attack import Attack
from dpaudit.learning.blocks import Block
from dpaudit.learning.company import again
from dpaudit.learning.foreign import guarded, is_foreign
from dpaudit.learning.safe_scoring import same
from dpaudit.learning.score import Score
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import OutputError, Outputs, Places
from dpaudit.sampling.streams import stream

AttackScores = dict[int, Array]
"""Attack -> its scores of n outputs, (n,)."""


@dataclass(eq=False)
class Rechecks:
    """Asks about fresh outputs of one pair, and about some of them again, at another time and in other company.

    A difference makes the audit `void`.  It cannot merely drop the attack, for it was found in outputs that count.
    """

    seed: int
    pair: int
    void: str = field(default="", init=False)  # why scores that were counted prove nothing, in words
    _checks: int = field(default=0, init=False)  # blocks that were checked, or could have been
    _scored: int = field(default=0, init=False)  # outputs of each dataset in these blocks
    _next_check: int = field(default=1, init=False)  # outputs scored at which the package's own attacks are checked

    def counted(self, sides: Block, score: Score) -> tuple[Array, Array]:
        """The scores of a block, some of them compared with second ones."""
        with guarded(score.attacks):
            scores = {side: score.unguarded(sides[side]) for side in self._order()}
            for some, at in self._again(sides):
                if not same(np.concatenate([scores[0], scores[1]])[at], score.anew(some)):
                    self._accuse(score.attacks, list(score.weights()))
        self._scored += len(sides[0])
        return scores[0], scores[1]

    def of_each(self, sides: Block, score: Score) -> tuple[AttackScores, AttackScores, dict[int, str]]:
        """The scores of a block by each attack, some of them compared with second ones.

        Attacks from outside the package are checked in every block, others each time that the outputs have doubled.

        Returns:
            Scores of the outputs of d0, those of d1, and what attacks did wrong.
        """
        # One call for each dataset, never one for both: a score may differ in its last bit with its row's place, and
        # then an output near the edge of a bin would fall on the side of the dataset it came from.
        places = [score.places(side) for side in sides]
        parts: tuple[AttackScores, AttackScores] = {}, {}
        failures: dict[int, str] = {}
        with guarded(score.attacks):
            for side in self._order():
                for i in score.scorers:
                    parts[side][i], failure = score.of_attack(i, sides[side], places[side])
                    if failure:
                        failures.setdefault(i, failure)
            self._check_each(sides, parts, score)
        return *parts, failures

    def _check_each(self, sides: Block, parts: tuple[AttackScores, AttackScores], score: Score) -> None:
        own = self._scored + len(sides[0]) >= self._next_check
        self._scored += len(sides[0])
        if own:
            self._next_check = 2 * self._scored
        checked = [i for i in score.scorers if own or is_foreign(score.attacks[i])]
        if not checked:
            return
        for some, at in self._again(sides):
            for i in checked:
                scores = np.concatenate([parts[0][i], parts[1][i]])[at]
                if not same(scores, score.of_attack_anew(i, some)[0]):
                    self._accuse(score.attacks, [i])

    def _order(self) -> tuple[int, int]:
        """Which dataset's outputs are asked about first: a coin decides, so that an attack cannot know."""
        first = int(stream(self.seed, "first asked", self.pair, self._scored).integers(2))
        return first, 1 - first

    def _again(self, sides: Block) -> list[tuple[Outputs, Places]]:
        """Some outputs of a block, read anew, and where they were."""
        self._checks += 1
        try:
            return list(again(sides, stream(self.seed, "check", self.pair, self._checks)))
        except OutputError as error:  # a registered encoder that reads an output once and not twice
            self.void = self.void or f"an output could not be read a second time ({error})"
            return []

    def _accuse(self, attacks: Sequence[Attack], suspects: list[int]) -> None:
        """What was counted may have been decided by more than the outputs."""
        foreign = [i for i in suspects if is_foreign(attacks[i])]
        names = " or ".join(attacks[i].name for i in foreign or suspects)
        self.void = self.void or (
            f"attack {names} gave an output another score in other company or at another time; a score may depend on "
            "its own output alone"
        )
