"""What evidence of counted outputs has in common: outputs of pairs are counted in bins of a score."""

from __future__ import annotations

from typing import ClassVar

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.grid import EDGES
from dpaudit.numerics.arrays import Array


class CountedEvidence:
    """Counts of outputs in the bins of `inference.grid`."""

    __slots__ = ()
    of_pairs: ClassVar[bool] = True
    once: ClassVar[bool] = False

    @property
    def edges(self) -> Array:
        """Edges of the bins, in nats."""
        return EDGES

    @property
    def guessed(self) -> None:
        """None, because outputs are counted and not guesses."""
        return None

    def tested(self, claim: TradeoffFunction) -> TradeoffFunction:
        """Return the claim for both directions of a pair in one curve, which is what outputs can refute."""
        return claim.symmetrized()
