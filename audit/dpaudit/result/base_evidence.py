"""Defines evidence: the counts of an audit, and the conclusions about any claim that the counts allow.

Each kind of audit has one class of evidence.  The evidence can also test claims that were unknown when the audit ran.
The verdict and the bounds can be recomputed from the counts in a result file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.grid import EDGES
from dpaudit.inference.scores.families import Family, largest_refuted
from dpaudit.inference.sequential.bands import Band
from dpaudit.inference.sequential.planned import Planned
from dpaudit.numerics.arrays import Array
from dpaudit.result.histograms import Counts
from dpaudit.result.words import Words
from dpaudit.values import Json, JsonObject

if TYPE_CHECKING:
    from dpaudit.result.confirmation import Confirmation


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

    @property
    @abstractmethod
    def words(self) -> Words:
        """Sentences of reports about this kind of evidence."""

    @property
    def once(self) -> bool:
        """Whether the mechanism was run only once."""
        return False

    @property
    @abstractmethod
    def trials(self) -> int:
        """Number of counted runs on each dataset, without the runs that were only used to train attacks."""

    @property
    def edges(self) -> Array:
        """Edges of the score bins: bin i counts the scores with edges[i - 1] < score <= edges[i]; none for guesses."""
        return EDGES

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
        claims weaken, so the lemma of `families.largest_refuted` applies.
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
