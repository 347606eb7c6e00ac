"""The common base of evidence that counts outputs of pairs in bins of a score."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.grid import EDGES
from dpaudit.inference.scores.families import Family, largest_refuted
from dpaudit.inference.sequential.planned import Planned
from dpaudit.numerics.arrays import Array


class CountedEvidence:
    """Counts of outputs in the score bins of `inference.grid`."""

    __slots__ = ()
    of_pairs: ClassVar[bool] = True
    once: ClassVar[bool] = False

    @property
    def edges(self) -> Array:
        """Edges of the score bins, in nats."""
        return EDGES

    @property
    def guessed(self) -> None:
        """None, because evidence of this kind counts outputs instead of guesses."""
        return None

    def tested(self, claim: TradeoffFunction) -> TradeoffFunction:
        """Return the symmetrized claim.

        Outputs test both directions of a pair with the curve of the symmetrized claim.
        """
        return claim.symmetrized()

    @property
    def planned(self) -> Planned | None:
        """None, because evidence of this kind has no bets."""
        return None

    @abstractmethod
    def p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value of a symmetrized claim."""

    def stated_p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value that the result of the audit states."""
        return self.p_value(claim)

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return the parameter of the largest member of a nested family that the evidence refutes.

        The p-value does not fall as claims weaken, so the lemma of `families.largest_refuted` applies.
        """
        return largest_refuted(
            family, lambda claim: self.p_value(self.tested(claim)), significance=significance, precision=precision
        )
