"""Verifies that each counted score depends on its own output only, by scoring some outputs a second time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpaudit.learning.attack import Attack
from dpaudit.learning.blocks import Block
from dpaudit.learning.foreign import guarded, is_foreign
from dpaudit.learning.safe_scoring import MAX_AGAIN, same
from dpaudit.learning.score import Score
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import OutputError, Outputs
from dpaudit.sampling.streams import stream

_SHARE_ALONE = 0.25  # probability that only one output of a block is scored a second time


def again(sides: tuple[Outputs, Outputs], rng: np.random.Generator) -> Iterator[tuple[Outputs, npt.NDArray[np.intp]]]:
    """Select a few outputs at random, and yield them in random order with their places among those of d0, then d1."""
    n0 = len(sides[0])
    n = n0 + len(sides[1])
    size = 1 if rng.random() < _SHARE_ALONE else int(rng.integers(1, min(MAX_AGAIN, n) + 1))
    at = rng.permutation(n)[:size] if n < 10 * MAX_AGAIN else rng.choice(n, size, replace=False)
    of_d0 = at < n0
    found = [(sides[0].read_again(at[of_d0]), at[of_d0]), (sides[1].read_again(at[~of_d0] - n0), at[~of_d0])]
    found = [(some, places) for some, places in found if len(places)]
    if len(found) == 2:
        order = rng.permutation(size)
        both, places = Outputs.join([found[0][0], found[1][0]]), np.concatenate([found[0][1], found[1][1]])
        found = [(both.read_again(order), places[order])]
    yield from found


AttackScores = dict[int, Array]
"""A dict from attack indices to the scores of n outputs by this attack; shape (n,)."""


@dataclass(eq=False)
class Rechecks:
    """A scorer of the fresh outputs of one pair, which scores some of these outputs a second time in another block.

    The combined score is compared, as it is counted.  If the two scores of an output differ, the counted scores are
    invalid, and `void` states the reason.  Dropping the attack would not suffice, because its earlier scores were
    already counted.
    """

    seed: int
    pair: int
    # the reason why the counted scores are invalid; the empty string if they are valid
    void: str = field(default="", init=False)
    # number of scored blocks in which built-in attacks were checked or could have been checked
    _checks: int = field(default=0, init=False)
    _scored: int = field(default=0, init=False)  # number of outputs of each dataset in the scored blocks
    # number of scored outputs at which built-in attacks are checked next
    _next_check: int = field(default=1, init=False)

    def counted(self, sides: Block, score: Score) -> tuple[Array, Array]:
        """Compute the combined scores of the outputs of d0 and of d1, and verify some of these scores."""
        with guarded(score.attacks):
            scores = {side: score.unguarded(sides[side]) for side in self._order()}
            for some, at in self._again(sides):
                if not same(np.concatenate([scores[0], scores[1]])[at], score.anew(some)):
                    self._accuse(score.attacks, list(score.weights()))
        self._scored += len(sides[0])
        return scores[0], scores[1]

    def of_each(
        self, sides: Block, score: Score
    ) -> tuple[tuple[AttackScores, AttackScores], tuple[Array, Array], dict[int, str]]:
        """Compute the scores of the outputs of both datasets by each attack and by all together, and all failures.

        If an attack is a third party's, scores are verified in every block, and otherwise each time the number of
        outputs has doubled.
        """
        parts: tuple[AttackScores, AttackScores] = {}, {}
        failures: dict[int, str] = {}
        with guarded(score.attacks):
            for side in self._order():
                for i in score.scorers:
                    parts[side][i], failure = score.of_attack(i, sides[side])
                    if failure:
                        failures.setdefault(i, failure)
            scores = score.combined(parts[0], sides[0]), score.combined(parts[1], sides[1])
            self._scored += len(sides[0])
            own = self._scored >= self._next_check
            if own:
                self._next_check = 2 * self._scored
            if own or any(is_foreign(score.attacks[i]) for i in score.scorers):
                self._check(sides, parts, scores, score)
        return parts, scores, failures

    def _check(
        self, sides: Block, parts: tuple[AttackScores, AttackScores], scores: tuple[Array, Array], score: Score
    ) -> None:
        for some, at in self._again(sides):
            anew = {i: score.of_attack_anew(i, some)[0] for i in score.scorers}
            if not same(np.concatenate(scores)[at], score.combined(anew, some)):
                differ = [i for i in anew if not same(np.concatenate([parts[0][i], parts[1][i]])[at], anew[i])]
                self._accuse(score.attacks, differ or list(anew))

    def _order(self) -> tuple[int, int]:
        """Return the order in which the two datasets are scored.  It is random, so an attack cannot predict it."""
        first = int(stream(self.seed, "first asked", self.pair, self._scored).integers(2))
        return first, 1 - first

    def _again(self, sides: Block) -> list[tuple[Outputs, npt.NDArray[np.intp]]]:
        """Select some outputs of a block, read them again from the raw outputs, and return them with their indices."""
        self._checks += 1
        try:
            return list(again(sides, stream(self.seed, "check", self.pair, self._checks)))
        except OutputError as error:  # a user's encoder may raise an exception when it reads an output again
            self.void = self.void or f"an output could not be read a second time ({error})"
            return []

    def _accuse(self, attacks: Sequence[Attack], suspects: list[int]) -> None:
        """Declare the counted scores invalid, because the score of an output may depend on more than this output."""
        foreign = [i for i in suspects if is_foreign(attacks[i])]
        names = " or ".join(attacks[i].name for i in foreign or suspects)
        self.void = self.void or (
            f"attack {names} gave the same output different scores in different blocks or at different times; "
            "a score may depend on a single output only"
        )
