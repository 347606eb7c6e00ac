"""How good each attack has been on outputs it had not seen, and its weight in the mixture.

Each attack's weight is exp(-sum of its log-losses on outputs it had not seen).  If none faded, that would be the
posterior probability of the attack under a uniform prior (Dawid 1984, prequential statistics).  But what an attack lost
while it had learned from a hundred outputs says little of what it loses once it has learned from ten thousand: a plain
attack would lead long after a rich one has become better (van Erven, Gruenwald & de Rooij 2012, the catch-up
phenomenon).  So losses fade as trials grow.

An attack that trails the best one by more than 10 nats is suspended until the number of trials has doubled: it is
neither fitted nor asked.  It re-enters 3 nats behind.  All of this looks at past blocks only.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from dpaudit.numerics.arrays import Array

_FADING_POWER = 2.0  # losses are multiplied by (trials at the last fit / trials now) to this power
_MAX_BEHIND = 10.0  # nats behind the best attack, beyond which an attack is suspended
_BEHIND_ON_RETURN = 3.0  # nats behind the best attack, at which a suspended attack re-enters
_MIN_TRIALS_BEFORE = 400  # before an attack may be suspended: time to show a leak in few outputs, see `selection`
_BEHIND_ON_JOINING = 2.0  # nats behind the mixture, at which an attack starts that joins later


def log_loss(scores0: Array, scores1: Array) -> float:
    """Log-loss of the probabilities 1 / (1 + e^-score) that an output came from d1, summed over both sides."""
    return float(np.logaddexp(0.0, scores0).sum() + np.logaddexp(0.0, -scores1).sum())


@dataclass
class ModelWeights:
    """Losses of attacks 0, 1, ... that take part."""

    _losses: dict[int, float] = field(
        default_factory=dict
    )  # nats; of one that joined late, as if it had always taken part
    _since: dict[int, int] = field(default_factory=dict)  # trials at which the attack started, or re-entered
    _suspended_until: dict[int, int] = field(default_factory=dict)
    _true: dict[int, tuple[float, int]] = field(default_factory=dict)  # losses on outputs that it scored; how many
    _combined: float = 0.0
    _scored: int = 0  # trials

    def join(self, attack: int, trials: int) -> None:
        """An attack takes part from now on, or goes on taking part."""
        if attack in self._losses and attack not in self._suspended_until:
            return
        if attack in self._losses:  # comes back
            self._losses[attack] = self._best() + _BEHIND_ON_RETURN
        else:
            self._losses[attack] = self._combined + (_BEHIND_ON_JOINING if self._scored else 0.0)
        self._suspended_until.pop(attack, None)
        self._since[attack] = trials

    def leave(self, attack: int) -> None:
        """An attack takes no part any more; should it join again, it starts as a new one."""
        self._losses.pop(attack, None)
        self._suspended_until.pop(attack, None)

    def suspended(self, attack: int, trials: int) -> bool:
        """Whether an attack is suspended at this number of trials."""
        return trials < self._suspended_until.get(attack, 0)

    def weights(self, attacks: list[int]) -> dict[int, float]:
        """The weight of each of these attacks, summing to one."""
        least = min((self._losses[i] for i in attacks), default=0.0)
        raw = {i: math.exp(least - self._losses[i]) for i in attacks}
        total = sum(raw.values())
        return {i: value / total for i, value in raw.items()}

    def count(self, losses: dict[int, float], combined: float, n: int) -> None:
        """Losses of the attacks and of their mixture on n fresh trials."""
        for attack, loss in losses.items():
            self._losses[attack] += loss
            total, scored = self._true.get(attack, (0.0, 0))
            self._true[attack] = total + loss, scored + 2 * n
        self._combined += combined
        self._scored += n

    def suspend(self, attacks: list[int], trials: int, spared: Collection[int] = ()) -> list[int]:
        """Suspend those of these attacks that have fallen behind, except the spared; returns them."""
        best = min((self._losses[i] for i in attacks), default=0.0)
        behind = []
        for attack in attacks:
            fair = trials - self._since[attack] >= max(_MIN_TRIALS_BEFORE, self._since[attack] // 8)
            if attack not in spared and fair and self._losses[attack] - best > _MAX_BEHIND:
                self._suspended_until[attack] = 2 * trials
                behind.append(attack)
        return behind

    def fade(self, share: float) -> None:
        """Attacks are about to be fitted to more trials, of which `share` had been seen at the last fit."""
        best, kept = self._best(), share**_FADING_POWER
        self._losses = {attack: best + kept * (loss - best) for attack, loss in self._losses.items()}
        self._combined = best + kept * (self._combined - best)

    def mean_loss(self, attack: int) -> float:
        """Mean log-loss of an attack on outputs it had not seen; nan if there were none."""
        total, scored = self._true.get(attack, (math.nan, 1))
        return total / scored

    def _best(self) -> float:
        return min((loss for i, loss in self._losses.items() if i not in self._suspended_until), default=self._combined)
