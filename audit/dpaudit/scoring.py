"""From attacks to one estimate of the log-likelihood ratio, learned from past trials only.

Each attack's weight is its predictive likelihood: exp(-sum of its log-losses on outputs it had not seen), the
posterior probability of the attack under a uniform prior (Dawid 1984, prequential statistics).  The combined
score is the weighted mean of the attacks' log-likelihood ratios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.claims import Array
from dpaudit.outputs import OutputError, features
from dpaudit.registry import Attack, Scorer
from dpaudit.trials.streams import stream

FIRST_FIT = 10  # trials the first scores are learned from
_GROWTH = 1.3  # trials after which scores are learned anew, as a multiple of those at the last fit
_MOST_ROWS = 50_000  # outputs of each dataset that a fit looks at: the latest
_CERTAIN = 60.0  # nats; a score of +-inf is worth this much in the mean


@dataclass
class Learner:
    """What is known about telling the two datasets of one pair apart."""

    attacks: Sequence[Attack]
    seed: int
    pair: int
    trials: int = field(default=0, init=False)
    next_fit: int = field(default=FIRST_FIT, init=False)
    warnings: list[str] = field(default_factory=list, init=False)
    _columns: int | None = field(default=None, init=False)
    _blocks: list[tuple[Array, Array]] = field(default_factory=list, init=False)
    _scorers: dict[int, Scorer] = field(default_factory=dict, init=False)
    _losses: dict[int, float] = field(default_factory=dict, init=False)  # cumulative, of attacks in use
    _scored: int = field(default=0, init=False)
    _combined_loss: float = field(default=0.0, init=False)
    _dropped: set[int] = field(default_factory=set, init=False)

    @property
    def ready(self) -> bool:
        """Whether there is a score to bet with."""
        return bool(self._scorers)

    def weights(self) -> dict[int, float]:
        """Each attack in use and its say, summing to one."""
        least = min((self._losses[i] for i in self._scorers), default=0.0)
        raw = {i: math.exp(least - self._losses[i]) for i in self._scorers}
        total = sum(raw.values())
        return {i: value / total for i, value in raw.items()}

    def outputs(self) -> Array:
        """All outputs learned from so far, of both datasets, (n, d)."""
        return np.concatenate([outputs for block in self._blocks for outputs in block])

    def mean_loss(self, attack: int) -> float:
        """Mean log-loss of an attack on outputs it had not seen; nan if there were none."""
        return self._losses[attack] / (2 * self._scored) if attack in self._losses and self._scored else math.nan

    def read(
        self, outputs0: Sequence[Any] | np.ndarray[Any, Any], outputs1: Sequence[Any] | np.ndarray[Any, Any]
    ) -> tuple[Array, Array]:
        """Outputs of both datasets as the attacks see them; OutputError if that cannot be done."""
        sides = [features(outputs, self._columns) for outputs in (outputs0, outputs1)]
        if sides[0].shape[1] != sides[1].shape[1]:
            raise OutputError(
                f"every output must have the same length, got {sides[0].shape[1]} numbers on d0 and "
                f"{sides[1].shape[1]} on d1"
            )
        self._columns = sides[0].shape[1]
        return sides[0], sides[1]

    def score(self, outputs: Array) -> Array:
        """The combined estimate of the log-likelihood ratio, (n, d) -> (n,), as of now."""
        return self._mean({i: _scores(scorer, outputs)[0] for i, scorer in self._scorers.items()}, len(outputs))

    def score_fresh(self, outputs0: Array, outputs1: Array) -> tuple[Array, Array]:
        """Scores of outputs not seen before, which also tell how good each attack is.

        The score of an output depends on that output and on the past alone: an attack that fails on some of these
        outputs scores them 0 and is dropped afterwards, so that a failure decides nothing about the rest of the block.
        """
        # One call for each dataset, never one for both: a score may differ in its last bit with its row's place, and then
        # an output near the edge of a bin would fall on the side of the dataset it came from.
        parts0: dict[int, Array] = {}
        parts1: dict[int, Array] = {}
        failures: dict[int, str] = {}
        for i, scorer in self._scorers.items():
            parts0[i], failure0 = _scores(scorer, outputs0)
            parts1[i], failure1 = _scores(scorer, outputs1)
            if failure0 or failure1:
                failures[i] = failure0 or failure1
        scores0, scores1 = self._mean(parts0, len(outputs0)), self._mean(parts1, len(outputs1))
        for i in parts0:
            self._losses[i] += _log_loss(parts0[i], parts1[i])
        self._combined_loss += _log_loss(scores0, scores1)
        self._scored += len(outputs0)
        for i, failure in failures.items():
            self._drop(i, failure)
        return scores0, scores1

    def learn(self, outputs0: Array, outputs1: Array) -> None:
        """Remember outputs; fit anew when enough have come together."""
        self._blocks.append((outputs0, outputs1))
        self.trials += len(outputs0)
        if self.trials < self.next_fit:
            return
        self.next_fit = max(self.trials + 3, math.ceil(self.trials * _GROWTH))
        seen0, seen1 = (np.concatenate([block[side] for block in self._blocks]) for side in (0, 1))
        self._blocks = [(seen0, seen1)]
        seen0, seen1 = seen0[-_MOST_ROWS:], seen1[-_MOST_ROWS:]
        self._scorers = {}
        for index, attack in enumerate(self.attacks):
            if index not in self._dropped and self._suits(attack, seen0, seen1):
                self._fit(index, attack, seen0, seen1)

    def _suits(self, attack: Attack, seen0: Array, seen1: Array) -> bool:
        suits = getattr(attack, "suits", None)
        return suits is None or len(self.attacks) == 1 or bool(suits(seen0, seen1))

    def _fit(self, index: int, attack: Attack, seen0: Array, seen1: Array) -> None:
        rng = stream(self.seed, "fit", self.pair, index, self.trials)
        try:
            scorer = attack.fit(seen0, seen1, rng)
            if not getattr(attack, "calibrated", False):
                scorer = _calibrated(attack, scorer, seen0, seen1, rng)
        except Exception as error:  # an attack's mistake must not end the audit
            self._drop(index, f"raised {type(error).__name__} in fit: {error}")
            return
        if not _pointwise(scorer, seen0):
            self._drop(
                index, "gave an output another score in other company; a score may depend on its own output alone"
            )
            return
        self._scorers[index] = scorer
        self._losses.setdefault(index, self._combined_loss)  # a newcomer is taken for average

    def _mean(self, parts: dict[int, Array], n: int) -> Array:
        return sum((weight * parts[i] for i, weight in self.weights().items()), np.zeros(n))

    def _drop(self, index: int, why: str) -> None:
        self._dropped.add(index)
        self._scorers.pop(index, None)
        self.warnings.append(f"attack {self.attacks[index].name} was dropped after {self.trials} trials: it {why}")


def _scores(scorer: Scorer, outputs: Array) -> tuple[Array, str]:
    """A scorer's values, 0 for outputs on which it fails, and what it did wrong, if anything."""
    try:
        values = np.asarray(scorer(outputs), dtype=np.float64)
        failure = "" if values.shape == (len(outputs),) else f"returned scores of shape {values.shape}"
    except Exception as error:  # an attack's mistake must not end the audit
        values, failure = np.zeros(0), f"raised {type(error).__name__} when scoring: {error}"
    if failure and len(outputs) > 1:  # find out on which outputs, one by one
        values = np.concatenate([_scores(scorer, outputs[i : i + 1])[0] for i in range(len(outputs))])
    elif failure:
        values = np.zeros(len(outputs))
    elif np.isnan(values).any():
        failure = "returned NaN"
        values = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.clip(values, -_CERTAIN, _CERTAIN), failure


