"""A score that is final: the mixture of all attacks so far, and attacks fitted to far more outputs.

They are weighed by a logistic regression on outputs that none of them was fitted to (stacking, Wolpert 1992), unless
one of them alone would have won clearly more against the claim there (`experts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpaudit.learning.attack import Scorer
from dpaudit.learning.selection import Experts
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.logistic import fit_logistic


@dataclass(frozen=True, slots=True)
class Stacked:
    """Scores of the mixture and of refitted attacks, (n, 1 + m), times slopes, as log-likelihood ratios."""

    refitted: Mapping[int, Scorer]  # m attacks and what they learned
    slopes: Array  # (1 + m,)
    intercept: float
    shares: Array  # (1 + m,), of the spread of the score

    def __call__(self, columns: Array) -> Array:
        scores: Array = columns @ self.slopes + self.intercept
        return scores

    def weights(self, mixed: Mapping[int, float]) -> dict[int, float]:
        """Each attack's say, summing to one, if the mixture's is split as `mixed`."""
        found = {attack: float(self.shares[0]) * weight for attack, weight in mixed.items()}
        for attack, share in zip(self.refitted, self.shares[1:], strict=True):
            found[attack] = found.get(attack, 0.0) + float(share)
        return found


def stacked(refitted: Mapping[int, Scorer], columns0: Array, columns1: Array, experts: Experts | None) -> Stacked:
    """From scores (n, 1 + m) of outputs of d0 and of d1 that were new to the mixture and to all m attacks."""
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
