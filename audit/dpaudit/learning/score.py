"""Frozen scores: functions that estimate the log-likelihood ratio of an output and no longer change.

After a second stage, a score combines the mixture with attacks that were fitted to far more outputs, with weights from
a logistic regression on held-out outputs (stacking, Wolpert 1992), or is one of these components if bets on it alone
would have won clearly more (`weights.Experts`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from dpaudit.learning.attack import Attack, Scorer, sees
from dpaudit.learning.blocks import Block, as_outputs
from dpaudit.learning.few_values import ValueScores
from dpaudit.learning.foreign import RECHECKED, asked, guarded, is_foreign, same
from dpaudit.learning.weights import DIGITS, Experts, weighted_mean
from dpaudit.numerics import Array, fit_logistic, linear
from dpaudit.outputs import Encoding, OutputError, Outputs
from dpaudit.running.streams import stream


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
        return np.asarray(np.round(linear(columns, self.slopes) + self.intercept, DIGITS))

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


_STACKED = -1  # key of the stacked score in the cache `KnownScores`
KnownScores = dict[int, dict[Hashable, float]]
"""A cache of the scores of recurring values by their keys, for each attack index and for `_STACKED`."""
_KNOWN = 512  # values of a block whose scores are cached, at most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """A function that maps an output to a combined score, from frozen scorers and frozen weights of the attacks.

    A score depends on its output only, not on the block or earlier calls: encodings judge an output by its own value
    (`outputs.block`), built-in scorers give a row the same bits in every block, and scores are multiples of 10^-9,
    between which the cuts of the bins lie (`inference.grid`).  `Rechecks` detects third-party attacks that violate this
    rule.
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
        return self._by_value(_STACKED, outputs, lambda some: (self._stacked(some, self.mixed(some)), ""))[0]

    def mixed(self, outputs: Outputs) -> Array:
        """Combine the scores that the attacks give to n outputs; shape (n,)."""
        return self.combined({i: self.of_attack(i, outputs)[0] for i in self.scorers}, outputs)

    def combined(self, parts: Mapping[int, Array], outputs: Outputs) -> Array:
        """Combine the scores of n outputs by their weighted mean, (n,), except for values with scores of their own."""
        scores = weighted_mean(parts, self.mixture, len(outputs))
        return scores if self.few_values is None else self.few_values(outputs, scores)

    def of_attack(self, index: int, outputs: Outputs) -> tuple[Array, str]:
        """Compute the scores (n,) of outputs by one attack, and a description of its failure, "" if it did not fail."""
        return self._by_value(index, outputs, lambda some: self.of_attack_anew(index, some))

    def anew(self, outputs: Outputs) -> Array:
        """Compute the scores of n outputs without the cache, in order to verify earlier scores; shape (n,)."""
        mixed = self.combined({i: self.of_attack_anew(i, outputs)[0] for i in self.scorers}, outputs)
        return mixed if self.stacked is None else self._stacked(outputs, mixed)

    def of_attack_anew(self, index: int, outputs: Outputs) -> tuple[Array, str]:
        """Compute the same scores and description as `of_attack`, but without the cache."""
        return self.ask(index, self.scorers[index], sees(self.attacks[index]), outputs)

    def ask(self, index: int, scorer: Scorer, view: str, outputs: Outputs) -> tuple[Array, str]:
        """Compute scores (n,) and the description of a failure by a given scorer of an attack, which expects a view."""
        assert self.encoding is not None
        unknown_outputs = outputs.unknown_outputs(self.encoding)
        with self.clock.running(index):
            if unknown_outputs is None:
                return asked(scorer, outputs.view(self.encoding, view))
            values, failure, known = np.zeros(len(outputs)), "", np.flatnonzero(~unknown_outputs)
            if len(known):
                values[known], failure = asked(scorer, outputs.take(known).view(self.encoding, view))
            return values, failure

    def _stacked(self, outputs: Outputs, mixed: Array) -> Array:
        assert self.stacked is not None
        found = [self.ask(index, scorer, "features", outputs)[0] for index, scorer in self.stacked.refitted.items()]
        return self.stacked(np.column_stack([mixed, *found]))

    def _by_value(
        self, index: int, outputs: Outputs, compute: Callable[[Outputs], tuple[Array, str]]
    ) -> tuple[Array, str]:
        """Apply a function to n outputs, but only once to each value if values recur, which saves time only."""
        if not outputs.recurs or len((distinct := outputs.distinct()).index) > _KNOWN:
            return compute(outputs)
        known, keys, failure = self.known.setdefault(index, {}), distinct.value_keys(), ""
        if new := [at for at, key in enumerate(keys) if key not in known]:
            scores, failure = compute(outputs.take(distinct.index[new]))
            known.update(zip([keys[at] for at in new], scores.tolist(), strict=True))
        return np.array([known[key] for key in keys])[distinct.places], failure


