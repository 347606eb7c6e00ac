"""Defines frozen scores: functions that estimate the log-likelihood ratio of an output and no longer change.

After a second stage, a score combines the mixture of all attacks with attacks that were fitted to far more outputs.  A
logistic regression on held-out outputs determines the weights (stacking, Wolpert 1992).  If bets on the scores of one
component alone would have won clearly more against the claim, this component is the final score (`selection`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from dpaudit.learning.attack import Attack, Scorer, sees
from dpaudit.learning.blocks import as_outputs
from dpaudit.learning.few_values import ValueScores
from dpaudit.learning.foreign import guarded
from dpaudit.learning.safe_scoring import asked
from dpaudit.learning.selection import Experts
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.logistic import fit_logistic, linear
from dpaudit.outputs import Encoding, Outputs


@dataclass(slots=True, eq=False)
class Clock:
    """The number of seconds that each attack has spent on fits and on scoring."""

    seconds: dict[int, float] = field(default_factory=dict)

    @contextmanager
    def running(self, attack: int) -> Iterator[None]:
        """Measure the duration of a `with` block, and add it to the running time of an attack."""
        began = time.perf_counter()
        yield
        self.seconds[attack] = self.seconds.get(attack, 0.0) + time.perf_counter() - began


@dataclass(frozen=True, slots=True)
class Stacked:
    """A score that is an affine function of the score by the mixture and of the scores by m refitted attacks."""

    refitted: Mapping[int, Scorer]  # attack index -> scorer, for the m refitted attacks
    slopes: Array  # (1 + m,), coefficients of the score by the mixture and of the scores by the refitted attacks
    intercept: float
    shares: Array  # (1 + m,), share of each component in the spread of the stacked score; the shares sum to 1

    def __call__(self, columns: Array) -> Array:
        """Compute the rounded stacked scores (n,) of n outputs from their scores (n, 1 + m) by the components."""
        scores: Array = np.round(linear(columns, self.slopes) + self.intercept, _DIGITS)
        return scores

    def weights(self, mixed: Mapping[int, float]) -> dict[int, float]:
        """Return the weight of each attack in the stacked score, given its weight in the mixture; the sum is 1."""
        found = {attack: float(self.shares[0]) * weight for attack, weight in mixed.items()}
        for attack, share in zip(self.refitted, self.shares[1:], strict=True):
            found[attack] = found.get(attack, 0.0) + float(share)
        return found


def stacked(refitted: Mapping[int, Scorer], columns0: Array, columns1: Array, experts: Experts | None) -> Stacked:
    """Fit the coefficients of a stacked score to the scores of held-out outputs."""
    columns = np.concatenate([columns0, columns1])
    slopes, intercept = fit_logistic(columns, len(columns0))
    if experts is not None:
        again = Experts(experts.worth)
        alone = {j: (columns0[:, j], columns1[:, j]) for j in range(columns.shape[1])}
        again.count(alone, (columns0 @ slopes + intercept, columns1 @ slopes + intercept))
        again.judge(alone)
        if again.chosen_expert is not None:
            slopes, intercept = np.eye(columns.shape[1])[again.chosen_expert], 0.0
    spread = np.abs(slopes) * columns.std(axis=0)
    if not spread.any():
        spread = np.eye(columns.shape[1])[0]
    return Stacked(refitted, slopes, intercept, spread / spread.sum())


_DIGITS = 9  # number of decimals of a score; further decimals might depend on the position of an output in its block
_STACKED = -1  # key of the stacked score in the cache `KnownScores`
KnownScores = dict[int, dict[Hashable, float]]
"""A cache of the scores of recurring values by their keys, for each attack index and for `_STACKED`."""
_MAX_KNOWN = 512  # maximum number of values in a block whose scores are cached


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """A function that maps an output to a combined score, from frozen scorers and frozen weights of the attacks.

    The score of an output depends on this output only, neither on other outputs of a block nor on earlier calls:

    - an output is known to the encoding, and has its features, by its own value (`outputs.block`),
    - the scorers of built-in attacks give a row the same bits in every block, and the combined score is rounded to
      multiples of 10^-9, between which the cuts of the bins lie (`inference.grid`),
    - a value has a score of its own or has none, whatever stands beside it.

    A third-party attack may violate this rule; `rechecks` detects violations.  Suppose that later outputs are
    independent given the past.  Then the scores of these outputs are independent given the past, too.
    """

    attacks: Sequence[Attack]
    encoding: Encoding | None
    scorers: Mapping[int, Scorer]  # attack index -> calibrated scorer
    mixture: Mapping[int, float]  # attack index -> weight in the mixture; the weights sum to 1
    trials: int  # number of trials from which the mixture was learned; a second stage uses more trials
    stacked: Stacked | None = None  # the stacked score after the second stage
    few_values: ValueScores | None = None  # scores that replace the mixture for outputs with few values
    clock: Clock = field(default_factory=Clock)
    known: KnownScores = field(default_factory=dict)  # cache of the scores of recurring values

    @property
    def ready(self) -> bool:
        """Whether at least one attack has been fitted."""
        return bool(self.scorers)

    def without_light_attacks(self, min_weight: float) -> Score:
        """Return the score of the attacks whose weight in the mixture is at least `min_weight`, if there are any."""
        kept = {i: weight for i, weight in self.mixture.items() if weight >= min_weight}
        if not kept:
            return self
        total = sum(kept.values())
        return replace(
            self,
            scorers={i: scorer for i, scorer in self.scorers.items() if i in kept},
            mixture={i: weight / total for i, weight in kept.items()},
        )

    def weights(self) -> dict[int, float]:
        """Return the weight of each attack in the combined score; the weights sum to 1."""
        return dict(self.mixture) if self.stacked is None else self.stacked.weights(self.mixture)

    def __call__(self, outputs: Outputs | Array) -> Array:
        """Compute the scores (n,) of n outputs, which estimate their log-likelihood ratios in nats."""
        with guarded(self.attacks):
            return self.unguarded(as_outputs(outputs))

    def unguarded(self, outputs: Outputs) -> Array:
        """Compute the scores of outputs as `__call__` does, but without `foreign.guarded`, which the caller applies."""
        if self.stacked is None:
            return self.mixed(outputs)
        return self._by_value(_STACKED, outputs, lambda some: (self._stacked(some, self.mixed), ""))[0]

    def mixed(self, outputs: Outputs) -> Array:
        """Combine the scores that the attacks give to n outputs; shape (n,)."""
        return self.combined({i: self.of_attack(i, outputs)[0] for i in self.scorers}, outputs)

    def combined(self, parts: Mapping[int, Array], outputs: Outputs) -> Array:
        """Combine the given scores of n outputs by each attack; shape (n,).

        The result is their weighted mean, except for outputs whose values have scores of their own.
        """
        scores = weighted_mean(parts, self.mixture, len(outputs))
        return scores if self.few_values is None else self.few_values(outputs, scores)

    def of_attack(self, index: int, outputs: Outputs) -> tuple[Array, str]:
        """Compute the scores (n,) of outputs by one attack, and a description of its failure, "" if it did not fail."""
        return self._by_value(index, outputs, lambda some: self.of_attack_anew(index, some))

    def anew(self, outputs: Outputs) -> Array:
        """Compute the scores of n outputs without the cache, in order to verify earlier scores; shape (n,)."""
        return self._mixed_anew(outputs) if self.stacked is None else self._stacked(outputs, self._mixed_anew)

    def of_attack_anew(self, index: int, outputs: Outputs) -> tuple[Array, str]:
        """Compute the same scores and description as `of_attack`, but without the cache."""
        return self.ask(index, self.scorers[index], sees(self.attacks[index]), outputs)

    def ask(self, index: int, scorer: Scorer, view: str, outputs: Outputs) -> tuple[Array, str]:
        """Compute scores (n,) and the description of a failure by a given scorer of an attack, which expects a view.

        An output that the encoding cannot represent has the score 0.
        """
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
        return self.combined({i: self.of_attack_anew(i, outputs)[0] for i in self.scorers}, outputs)

    def _stacked(self, outputs: Outputs, mixed: Callable[[Outputs], Array]) -> Array:
        """Combine the scores by the refitted attacks and the scores by the mixture into stacked scores."""
        assert self.stacked is not None
        found = [self.ask(index, scorer, "features", outputs)[0] for index, scorer in self.stacked.refitted.items()]
        return self.stacked(np.column_stack([mixed(outputs), *found]))

    def _by_value(
        self, index: int, outputs: Outputs, compute: Callable[[Outputs], tuple[Array, str]]
    ) -> tuple[Array, str]:
        """Apply a function to n outputs, but only once to each value if values recur, which saves time only."""
        if not outputs.recurs or len((distinct := outputs.distinct()).index) > _MAX_KNOWN:
            return compute(outputs)
        known, keys, failure = self.known.setdefault(index, {}), distinct.value_keys(), ""
        if new := [at for at, key in enumerate(keys) if key not in known]:
            scores, failure = compute(outputs.take(distinct.index[new]))
            known.update(zip([keys[at] for at in new], scores.tolist(), strict=True))
        return np.array([known[key] for key in keys])[distinct.places], failure


def weighted_mean(parts: Mapping[int, Array], weights: Mapping[int, float], n: int) -> Array:
    """Return the rounded weighted mean of the scores of n outputs by each attack; shape (n,)."""
    mean: Array = np.round(sum((weight * parts[i] for i, weight in weights.items()), np.zeros(n)), _DIGITS)
    return mean
