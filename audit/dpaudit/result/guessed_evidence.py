"""Defines the common base class of evidence that counts guesses instead of scores in bins."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores.families import Family, largest_refuted
from dpaudit.numerics.arrays import Array
from dpaudit.values import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessedEvidence:
    """A number of guesses, fixed before the scores were seen, and the number of right guesses."""

    method: ClassVar[str]
    anytime: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    frozen: ClassVar[bool] = False
    of_pairs: ClassVar[bool] = False
    slow: ClassVar[bool] = False
    inverted: ClassVar[bool] = False
    guesses: int
    right: int

    @property
    def edges(self) -> Array:
        """An empty array, because evidence of this kind counts guesses instead of scores."""
        return np.zeros(0)

    @property
    def guessed(self) -> Self:
        """The evidence itself, which contains the guesses."""
        return self

    @property
    def histograms(self) -> tuple[()]:
        """An empty tuple, because evidence of this kind counts no scores."""
        return ()

    def of_pair(self, pair: int | None) -> None:
        """Return None, because evidence of this kind counts no outputs of pairs."""
        return

    @abstractmethod
    def tested(self, claim: TradeoffFunction) -> TradeoffFunction:
        """Return the form of a claim that the evidence tests."""

    @abstractmethod
    def p_value(self, claim: TradeoffFunction, path: Array | None = None) -> float:
        """Return the p-value of a claim in the form that `tested` returns."""

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return the parameter of the largest member of a nested family that the evidence refutes.

        The p-value does not fall as claims weaken, so the lemma of `families.largest_refuted` applies.  For scores of
        one run without assumptions, the corollary of `inference.scores.tight` replaces the lemma.
        """
        return largest_refuted(
            family, lambda claim: self.p_value(self.tested(claim)), significance=significance, precision=precision
        )

    def ends_at_its_peak(self, path: Array) -> bool:
        """Return True, because guesses are tested only once, without a path of the wealth."""
        return True

    def to_json(self) -> JsonObject:
        """Return the evidence as plain JSON values."""
        return {"method": self.method, **dataclasses.asdict(self)}
