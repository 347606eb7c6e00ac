"""Combines the mixture of all attacks with attacks that were fitted to far more outputs into the final score.

A logistic regression on held-out outputs determines the weights (stacking, Wolpert 1992).  If bets on the scores of one
component alone would have won clearly more against the claim, this component is the final score (`selection`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpaudit.learning.attack import Scorer
from dpaudit.learning.selection import Experts
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.logistic import fit_logistic, linear


@dataclass(frozen=True, slots=True)
class Stacked:
    """A score that is an affine function of the score by the mixture and of the scores by m refitted attacks."""

    refitted: Mapping[int, Scorer]  # attack index -> scorer, for the m refitted attacks
    slopes: Array  # (1 + m,), coefficients of the score by the mixture and of the scores by the refitted attacks
    intercept: float
    shares: Array  # (1 + m,), share of each component in the spread of the stacked score; the shares sum to 1

    def __call__(self, columns: Array) -> Array:
        """Compute the stacked scores (n,) of n outputs from their scores (n, 1 + m) by the components."""
        return linear(columns, self.slopes) + self.intercept

    def weights(self, mixed: Mapping[int, float]) -> dict[int, float]:
        """Return the weight of each attack in the stacked score, given its weight in the mixture; the sum is 1."""
        found = {attack: float(self.shares[0]) * weight for attack, weight in mixed.items()}
        for attack, share in zip(self.refitted, self.shares[1:], strict=True):
            found[attack] = found.get(attack, 0.0) + float(share)
        return found


def stacked(refitted: Mapping[int, Scorer], columns0: Array, columns1: Array, experts: Experts | None) -> Stacked:
    """Fit the coefficients of a stacked score to the scores of held-out outputs.

    Returns:
        The stacked score.
    """
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
