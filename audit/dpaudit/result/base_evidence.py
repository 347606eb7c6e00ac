"""Defines evidence: the counts of an audit, and the conclusions about any claim that the counts allow.

Each kind of audit has one class of evidence.  The evidence can also test claims that were unknown when the audit ran.
The verdict and the bounds are computed from the counts, also from those in a result file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores.families import Family
from dpaudit.inference.sequential.bands import Band
from dpaudit.result.histograms import Counts
from dpaudit.values import Json, JsonObject


class Kind(Enum):
    """What was counted, and when the audit might stop."""

    SEQUENTIAL = "sequential"
    ONLINE = "online"
    FIXED = "fixed"
    RUNS = "runs"
    CANARIES = "canaries"
    INCLUSION = "inclusion"

    @property
    def anytime(self) -> bool:
        """Whether the verdict and all bounds hold jointly, at any stopping time; if False, each holds separately."""
        return self in (Kind.SEQUENTIAL, Kind.ONLINE)

    @property
    def frozen(self) -> bool:
        """Whether the rejection region and the number of runs were fixed before the counted outputs were sampled."""
        return self is Kind.FIXED

    @property
    def of_pairs(self) -> bool:
        """Whether outputs on pairs of datasets were counted, in rejection regions that attacks found."""
        return self.anytime or self.frozen

    @property
    def method(self) -> str:
        """The name of the class of evidence in result files."""
        return self.value if self.of_pairs else "scores"


class Evidence(ABC):
    """The interface of every kind of evidence.

    All claims are given in their symmetrized form.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """The kind of audit, from which its words and its guarantee follow."""

    @property
    @abstractmethod
    def trials(self) -> int:
        """Number of counted runs on each dataset, without the runs that were only used to train attacks."""

    @property
    def histograms(self) -> tuple[Counts, ...]:
        """The counts of every pair that has counts, each of shape (2, BINS)."""
        return ()

    @abstractmethod
    def p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value of a claim."""

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        """Whether the evidence refutes a claim; if it is true, this has probability at most 1 - confidence."""
        return self.p_value(claim) <= 1 - confidence

    @abstractmethod
    def lower(self, delta: float | None, *, confidence: float) -> float:
        """Return a lower bound on epsilon (nats) at a delta, or on mu if `delta` is None.

        The mechanism is not (epsilon, delta)-DP, or not mu-GDP, for any parameter below the bound.
        """

    @abstractmethod
    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return the parameter of the largest member of a nested family that the evidence refutes.

        If family(t) is true, the bound exceeds t with probability at most `significance`.
        """

    def band(self, *, confidence: float, bounds_valid: bool) -> Band | None:
        """Return the attack's observed curve with the bound on the mechanism's curve, or the trivial bound; or None."""
        return None

    @abstractmethod
    def to_json(self) -> JsonObject:
        """Return the evidence as plain JSON values; counts become lists of [bin, count], without the empty bins."""

    @classmethod
    @abstractmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> Evidence:
        """Read evidence that `to_json` wrote."""
