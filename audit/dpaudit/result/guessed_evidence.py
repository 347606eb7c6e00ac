"""Defines the common base class of evidence that counts guesses instead of scores in bins."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores.families import Family, largest_refuted
from dpaudit.inference.sequential.planned import Planned
from dpaudit.numerics.arrays import Array
from dpaudit.values import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessedEvidence(ABC):
    """A number of guesses, fixed before the scores were seen, and the number of right guesses."""

    method: ClassVar[str]
    anytime: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    frozen: ClassVar[bool] = False
    of_pairs: ClassVar[bool] = False
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

    def band(self, *, confidence: float, bounds_valid: bool) -> None:
        """Return None, because evidence of this kind does not hold the scores."""
        return

    def pair_log_e(self, claim: TradeoffFunction) -> None:
        """Return None, because evidence of this kind counts no outputs of pairs."""
        return

    @abstractmethod
    def tested(self, claim: TradeoffFunction) -> TradeoffFunction:
        """Return the form of a claim that the evidence tests."""

    @abstractmethod
    def p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value of a claim in the form that `tested` returns."""

    def stated_p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value that the result of the audit states."""
        return self.p_value(claim)

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return the parameter of the largest member of a nested family that the evidence refutes.

        The p-value does not fall as claims weaken, so the lemma of `families.largest_refuted` applies.  For scores of
        one run without assumptions, the corollary of `inference.scores.tight` replaces the lemma.
        """
        return largest_refuted(
            family, lambda claim: self.p_value(self.tested(claim)), significance=significance, precision=precision
        )

    @abstractmethod
    def chance(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        """Return the maximum probability of at least `right` right guesses under a claim."""

    @abstractmethod
    def attained(self, truth: TradeoffFunction, right: int) -> float:
        """Return the probability of at least `right` right guesses for a mechanism whose trade-off curve is `truth`."""

    @abstractmethod
    def least_right(self, claim: TradeoffFunction, *, confidence: float) -> int | None:
        """Return the least number of right guesses that refutes a claim; None if no number refutes the claim."""

    @property
    def planned(self) -> Planned | None:
        """None, because evidence of this kind has no bets."""
        return None

    def to_json(self) -> JsonObject:
        """Return the evidence as plain JSON values."""
        return {"method": self.method, **dataclasses.asdict(self)}
