"""The score of an output: an estimate of its log-likelihood ratio, which learns no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.learning.attack import Attack, Scorer
from dpaudit.learning.blocks import as_outputs
from dpaudit.learning.clock import Clock
from dpaudit.learning.foreign import guarded
from dpaudit.learning.members import sees
from dpaudit.learning.safe_scoring import asked
from dpaudit.learning.stacking import Stacked
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Encoding, Outputs, Places, Recurring

_DIGITS = 9  # of a score; what is beyond may depend on an output's place in its block, and must not decide a bin
_STACKED = "stacked"
KnownScores = dict[int | str, tuple[Array, str]]
"""Attack, or `_STACKED` -> scores of the values that recur, and what the attack did wrong."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """What attacks knew after some trials, and their weights.  It learns no more.

    A score is a function of one output: neither the other outputs of a block nor earlier questions change it.  (An
    attack from outside the package may break that rule; `rechecks` looks for it.)  So scores of outputs that came
    after those it was learned from are independent, given the past, if these outputs are.
    """

    attacks: Sequence[Attack]
    encoding: Encoding | None
    scorers: Mapping[int, Scorer]  # attack -> its calibrated scorer
    mixture: Mapping[int, float]  # the weights of these attacks, summing to one
    trials: int  # that the mixture was learned from; a second stage has seen more
    stacked: Stacked | None = None  # what the score is made of after the second stage
    recurring: Recurring | None = None  # values that occur often, each scored once
    clock: Clock = field(default_factory=Clock)
    known: KnownScores = field(default_factory=dict)  # a cache

    @property
    def ready(self) -> bool:
        """Whether any attack has learned anything."""
        return bool(self.scorers)

    def weights(self) -> dict[int, float]:
        """Each attack's weight in the score, summing to one."""
        return dict(self.mixture) if self.stacked is None else self.stacked.weights(self.mixture)

    def __call__(self, outputs: Outputs | Array) -> Array:
        """The estimate of the log-likelihood ratio of n outputs, (n,)."""
        with guarded(self.attacks):
            return self.unguarded(as_outputs(outputs))

    def unguarded(self, outputs: Outputs) -> Array:
        """The same, for callers that guard several questions together (`foreign.guarded`)."""
        if self.stacked is None:
            return self.mixed(outputs)
        return self._by_value(
            _STACKED, outputs, self.places(outputs), lambda some: (self._stacked(some, self.mixed), "")
        )[0]

    def mixed(self, outputs: Outputs) -> Array:
        """The weighted mean of the attacks' scores, (n,)."""
        places = self.places(outputs)
        return self.mean({i: self.of_attack(i, outputs, places)[0] for i in self.scorers}, len(outputs))

    def mean(self, parts: Mapping[int, Array], n: int) -> Array:
        """The weighted mean of n scores by each attack."""
        return weighted_mean(parts, self.mixture, n)

    def places(self, outputs: Outputs) -> Places | None:
        """Where each output's value is among those that recur; None if none do."""
        return self.recurring.places(outputs) if self.recurring is not None else None

    def of_attack(self, index: int, outputs: Outputs, places: Places | None) -> tuple[Array, str]:
        """One attack's scores (n,), and what it did wrong, if anything."""
        return self._by_value(index, outputs, places, lambda some: self.of_attack_anew(index, some))

    def anew(self, outputs: Outputs) -> Array:
        """The scores, (n,), none of them looked up: for a second opinion on the first ones."""
        return self._mixed_anew(outputs) if self.stacked is None else self._stacked(outputs, self._mixed_anew)

    def of_attack_anew(self, index: int, outputs: Outputs) -> tuple[Array, str]:
        """One attack's scores (n,), none of them looked up, and what it did wrong, if anything."""
        return self.ask(index, self.scorers[index], sees(self.attacks[index]), outputs)

    def ask(self, index: int, scorer: Scorer, view: str, outputs: Outputs) -> tuple[Array, str]:
        """What an attack's scorer gives, 0 for outputs that the encoding does not know, and what it did wrong."""
        assert self.encoding is not None
        unknown_outputs = outputs.unknown_outputs(self.encoding)
        with self.clock.running(index):
            if unknown_outputs is None:
                return asked(scorer, outputs.view(self.encoding, view))
            values, failure = np.zeros(len(outputs)), ""
            if not unknown_outputs.all():
                fitting = outputs.take(np.flatnonzero(~unknown_outputs))
                values[~unknown_outputs], failure = asked(scorer, fitting.view(self.encoding, view))
            return values, failure

    def _mixed_anew(self, outputs: Outputs) -> Array:
        return self.mean({i: self.of_attack_anew(i, outputs)[0] for i in self.scorers}, len(outputs))

    def _stacked(self, outputs: Outputs, mixed: Callable[[Outputs], Array]) -> Array:
        """From the scores of the refitted attacks, and those of the mixture."""
        assert self.stacked is not None
        found = [self.ask(index, scorer, "features", outputs)[0] for index, scorer in self.stacked.refitted.items()]
        return stacked_scores(self.stacked, np.column_stack([mixed(outputs), *found]))

    def _by_value(
        self,
        key: int | str,
        outputs: Outputs,
        places: Places | None,
        compute: Callable[[Outputs], tuple[Array, str]],
    ) -> tuple[Array, str]:
        """What `compute` gives for n outputs, (n,); once for each value where outputs take few."""
        if self.recurring is None or places is None:
            return compute(outputs)
        if key not in self.known:
            self.known[key] = compute(self.recurring.values)
        by_value, failure = self.known[key]
        values, new = by_value[places], np.flatnonzero(places < 0)
        if len(new):
            values[new], its_failure = compute(outputs.take(new))
            failure = failure or its_failure
        return values, failure


def weighted_mean(parts: Mapping[int, Array], weights: Mapping[int, float], n: int) -> Array:
    """The weighted mean of n scores by each attack."""
    mean: Array = np.round(sum((weight * parts[i] for i, weight in weights.items()), np.zeros(n)), _DIGITS)
    return mean


def stacked_scores(stacked: Stacked, columns: Array) -> Array:
    """Scores (n,) from those of the mixture and of the refitted attacks, (n, 1 + m)."""
    scores: Array = np.round(stacked(columns), _DIGITS)
    return scores
