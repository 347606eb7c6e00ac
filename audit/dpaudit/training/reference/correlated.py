"""DP-FTRL with a matrix factorisation: the noise of a step partly cancels that of earlier steps.

Denisov, McMahan, Rush, Smith & Thakurta 2022, arXiv 2202.08312; for records in every batch, Choquette-Choo, McMahan,
Rush & Thakurta 2023, arXiv 2211.06530.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpaudit.claims import GaussianDP, TradeoffFunction
from dpaudit.numerics import Array
from dpaudit.training.reference.trainer import FULL, State, Trainer


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrelatedTrainer(Trainer):
    """A trainer whose noise is C^-1 Z, where row t of Z is the independent noise of step t.

    Args:
        strategy: C, a lower triangular matrix (steps, steps) with positive diagonal.

    Raises:
        ValueError: If the strategy is not of this form, or a parameter is out of range.
    """

    strategy: Array

    def __post_init__(self) -> None:
        Trainer.__post_init__(self)
        given = np.asarray(self.strategy, dtype=np.float64)
        if given.shape != (self.steps, self.steps) or np.triu(given, 1).any() or not (np.diag(given) > 0).all():
            raise ValueError(
                f"strategy must be a lower triangular matrix ({self.steps}, {self.steps}) with positive diagonal, got "
                f"an array of shape {given.shape}"
            )

    @property
    def claim(self) -> TradeoffFunction:
        """A claim that this training satisfies if a record, which is in every batch, is added or removed.

        Row t of G, the clipped gradients of the record, has norm at most `clip`.  If C^T C has no negative entry, the
        norm of C G is largest for equal rows: `clip` times the norm of C 1.  ValueError without these conditions.
        """
        products = self.strategy.T @ self.strategy
        if self.sampling != FULL or (products < -1e-12 * np.abs(products).max()).any():
            raise ValueError("the claim of correlated noise needs full batches, and a strategy C with C^T C >= 0")
        return GaussianDP(float(np.linalg.norm(self.strategy.sum(axis=1))) / self.noise_multiplier)

    def noise(self, state: State) -> Array:
        fresh = Trainer.noise(self, state)[None]
        state.carried = fresh if state.carried is None else np.concatenate([state.carried, fresh])
        step = len(state.carried)
        return np.asarray(np.tensordot(self._inverse[step - 1, :step], state.carried, axes=1))

    @cached_property
    def _inverse(self) -> Array:
        return np.asarray(np.linalg.inv(self.strategy))
