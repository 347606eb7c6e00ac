"""Combines the scores of several attacks into one score, by predictive model weights or by the choice of one attack.

The combined score is the weighted mean of log-likelihood ratios, with weights proportional to exp(-L), where L is the
discounted sum of an attack's log-losses on unseen outputs.  Without discounting, this is the posterior probability
(Dawid 1984, prequential statistics), and a simple attack would keep its weight long after a flexible one has become
better (catch-up phenomenon: van Erven, Gruenwald & de Rooij 2012).

The mean log-loss hardly shows a violation in few outputs, so `Experts` computes the wealth of bets on each attack alone
and on the mixture from unseen outputs, and uses one attack alone if it would have won clearly more.

An attack whose loss exceeds the least by more than 10 nats is suspended until the number of trials has doubled.  It
returns 3 nats above the least, fitted to few outputs (`blocks.Settings.probation_rows`), and is fitted to all of them
if it is still in use at the next fit.  All this depends on past blocks only, so it affects no guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.learning.blocks import FIRST_FIT, SETTLED, TRIAL_PERIOD
from dpaudit.numerics import Array, log_loss

_FADING_POWER = 2.0  # losses are multiplied by (trials at the last fit / trials now) to this power
_TOO_FAR_BEHIND = 10.0  # nats above the least loss at which an attack is suspended
_BEHIND_ON_RETURN = 3.0  # nats above the least loss to which the loss of an attack is set after a suspension
_TRIALS_BEFORE_SUSPENSION = 400  # fewer trials of an attack would miss violations in few outputs
_BEHIND_ON_JOINING = 2.0  # nats above the loss of the mixture at which the loss of a late attack starts
DIGITS = 9  # number of decimals of a score; further decimals might depend on the position of an output in its block
BinCounts = npt.NDArray[np.int64]
"""The number of scores in each bin, for outputs of d0 and for outputs of d1; shape (2, BINS)."""

_LEAD_ALONE = 1.0  # lead in log-wealth (nats) from which on an attack replaces the mixture
_LEAD_SPARED = 0.3  # lead in log-wealth (nats) from which on an attack is not suspended
_MIXTURE = -1  # key of the mixture in dicts with attack indices as keys


@dataclass
class Experts:
    """A record of the wealth that would have been won by bets on one attack alone, and by bets on the mixture."""

    worth: Callable[[BinCounts], float]  # log-wealth of bets on scores with these bin counts
    chosen_expert: int | None = field(default=None, init=False)  # attack used alone; None for the mixture
    # indices of the attacks that must not be suspended, because they lead the mixture
    ahead: frozenset[int] = field(default=frozenset(), init=False)
    _counts: dict[int, BinCounts] = field(
        default_factory=lambda: {_MIXTURE: np.zeros((2, BINS), dtype=np.int64)}, init=False
    )

    def count(self, alone: Mapping[int, tuple[Array, Array]], mixture: tuple[Array, Array]) -> None:
        """Add the scores of fresh outputs of d0 and d1, by each attack and by the mixture, to the bin counts."""
        sides = zip(*alone.values(), mixture, strict=True)
        counted = np.stack([bin_counts(np.array(side)) for side in sides], axis=1)
        for attack, counts in zip(alone, counted, strict=False):
            self._counts[attack] = self._counts.get(attack, self._counts[_MIXTURE]) + counts
        self._counts[_MIXTURE] = self._counts[_MIXTURE] + counted[-1]

    def judge(self, attacks: Iterable[int]) -> None:
        """Select one of the given attacks or the mixture, and update `chosen_expert` and `ahead`."""
        mixture = self.worth(self._counts[_MIXTURE])
        won = {attack: self.worth(self._counts[attack]) for attack in attacks if attack in self._counts}
        self.ahead = frozenset(attack for attack, worth in won.items() if worth > mixture + _LEAD_SPARED)
        best = max(self.ahead, key=lambda attack: won[attack], default=None)
        clear = best is not None and won[best] > max(mixture, 0.0) + _LEAD_ALONE
        self.chosen_expert = best if clear else None

    def forget(self, attack: int) -> None:
        """Discard the bin counts of a suspended attack."""
        self._counts.pop(attack, None)


def weighted_mean(parts: Mapping[int, Array], weights: Mapping[int, float], n: int) -> Array:
    """Return the rounded weighted mean of the scores of n outputs by each attack; shape (n,)."""
    return np.asarray(np.round(sum((weight * parts[i] for i, weight in weights.items()), np.zeros(n)), DIGITS))


@dataclass
class ModelWeights:
    """How well each attack has predicted unseen outputs: weights, suspensions, and the choice of one attack alone."""

    head_starts: Mapping[int, float] = field(default_factory=dict)  # attack index -> head start in nats; 0 by default
    experts: Experts | None = None  # may select one attack to be used alone; None to always use the mixture
    choice_growth: float = 1.1  # factor by which the number of trials must grow before this selection is revised
    _losses: dict[int, float] = field(default_factory=dict, init=False)  # attack index -> discounted loss in nats
    _since: dict[int, int] = field(default_factory=dict, init=False)  # attack -> trials when it joined or returned
    _suspended_until: dict[int, int] = field(default_factory=dict, init=False)  # attack -> trials at the end
    _true: dict[int, tuple[float, int]] = field(default_factory=dict, init=False)  # attack -> whole loss, outputs
    _combined: float = field(default=0.0, init=False)  # discounted loss of the mixture, in nats
    _scored: int = field(default=0, init=False)  # number of trials whose outputs have been scored
    _next_choice: int = field(default=FIRST_FIT, init=False)

    @property
    def chosen_expert(self) -> int | None:
        """The index of the attack whose scores alone are bet on; None if bets use the mixture."""
        return None if self.experts is None else self.experts.chosen_expert

    def join(self, attack: int, trials: int) -> None:
        """Add a new attack, or end the suspension of an attack.  An attack in use is not changed."""
        if self.away(attack):
            self._losses[attack] = self._best() + _BEHIND_ON_RETURN
        elif attack not in self._losses:
            self._losses[attack] = self._combined + (_BEHIND_ON_JOINING if self._scored else 0.0)
        else:
            return
        self._suspended_until.pop(attack, None)
        self._since[attack] = trials

    def leave(self, attack: int) -> None:
        """Remove an attack, which counts as new if it joins again."""
        self._losses.pop(attack, None)
        self._suspended_until.pop(attack, None)

    def suspended(self, attack: int, trials: int) -> bool:
        return trials < self._suspended_until.get(attack, 0)

    def away(self, attack: int) -> bool:
        """Return whether an attack has been suspended and has not returned, even if its suspension has ended."""
        return attack in self._suspended_until

    def weights(self, attacks: Collection[int], *, mixture: bool = False) -> dict[int, float]:
        """Return the weights of the given attacks, which sum to 1; those in the mixture even if one is used alone."""
        if self.chosen_expert in attacks and not mixture:
            return {i: float(i == self.chosen_expert) for i in attacks}
        losses = {i: self._losses[i] - self.head_starts.get(i, 0.0) for i in attacks}
        least = min(losses.values(), default=0.0)
        raw = {i: math.exp(least - loss) for i, loss in losses.items()}
        total = sum(raw.values())
        return {i: value / total for i, value in raw.items()}

    def judge(self, parts0: Mapping[int, Array], parts1: Mapping[int, Array]) -> None:
        """Record how well the scores of fresh outputs of d0 and d1, by each attack, predict the dataset."""
        weights = self.weights(parts0, mixture=True)
        n = len(next(iter(parts0.values())))
        mixture = weighted_mean(parts0, weights, n), weighted_mean(parts1, weights, n)
        sides = {i: (parts0[i], parts1[i]) for i in parts0}
        losses = {i: log_loss(np.concatenate(side), n) for i, side in sides.items()}
        self.count(losses, log_loss(np.concatenate(mixture), n), n)
        if self.experts is not None:
            self.experts.count(sides, mixture)

    def count(self, losses: Mapping[int, float], combined: float, n: int) -> None:
        """Add the losses of the attacks and of the mixture on n fresh outputs of each dataset."""
        for attack, loss in losses.items():
            self._losses[attack] += loss
            total, scored = self._true.get(attack, (0.0, 0))
            self._true[attack] = total + loss, scored + 2 * n
        self._combined += combined
        self._scored += n

    def choose(self, attacks: Collection[int], trials: int) -> list[int]:
        """Select the mixture or one attack for the next bets; suspend attacks with large losses, and return them."""
        if self.experts is None:
            return self.suspend(attacks, trials)
        if trials >= self._next_choice:
            self.experts.judge(attacks)
            self._next_choice = math.ceil(trials * self.choice_growth)
        behind = self.suspend(attacks, trials, spared=self.experts.ahead)
        for attack in behind:
            self.experts.forget(attack)
        return behind

    def suspend(self, attacks: Collection[int], trials: int, spared: Collection[int] = ()) -> list[int]:
        """Suspend the attacks whose loss exceeds the least loss by too much, and return them."""
        best = min((self._losses[i] for i in attacks), default=0.0)
        behind = [
            i
            for i in attacks
            if i not in spared and self._tried(i, trials) and self._losses[i] - best > _TOO_FAR_BEHIND
        ]
        self._suspended_until |= dict.fromkeys(behind, 2 * trials)
        return behind

    def on_trial(self, attack: int, trials: int) -> bool:
        """Return whether an attack that joined or returned at `SETTLED` trials or later cannot be suspended yet."""
        return self._since.get(attack, 0) >= SETTLED and not self._tried(attack, trials)

    def fade(self, share: float) -> None:
        """Discount all losses, when the last fit was at this share of the trials."""
        best, kept = self._best(), share**_FADING_POWER
        self._losses = {attack: best + kept * (loss - best) for attack, loss in self._losses.items()}
        self._combined = best + kept * (self._combined - best)

    def mean_loss(self, attack: int) -> float:
        """Return the mean log-loss of an attack on unseen outputs, in nats; NaN if there are no unseen outputs."""
        total, scored = self._true.get(attack, (math.nan, 1))
        return total / scored

    def _tried(self, attack: int, trials: int) -> bool:
        """Return whether enough fresh outputs have been scored to judge an attack that joined or returned."""
        since = self._since[attack]
        return trials - since >= (max(_TRIALS_BEFORE_SUSPENSION, since // 8) if since < SETTLED else TRIAL_PERIOD)

    def _best(self) -> float:
        return min((loss for i, loss in self._losses.items() if i not in self._suspended_until), default=self._combined)