def _pointwise(scorer: Scorer, outputs: Array) -> bool:
    """Whether a few outputs get the same scores alone as together, up to rounding."""
    probe = outputs[:: max(1, len(outputs) // 3)]
    alone = np.concatenate([_scores(scorer, probe[i : i + 1])[0] for i in range(len(probe))])
    return np.allclose(_scores(scorer, probe)[0], alone, rtol=1e-9, atol=1e-9)


def _log_loss(scores0: Array, scores1: Array) -> float:
    """Log-loss of the probabilities 1 / (1 + e^-score) that an output came from d1, summed over both sides."""
    return float(np.logaddexp(0.0, scores0).sum() + np.logaddexp(0.0, -scores1).sum())


def _calibrated(attack: Attack, scorer: Scorer, seen0: Array, seen1: Array, rng: np.random.Generator) -> Scorer:
    """The scorer followed by a logistic curve, Platt 1999, fitted to scores of outputs left out in three folds."""
    from sklearn.linear_model import LogisticRegression

    folds = 3
    held0, held1 = np.empty(len(seen0)), np.empty(len(seen1))
    for fold in range(folds):
        out0, out1 = (np.arange(len(seen)) % folds == fold for seen in (seen0, seen1))
        part = attack.fit(seen0[~out0], seen1[~out1], rng)
        held0[out0], held1[out1] = part(seen0[out0]), part(seen1[out1])
    held = np.concatenate([held0, held1])
    finite = held[np.isfinite(held)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    centre, spread = (float(np.median(finite)), float(np.std(finite)) or 1.0) if len(finite) else (0.0, 1.0)

    def design(scores: Array) -> Array:
        """The score on a common scale, and whether it was beyond all that was ever finite."""
        inside = (np.clip(scores, low, high) - centre) / spread
        return np.column_stack([inside, scores == np.inf, scores == -np.inf])

    model = LogisticRegression(C=1.0, solver="newton-cholesky").fit(
        design(held), np.repeat([0, 1], [len(held0), len(held1)])
    )

    def calibrated(outputs: Array) -> Array:
        scores = np.asarray(scorer(outputs), dtype=np.float64)
        if scores.shape != (len(outputs),) or np.any(np.isnan(scores)):
            return scores  # reported by the caller
        return np.asarray(model.decision_function(design(scores)))

    return calibrated
