"""Defines evidence: the counts of an audit, and the conclusions about any claim that the counts allow.

Each kind of audit has one class of evidence.  The evidence can also test claims that were unknown when the audit ran.
The verdict and the bounds can be recomputed from the counts in a result file.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.grid import EDGES
from dpaudit.inference.scores.families import Family, largest_refuted
from dpaudit.inference.sequential.bands import Band
from dpaudit.inference.sequential.planned import Planned
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect_integers
from dpaudit.result.histograms import Counts, sha256
from dpaudit.result.words import Words
from dpaudit.values import Json, JsonObject

if TYPE_CHECKING:
    from dpaudit.result.confirmation import Confirmation

# maximum count in a result file; no memory holds more scores, and bounds for 2**50 scores would take minutes
MAX_SCORES = 2**36


class Evidence(ABC):
    """The interface of every kind of evidence, with the answers of evidence that counts outputs of pairs.

    For a sequential audit, the p-values and bounds of all methods hold jointly with the stated confidence.  For other
    audits, each p-value and each bound holds separately.
    """

    __slots__ = ()
    method: ClassVar[str]  # name of this kind of evidence in result files
    # whether the audit may stop as soon as it refutes its claim; p-values and bounds allow for such stopping
    anytime: ClassVar[bool] = False
    # whether the verdict and all bounds hold jointly at the stated confidence; if False, each holds separately
    joint: ClassVar[bool] = False
    # whether the rejection region and the number of runs were fixed before the counted outputs were sampled
    frozen: ClassVar[bool] = False
    # whether the evidence counts outputs on pairs of datasets, in rejection regions that attacks found
    of_pairs: ClassVar[bool] = True
    once: ClassVar[bool] = False  # whether the mechanism was run only once
    words: ClassVar[Words]  # sentences of reports about this kind of evidence

    @property
    @abstractmethod
    def trials(self) -> int:
        """Number of counted runs on each dataset, without the runs that were only used to train attacks."""

    @property
    def edges(self) -> Array:
        """Edges of the score bins: bin i counts the scores with edges[i - 1] < score <= edges[i]; none for guesses."""
        return EDGES

    @property
    def guessed(self) -> ScoresGuesses | None:
        """The guesses about canaries; None if the evidence counts outputs."""
        return None

    @property
    def planned(self) -> Planned | None:
        """The violations for which a share of the bets was planned; None if there are no such bets."""
        return None

    @property
    def confirmation(self) -> Confirmation | None:
        """The fresh runs after a refutation; None if there are none."""
        return None

    @property
    def histograms(self) -> tuple[Counts, ...]:
        """The counts of every pair that has counts, each of shape (2, BINS)."""
        return ()

    def of_pair(self, pair: int | None) -> Counts | None:
        """Return the counts of scores on the pair with an index, (2, BINS); None if there are none."""
        return None

    def tested(self, claim: TradeoffFunction) -> TradeoffFunction:
        """Return the form of a claim that the evidence tests."""
        return claim.symmetrized()

    @abstractmethod
    def p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value of a claim in the form that `tested` returns."""

    def stated_p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value of the audited claim that the result states."""
        return self.p_value(claim)

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return the parameter of the largest member of a nested family that the evidence refutes.

        If family(t) is true, the bound exceeds t with probability at most `significance`.  The p-value does not fall as
        claims weaken, so the lemma of `families.largest_refuted` applies.  For scores of one run without assumptions,
        the corollary of `inference.scores.tight` replaces the lemma.
        """
        return largest_refuted(
            family, lambda claim: self.p_value(self.tested(claim)), significance=significance, precision=precision
        )

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        """Whether the evidence refutes a claim; if it is true, this has probability at most 1 - confidence."""
        return self.p_value(claim) <= 1 - confidence

    @abstractmethod
    def mu_lower(self, *, confidence: float) -> float:
        """Return a lower bound on mu: the mechanism is not mu-GDP for any mu below the bound."""

    @abstractmethod
    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        """Return a lower bound on epsilon (nats): the mechanism is not (epsilon, delta)-DP for any smaller epsilon."""

    def band(self, *, confidence: float, bounds_valid: bool) -> Band | None:
        """Return the attack's observed curve with the bound on the mechanism's curve, or the trivial bound; or None."""
        return None

    def pair_log_e(self, claim: TradeoffFunction) -> list[float] | None:
        """Return the log-wealth of each pair, if bets had been placed on that pair only; None if it is unknown."""
        return None

    @abstractmethod
    def fingerprint(self) -> str:
        """Return the SHA-256 hash of the counts, in hexadecimal."""

    @abstractmethod
    def to_json(self) -> JsonObject:
        """Return the evidence as plain JSON values; counts become lists of [bin, count], without the empty bins."""

    @classmethod
    @abstractmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> Evidence:
        """Read evidence that `to_json` wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresGuesses(Evidence):
    """Guesses about runs or canaries that are derived from their scores, and the number of right guesses."""

    of_pairs: ClassVar[bool] = False
    theory: ClassVar[ModuleType]  # the module with the theorems: its `mu_lower` and `epsilon_lower` take `counts`
    attained_if: ClassVar[str] = "scores are likelihood ratios, independent of each other"
    """The condition, in words, under which a mechanism has the probability that `attained` returns."""
    guesses: int  # number of guesses, fixed before the scores were seen
    right: int

    @property
    def edges(self) -> Array:
        return np.zeros(0)

    @property
    def guessed(self) -> Self:
        return self

    @property
    @abstractmethod
    def canaries(self) -> int:
        """Number of scores: one for each run, or one for each canary."""

    @property
    @abstractmethod
    def by_chance(self) -> float:
        """Expected number of right guesses if the scores were independent of the dataset."""

    @property
    @abstractmethod
    def counts(self) -> tuple[Any, ...]:
        """The counts from which the functions of `theory` compute bounds."""

    @property
    def p_value_factor(self) -> float:
        """The factor of all p-values, which is above 1 if the included number may have been fixed beforehand."""
        return 1.0

    def level(self, confidence: float) -> float:
        """Return the significance level of bounds: 1 - confidence, divided by the factor of p-values."""
        return (1 - confidence) / self.p_value_factor

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
        """Number of independent chances to see a rare event; by default, all canaries of a run share one chance."""
        return self.trials

    @property
    def number_note(self) -> str:
        """Note for the report if the number of included canaries may have been fixed beforehand; otherwise ""."""
        return ""

    def coins_p_value(self, sizes: tuple[int, int]) -> float:
        """Return a p-value of the hypothesis that fair coins decided the inclusions; 1 if no coins decided them."""
        return 1.0

    @property
    def outcome(self) -> str:
        """A description of the number of right guesses."""
        return f"{self.right:,} of {self.guesses:,} guesses right"

    def largest_epsilon(self, *, confidence: float) -> float:
        """Return the lower bound on epsilon at delta = 0 that the audit would certify if all guesses were right."""
        return dataclasses.replace(self, right=self._most).epsilon_lower(0.0, confidence=confidence)

    @abstractmethod
    def chance(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        """Return the maximum probability of at least `right` right guesses under a claim."""

    @abstractmethod
    def attained(self, truth: TradeoffFunction, right: int) -> float:
        """Return the probability of at least `right` right guesses for a mechanism whose trade-off curve is `truth`."""

    def p_value(self, claim: TradeoffFunction) -> float:
        return self.chance(claim, self.right)

    def mu_lower(self, *, confidence: float) -> float:
        return float(self.theory.mu_lower(*self.counts, significance=self.level(confidence)))

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        if delta >= 1:
            return 0.0
        return float(self.theory.epsilon_lower(*self.counts, delta=delta, significance=self.level(confidence)))

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

    def to_json(self) -> JsonObject:
        return {"method": self.method, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], target: TradeoffFunction) -> Self:
        counts = {field.name: int(values[field.name]) for field in dataclasses.fields(cls)}
        if min(counts.values()) < 0 or max(counts.values()) > MAX_SCORES:
            raise ValueError(f"evidence must have counts of {MAX_SCORES:,} at most, and 0 at least, got {counts}")
        found = cls(**counts)
        if not (found.guesses <= found.canaries and found._least <= found.right <= found._most):
            raise ValueError(f"evidence must have right <= guesses <= scores, got {counts}")
        if counts.get("half", 0) not in (0, 1) or counts.get("included", 0) > found.canaries:
            raise ValueError(f"evidence must have half = 0 or 1, and no more included canaries than canaries: {counts}")
        return found
