"""Selects whether bets use the mixture of all attacks or the scores of one attack alone.

The weights of the mixture favour attacks with a small log-loss.  A small log-loss alone is no evidence against a claim,
which allows some distinguishability of the datasets.  A violation that shows in few outputs is strong evidence against
a claim, but hardly changes the mean log-loss.  So `Experts` computes the wealth of bets on the scores of each attack
alone, and the wealth of bets on the mixture.  Only scores of unseen outputs enter these computations.  The next bets
use the mixture, unless bets on one attack alone would have won clearly more.  The selection depends on past blocks
only, so it does not affect any guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpaudit.inference.grid import BINS, rows_of_bin_counts
from dpaudit.numerics.arrays import Array

BinCounts = npt.NDArray[np.int64]
"""The number of scores in each bin, for outputs of d0 and for outputs of d1; shape (2, BINS)."""

_MIN_LEAD_ALONE = 1.0  # minimum lead in log-wealth (nats) at which an attack replaces the mixture
# lead in log-wealth (nats): an attack that leads the mixture by more is not suspended (`learning.weights`)
_MIN_LEAD_SPARED = 0.3
_MIXTURE = -1  # key of the mixture in dicts with attack indices as keys


@dataclass
class Experts:
    """A record of the wealth that would have been won by bets on one attack alone, and by bets on the mixture."""

    # function that maps the bin counts of scores to the log-wealth of bets on these scores
    worth: Callable[[BinCounts], float]
    # index of the attack that is used alone; None for the mixture
    chosen_expert: int | None = field(default=None, init=False)
    # indices of the attacks that must not be suspended, because they lead the mixture
    ahead: frozenset[int] = field(default=frozenset(), init=False)
    _counts: dict[int, BinCounts] = field(init=False)

    def __post_init__(self) -> None:
        self._counts = {_MIXTURE: np.zeros((2, BINS), dtype=np.int64)}

    def count(self, alone: Mapping[int, tuple[Array, Array]], mixture: tuple[Array, Array]) -> None:
        """Add the scores of fresh outputs of d0 and d1, by each attack and by the mixture, to the bin counts.

        The bin counts of a new attack start with those of the mixture.
        """
        sides = zip(*alone.values(), mixture, strict=True)
        counted = np.stack([rows_of_bin_counts(np.array(side)) for side in sides], axis=1)
        for attack, counts in zip(alone, counted, strict=False):
            self._counts[attack] = self._counts.get(attack, self._counts[_MIXTURE]) + counts
        self._counts[_MIXTURE] = self._counts[_MIXTURE] + counted[-1]

    def judge(self, attacks: Iterable[int]) -> None:
        """Select one of the given attacks or the mixture, and update `chosen_expert` and `ahead`."""
        mixture = self.worth(self._counts[_MIXTURE])
        won = {attack: self.worth(self._counts[attack]) for attack in attacks if attack in self._counts}
        self.ahead = frozenset(attack for attack, worth in won.items() if worth > mixture + _MIN_LEAD_SPARED)
        best = max(self.ahead, key=lambda attack: won[attack], default=None)
        clear = best is not None and won[best] > max(mixture, 0.0) + _MIN_LEAD_ALONE
        self.chosen_expert = best if clear else None

    def forget(self, attack: int) -> None:
        """Discard the bin counts of a suspended attack."""
        self._counts.pop(attack, None)
