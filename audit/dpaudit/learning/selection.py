"""Whether to bet on the mixture of all attacks, or on one of them alone.

The mixture tells the datasets apart best, but that alone refutes nothing: the claim lets them be told apart.  A leak
that shows in few outputs is worth much against a claim and little in mean log-loss.  So `Experts` counts what bets on
each attack's scores alone would have won, and what bets on the mixture would have won, always on outputs they had not
seen.  The next bets are on the mixture unless one attack is clearly ahead.  Only past blocks decide, so that no
guarantee is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpaudit.inference.grid import BINS, rows_of_bin_counts
from dpaudit.numerics.arrays import Array

BinCounts = npt.NDArray[np.int64]  # (2, BINS): scores of outputs of d0, of d1

_MIN_LEAD_ALONE = 1.0  # nats of wealth ahead of the mixture, from which an attack is bet on alone
_MIN_LEAD_SPARED = 0.3  # nats ahead, from which an attack is not suspended
_MIXTURE = -1


@dataclass
class Experts:
    """What each attack would have won alone."""

    worth: Callable[[BinCounts], float]  # log-wealth after these scores
    chosen_expert: int | None = field(default=None, init=False)  # the attack to bet on alone; None: the mixture
    ahead: frozenset[int] = field(default=frozenset(), init=False)  # attacks that should go on
    _counts: dict[int, BinCounts] = field(init=False)

    def __post_init__(self) -> None:
        self._counts = {_MIXTURE: np.zeros((2, BINS), dtype=np.int64)}

    def count(self, alone: Mapping[int, tuple[Array, Array]], mixture: tuple[Array, Array]) -> None:
        """Scores of fresh outputs of both datasets, by each attack alone and by all together.

        An attack that was not there before starts with what the mixture has won.
        """
        sides = zip(*alone.values(), mixture, strict=True)
        counted = np.stack([rows_of_bin_counts(np.array(side)) for side in sides], axis=1)
        for attack, counts in zip(alone, counted, strict=False):
            self._counts[attack] = self._counts.get(attack, self._counts[_MIXTURE]) + counts
        self._counts[_MIXTURE] = self._counts[_MIXTURE] + counted[-1]

    def judge(self, attacks: Iterable[int]) -> None:
        """Choose between these attacks and the mixture."""
        mixture = self.worth(self._counts[_MIXTURE])
        won = {attack: self.worth(self._counts[attack]) for attack in attacks if attack in self._counts}
        self.ahead = frozenset(attack for attack, worth in won.items() if worth > mixture + _MIN_LEAD_SPARED)
        best = max(self.ahead, key=lambda attack: won[attack], default=None)
        clear = best is not None and won[best] > max(mixture, 0.0) + _MIN_LEAD_ALONE
        self.chosen_expert = best if clear else None

    def forget(self, attack: int) -> None:
        """The attack is suspended; should it return, it starts with what the mixture has won."""
        self._counts.pop(attack, None)
