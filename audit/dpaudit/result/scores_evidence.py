"""Evidence from scores of another program: counts of right guesses about runs, or about the canaries of one run.

The classes differ in their assumptions about the scores, and use different theorems: `inference.scores.runs`,
`inference.scores.confident` and `inference.scores.tight`.  The module `fixed_number_evidence` covers designs that
include a fixed number of canaries.  The module `several_runs_evidence` covers canaries of several runs.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.inference.scores import both_sides, confident, runs, tight
from dpaudit.inference.scores.dependence import coins_p_value, number_factor
from dpaudit.numerics.bisect import bisect_integers
from dpaudit.result.guessed_evidence import GuessedEvidence
from dpaudit.result.histograms import sha256
from dpaudit.result.scores_words import OF_ANY_CANARIES, OF_CANARIES, OF_RUNS
from dpaudit.result.words import Words
from dpaudit.text.rounding import lower

# maximum count in a result file; no memory holds more scores, and bounds for 2**50 scores would take minutes
MAX_SCORES = 2**36

HALF_ADVICE = (
    "this is valid for coins and for a uniformly random half, but not if pairs or groups of canaries were each split "
    'in half; if the number was fixed, say included_at_random="fixed_number"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresGuesses(GuessedEvidence, ABC):
    """Guesses about runs or canaries that are derived from their scores."""

    words: ClassVar[Words]
    once: ClassVar[bool]
    attained_if: ClassVar[str] = "scores are likelihood ratios, independent of each other"
    """The condition, in words, under which a mechanism has the probability that `attained` returns."""

    @property
    @abstractmethod
    def canaries(self) -> int:
        """Number of scores: one for each run, or one for each canary."""

    @property
    @abstractmethod
    def by_chance(self) -> float:
        """Expected number of right guesses if the scores were independent of the dataset."""

    @property
    def trials(self) -> int:
        """Number of runs on each dataset; 1 for canaries, because all canaries share one run."""
        return 1

    @property
    @abstractmethod
    def about(self) -> str:
        """A description of the runs or canaries to which the scores belong."""

    @property
    @abstractmethod
    def cuts(self) -> tuple[int, ...] | None:
        """Places in the ascending order of scores where guesses begin or end; None if each run has separate places."""

    @property
    def tries(self) -> int:
        """Number of independent chances to see a rare event that identifies a record.

        By default, each run is one chance, which all of its canaries share.
        """
        return self.trials

    @property
    def number_note(self) -> str:
        """Note for the report if the number of included canaries may have been fixed beforehand; otherwise ""."""
        return ""

    def coins_p_value(self, sizes: tuple[int, int]) -> float:
        """Return a p-value of the hypothesis that fair coins decided which canaries were included.

        The p-value is 1 if no coins decided the inclusions.
        """
        return 1.0

    @property
    def outcome(self) -> str:
        """A description of the number of right guesses."""
        return f"{self.right:,} of {self.guesses:,} guesses right"

    def largest_epsilon(self, *, confidence: float) -> float:
        """Return the lower bound on epsilon at delta = 0 that the audit would certify if all guesses were right."""
        return dataclasses.replace(self, right=self._most).epsilon_lower(0.0, confidence=confidence)

    @abstractmethod
    def mu_lower(self, *, confidence: float) -> float:
        """Return a lower bound on mu: the mechanism is not mu-GDP for any mu below the bound."""

    @abstractmethod
    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        """Return a lower bound on epsilon (nats): the mechanism is not (epsilon, delta)-DP for any smaller epsilon."""

    def tested(self, claim: TradeoffFunction) -> TradeoffFunction:
        return claim.symmetrized()

    def p_value(self, claim: TradeoffFunction) -> float:
        return self.chance(claim, self.right)

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        return self.p_value(claim) <= 1 - confidence

    def least_right(self, claim: TradeoffFunction, *, confidence: float) -> int | None:
        """Return the least number of right guesses that refutes a claim; None if no number refutes the claim."""
        significance = 1 - confidence
        if not self.chance(claim, self._most, enough=significance) <= significance:
            return None
        return bisect_integers(
            lambda v: self.chance(claim, v, enough=significance) <= significance, self._most, self._least
        ).inside

    @property
    def _most(self) -> int:
        """Maximum possible number of right guesses."""
        return self.guesses

    @property
    def _least(self) -> int:
        """Minimum possible number of right guesses, which never refutes a claim."""
        return 0

    def fingerprint(self) -> str:
        return sha256(np.array(list(dataclasses.astuple(self))))

    @classmethod
    def from_json(cls, values: Mapping[str, Any], target: TradeoffFunction) -> Self:
        counts = {field.name: int(values[field.name]) for field in dataclasses.fields(cls)}
        if min(counts.values()) < 0:
            raise ValueError(f"evidence must have counts of 0 or more, got {counts}")
        if max(counts.values()) > MAX_SCORES:
            raise ValueError(f"evidence must have counts of {MAX_SCORES:,} at most, got {counts}")
        found = cls(**counts)
        if not (found.guesses <= found.canaries and found._least <= found.right <= found._most):
            raise ValueError(f"evidence must have right <= guesses <= scores, got {counts}")
        if counts.get("half", 0) not in (0, 1):
            raise ValueError(f"evidence must have half = 0 or 1, got {counts}")
        if counts.get("included", 0) > found.canaries:
            raise ValueError(f"evidence must not have more included canaries than canaries, got {counts}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScoresEvidence(ScoresGuesses):
    """Scores of independent runs, with the number of runs on d1 among the highest scores; see `scores.runs`."""

    method: ClassVar[str] = "scores_of_runs"
    words: ClassVar[Words] = OF_RUNS
    attained_if: ClassVar[str] = "scores are likelihood ratios"
    once: ClassVar[bool] = False
    n0: int  # number of runs on d0
    n1: int  # number of runs on d1

    @property
    def canaries(self) -> int:
        return self.n0 + self.n1

    @property
    def cuts(self) -> tuple[int, ...]:
        return (self.canaries - self.guesses,)

    @property
    def tries(self) -> int:
        return min(self.n0, self.n1)

    @property
    def by_chance(self) -> float:
        return self.guesses * self.n1 / max(1, self.canaries)

    @property
    def trials(self) -> int:
        return max(self.n0, self.n1)

    def chance(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return runs.p_value(claim, self.n0, self.n1, self.guesses, right)

    def attained(self, truth: TradeoffFunction, right: int) -> float:
        return runs.attained(truth, self.n0, self.n1, self.guesses, right)

    @property
    def about(self) -> str:
        return f"{self.n0:,} runs on d0, {self.n1:,} on d1"

    @property
    def outcome(self) -> str:
        return f"{self.right:,} of the {self.guesses:,} highest scores are of d1"

    @property
    def _most(self) -> int:
        return min(self.guesses, self.n1)

    @property
    def _least(self) -> int:
        return max(0, self.guesses - self.n0)

    def mu_lower(self, *, confidence: float) -> float:
        return runs.mu_lower(self.n0, self.n1, self.guesses, self.right, significance=1 - confidence)

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        counts = (self.n0, self.n1, self.guesses, self.right)
        return runs.epsilon_lower(*counts, delta=delta, significance=1 - confidence) if delta < 1 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryGuesses(ScoresGuesses):
    """Guesses about the canaries of one run, where an independent fair coin decided each inclusion."""

    once: ClassVar[bool] = True
    m: int  # number of canaries
    included: int  # number of included canaries
    # 1 if half of all canaries (rounded), including those only used to train attacks, were included; otherwise 0.  If
    # 1, the number of included canaries may have been fixed beforehand.
    half: int

    @property
    def canaries(self) -> int:
        return self.m

    @property
    def cuts(self) -> tuple[int, ...]:
        return both_sides.cuts(self.m, self.guesses)

    @property
    def by_chance(self) -> float:
        return self.guesses / 2

    def coins_p_value(self, sizes: tuple[int, int]) -> float:
        return coins_p_value(*sizes)

    def chance(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        factor = self.p_value_factor
        return min(1.0, factor * self.under_coins(claim, right, enough=enough / factor))

    @abstractmethod
    def under_coins(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        """Return the value of `chance` for independent fair coins that decided which canaries were included."""

    @property
    def p_value_factor(self) -> float:
        """The factor of all p-values.

        The factor is above 1 if the number of included canaries may have been fixed beforehand.
        """
        return number_factor(self.m, self.included) if self.half else 1.0

    @property
    def number_note(self) -> str:
        if not self.half:
            return ""
        return (
            "half of the canaries were included (rounded if their number is odd); this number may have been fixed "
            "beforehand, so the p-value is divided by the probability with which fair coins include this number, "
            f"{lower(1 / self.p_value_factor, 3)}; " + HALF_ADVICE
        )

    @property
    def _counted(self) -> tuple[int, int, int]:
        return self.m, self.guesses, self.right

    def _level(self, confidence: float) -> float:
        """Return the significance level of bounds: 1 - confidence, divided by the factor of p-values."""
        return (1 - confidence) / self.p_value_factor

    def attained(self, truth: TradeoffFunction, right: int) -> float:
        included = self.included if self.half else None  # None: coins decided
        return both_sides.attained(truth, self.m, (self.guesses,), right, included=included)

    @property
    def about(self) -> str:
        return f"each of {self.m:,} canaries in or out"


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryScoresEvidence(CanaryGuesses):
    """Scores of the canaries of one run, assumed to be independent given the coins; see `scores.confident`."""

    method: ClassVar[str] = "scores_of_canaries"
    words: ClassVar[Words] = OF_CANARIES

    @property
    def tries(self) -> int:
        return min(self.included, self.m - self.included)

    def under_coins(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return confident.p_value(claim, self.m, self.guesses, right)

    def mu_lower(self, *, confidence: float) -> float:
        return confident.mu_lower(*self._counted, significance=self._level(confidence))

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        if delta >= 1:
            return 0.0
        return confident.epsilon_lower(*self._counted, delta=delta, significance=self._level(confidence))


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunScoresEvidence(CanaryGuesses):
    """Scores of the canaries of one run, with arbitrary dependence; see `scores.tight`."""

    method: ClassVar[str] = "scores_of_one_run"
    words: ClassVar[Words] = OF_ANY_CANARIES

    def under_coins(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return tight.p_value(claim, self.m, self.guesses, right, enough=enough)

    def mu_lower(self, *, confidence: float) -> float:
        return tight.mu_lower(*self._counted, significance=self._level(confidence))

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        """Return the bound of the module `one_run`, which is the largest valid bound for (epsilon, delta)-DP claims."""
        return one_run.epsilon_lower_exact(*self._counted, delta=delta, significance=self._level(confidence))
