"""From attacks to one estimate of the log-likelihood ratio, learned from past trials only.

Each attack's weight is its predictive likelihood: exp(-sum of its log-losses on outputs it had not seen), the
posterior probability of the attack under a uniform prior (Dawid 1984, prequential statistics).  The combined
score is the weighted mean of the attacks' log-likelihood ratios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.claims import Array
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

    def score(self, outputs: Array) -> Array:
        """The combined estimate of the log-likelihood ratio, (n, d) -> (n,), as of now."""
        parts = self._parts(outputs)
        return self._mean(parts, len(outputs))

    def score_fresh(self, outputs0: Array, outputs1: Array) -> tuple[Array, Array]:
        """Scores of outputs not seen before, which also tell how good each attack is."""
        parts0, parts1 = self._parts(outputs0), self._parts(outputs1)
        usable = parts0.keys() & parts1.keys()
        parts0, parts1 = ({i: parts[i] for i in sorted(usable)} for parts in (parts0, parts1))
        scores0, scores1 = self._mean(parts0, len(outputs0)), self._mean(parts1, len(outputs1))
        for i in parts0:
            self._losses[i] += _log_loss(parts0[i], parts1[i])
        self._combined_loss += _log_loss(scores0, scores1)
        self._scored += len(outputs0)
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
        self._scorers[index] = scorer
        self._losses.setdefault(index, self._combined_loss)  # a newcomer is taken for average

    def _parts(self, outputs: Array) -> dict[int, Array]:
        """Scores by attack.  One that fails is dropped."""
        parts: dict[int, Array] = {}
        for index in list(self._scorers):
            try:
                scores = np.asarray(self._scorers[index](outputs), dtype=np.float64)
            except Exception as error:
                self._drop(index, f"raised {type(error).__name__} when scoring: {error}")
                continue
            if scores.shape != (len(outputs),):
                self._drop(index, f"returned scores of shape {scores.shape} instead of ({len(outputs)},)")
            elif np.any(np.isnan(scores)):
                self._drop(index, "returned NaN")
            else:
                parts[index] = np.clip(scores, -_CERTAIN, _CERTAIN)
        return parts

    def _mean(self, parts: dict[int, Array], n: int) -> Array:
        weights = {i: w for i, w in self.weights().items() if i in parts}
        total = sum(weights.values())
        return sum((w / total * parts[i] for i, w in weights.items()), np.zeros(n))

    def _drop(self, index: int, why: str) -> None:
        self._dropped.add(index)
        self._scorers.pop(index, None)
        self.warnings.append(f"attack {self.attacks[index].name} was dropped after {self.trials} trials: it {why}")


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
