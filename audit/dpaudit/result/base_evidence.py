"""Evidence: the counts of an audit, and the conclusions that they allow about any claim, also an unknown one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.grid import BINS
from dpaudit.inference.scores.families import Family
from dpaudit.inference.sequential.bands import Band
from dpaudit.numerics import Integers
from dpaudit.values import Json, JsonObject

Counts = Integers

MAX_PAIRS = 10_000  # of an audit; each pair takes 9 kB of memory, but may take 8 bytes in a file


def sparse(sides: Counts) -> list[list[list[int]]]:
    """Convert counts of shape (2, BINS) to a list of [bin, count] for each dataset, without the empty bins."""
    return [[[int(i), int(side[i])] for i in np.flatnonzero(side)] for side in sides]


def is_whole(value: Json, most: int = 2**53) -> bool:
    """Return whether a value is a whole number from 0 to a maximum."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def dense(sides: Sequence[Sequence[tuple[int, int]]]) -> Counts:
    """Convert lists that `sparse` returned to an array of counts with shape (2, BINS)."""
    counts = np.zeros((2, BINS), dtype=np.int64)
    for side, entries in zip(counts, sides, strict=True):
        for entry in entries:
            place, count = entry if isinstance(entry, list | tuple) and len(entry) == 2 else (None, None)
            if not (is_whole(place, BINS - 1) and is_whole(count)):
                raise ValueError(
                    f"evidence must consist of [bin, count] with bins 0 to {BINS - 1} and counts >= 0, got {entry!r}"
                )
            side[place] = count
    return counts


def check_trials(counts: Counts) -> None:
    """Raise ValueError unless there are equally many outputs of both datasets."""
    if counts[0].sum() != counts[1].sum():
        raise ValueError(f"evidence must count equally many outputs of d0 and d1, got {counts.sum(axis=1).tolist()}")


def check_bins(values: Mapping[str, Json]) -> None:
    """Raise ValueError unless the counts in a result file have BINS bins."""
    if values["bins"] != BINS:
        raise ValueError(f"evidence must be counted in {BINS} bins, got {values['bins']}")


def pair_counts_of(pairs: Json, *, coin_selected: bool) -> Counts:
    """Read the counts of all pairs; shape (pairs, 2, BINS)."""
    if (many := len(pairs)) > MAX_PAIRS:
        raise ValueError(f"evidence must count {MAX_PAIRS:,} pairs at most, got {many:,}")
    counts = np.array([dense(sides) for sides in pairs], dtype=np.int64).reshape(-1, 2, BINS)
    for sides in () if coin_selected else counts:
        check_trials(sides)
    return counts


def peak_of(pairs: Json, counts: Counts, *, coin_selected: bool) -> Counts:
    """Read the counts at the interim analysis with the largest wealth."""
    peak = pair_counts_of(pairs, coin_selected=coin_selected)
    if peak.shape != counts.shape or np.any(peak > counts):
        raise ValueError("evidence must have no more counts at its peak than at its end")
    return peak


def lost_of(values: Mapping[str, Json], key: str, pairs: int) -> tuple[int, ...]:
    """Read the indices of lost pairs."""
    lost = tuple(values.get(key, ()))
    if not all(is_whole(i, pairs - 1) for i in lost):
        raise ValueError(f"evidence must name lost pairs among its {pairs} pairs, got {str(lost)[:100]}")
    return lost


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
    """The interface of every kind of evidence.  All claims are given in their symmetrized form."""

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
        """Return a lower bound on epsilon (nats) at a delta, or on mu if `delta` is None; below it, no claim holds."""

    @abstractmethod
    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return the largest refuted parameter, which exceeds a true one with probability <= `significance`."""

    def band(self, *, confidence: float, bounds_valid: bool) -> Band | None:
        """Return the attack's observed curve with the bound on the mechanism's curve, or the trivial bound; or None."""
        return None

    @abstractmethod
    def to_json(self) -> JsonObject:
        """Return the evidence as plain JSON values, with counts as `sparse` returns them."""

    @classmethod
    @abstractmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> Evidence:
        """Read evidence that `to_json` wrote."""