_SHARE_ALONE = 0.25  # probability that only one output of a block is scored a second time

AttackScores = dict[int, Array]  # a dict from attack indices to the scores of n outputs by this attack; shape (n,)


@dataclass(eq=False)
class Rechecks:
    """A scorer of the fresh outputs of one pair, which scores some of these outputs a second time in another block."""

    seed: int
    pair: int
    void: str = field(default="", init=False)  # why the counted scores are invalid; "" if they are valid
    _checks: int = field(default=0, init=False)  # number of blocks in which attacks were or could have been checked
    _scored: int = field(default=0, init=False)  # number of outputs of each dataset in the scored blocks
    _next_check: int = field(default=1, init=False)  # number of scored outputs at the next check of built-in attacks

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
        """Compute the scores of the outputs of both datasets by each attack and by all together, and all failures."""
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
            checked = any(is_foreign(score.attacks[i]) for i in score.scorers)
            if self._scored >= self._next_check:
                checked, self._next_check = True, 2 * self._scored
            for some, at in self._again(sides) if checked else ():
                anew = {i: score.of_attack_anew(i, some)[0] for i in score.scorers}
                if not same(np.concatenate(scores)[at], score.combined(anew, some)):
                    differ = [i for i in anew if not same(np.concatenate([parts[0][i], parts[1][i]])[at], anew[i])]
                    self._accuse(score.attacks, differ or list(anew))
        return parts, scores, failures

    def _order(self) -> tuple[int, int]:
        """Return the order in which the two datasets are scored.  It is random, so an attack cannot predict it."""
        first = int(stream(self.seed, "first asked", self.pair, self._scored).integers(2))
        return first, 1 - first

    def _again(self, sides: Block) -> list[tuple[Outputs, npt.NDArray[np.intp]]]:
        """Read a few random outputs of a block again; return them in random order, with their places in d0, then d1."""
        self._checks += 1
        rng = stream(self.seed, "check", self.pair, self._checks)
        n0, n = len(sides[0]), len(sides[0]) + len(sides[1])
        size = 1 if rng.random() < _SHARE_ALONE else int(rng.integers(1, min(RECHECKED, n) + 1))
        at = rng.permutation(n)[:size] if n < 10 * RECHECKED else rng.choice(n, size, replace=False)
        places = at[at < n0], at[at >= n0]
        try:
            found = [(sides[0].read_again(places[0]), places[0]), (sides[1].read_again(places[1] - n0), places[1])]
            if len(places[0]) and len(places[1]):
                order = rng.permutation(size)
                both = Outputs.join([some for some, _ in found])
                return [(both.read_again(order), np.concatenate(places)[order])]
        except OutputError as error:  # a user's encoder may raise an exception when it reads an output again
            self.void = self.void or f"an output could not be read a second time ({error})"
            return []
        return [(some, there) for some, there in found if len(there)]

    def _accuse(self, attacks: Sequence[Attack], suspects: list[int]) -> None:
        """Declare the counted scores invalid, because the score of an output may depend on more than this output."""
        foreign = [i for i in suspects if is_foreign(attacks[i])]
        names = " or ".join(attacks[i].name for i in foreign or suspects)
        self.void = self.void or (
            f"attack {names} gave the same output different scores in different blocks or at different times; "
            "a score may depend on a single output only"
        )
