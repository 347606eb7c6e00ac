"""Combines the scores of several attacks into one score, by mixture weights or by the selection of one attack.

The combined score is the weighted mean of the attacks' log-likelihood ratios, with predictive model weights
(`weights`).  If bets on the scores of one attack alone would have won clearly more against the claim, the scores of
this attack are used instead of the mean (`selection`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from dpaudit.learning.score import weighted_mean
from dpaudit.learning.selection import Experts
from dpaudit.learning.settings import FIRST_FIT
from dpaudit.learning.weights import ModelWeights, log_loss
from dpaudit.numerics.arrays import Array


@dataclass(eq=False)
class Mixing:
    """The record of how well each attack has predicted the datasets of unseen outputs."""

    experts: Experts | None  # object that may select one attack to be used alone; None to always use the mixture
    choice_growth: float  # factor by which the number of trials must grow before the selection is revised
    head_starts: Mapping[int, float] = field(default_factory=dict)  # attack index -> head start in nats; 0 by default
    model_weights: ModelWeights = field(init=False)
    _next_choice: int = field(default=FIRST_FIT, init=False)

    def __post_init__(self) -> None:
        self.model_weights = ModelWeights(self.head_starts)

    @property
    def chosen_expert(self) -> int | None:
        """The index of the attack whose scores alone are bet on; None if bets use the mixture."""
        return None if self.experts is None else self.experts.chosen_expert

    def weights(self, attacks: Collection[int]) -> dict[int, float]:
        """Return the weights of the given attacks; the weights sum to 1."""
        if self.chosen_expert in attacks:
            return {i: float(i == self.chosen_expert) for i in attacks}
        return self.model_weights.weights(list(attacks))

    def judge(self, parts0: Mapping[int, Array], parts1: Mapping[int, Array], *, alone: bool) -> None:
        """Update the losses of the attacks by their scores of fresh outputs."""
        weights = self.model_weights.weights(list(parts0))
        n = len(next(iter(parts0.values())))
        mixture = weighted_mean(parts0, weights, n), weighted_mean(parts1, weights, n)
        losses = {i: log_loss(parts0[i], parts1[i]) for i in parts0}
        self.model_weights.count(losses, log_loss(*mixture), n)
        if self.experts is not None and not alone:
            self.experts.count({i: (parts0[i], parts1[i]) for i in parts0}, mixture)

    def choose(self, attacks: Collection[int], trials: int) -> list[int]:
        """Select the mixture or one attack for the next bets, and suspend attacks with large losses.

        Returns:
            The indices of the attacks that this call has suspended.
        """
        if self.experts is not None and trials >= self._next_choice:
            self.experts.judge(attacks)
            self._next_choice = math.ceil(trials * self.choice_growth)
        ahead = self.experts.ahead if self.experts is not None else frozenset()
        suspended = self.model_weights.suspend(list(attacks), trials, spared=ahead)
        for attack in suspended:
            if self.experts is not None:
                self.experts.forget(attack)
        return suspended
