"""Defines evidence: the counts of an audit, and the conclusions about any claim that the counts allow.

Each kind of audit has one class of evidence, in a separate module.  The evidence can also test claims that were unknown
when the audit ran.  The verdict and the bounds can be recomputed from the counts in a result file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores.families import Family
from dpaudit.inference.sequential.bands import Band
from dpaudit.inference.sequential.planned import Planned
from dpaudit.numerics.arrays import Array
from dpaudit.result.canary_runs_evidence import CanariesInRunsEvidence
from dpaudit.result.fixed_evidence import FixedEvidence
from dpaudit.result.fixed_number_evidence import DrawnCanariesEvidence, DrawnRunEvidence
from dpaudit.result.histograms import Counts
from dpaudit.result.levels_evidence import CanaryLevelsEvidence
from dpaudit.result.online_evidence import OnlineEvidence
from dpaudit.result.scores_evidence import CanaryScoresEvidence, OneRunScoresEvidence, RunScoresEvidence
from dpaudit.result.sequential_evidence import SequentialEvidence
from dpaudit.result.several_runs_evidence import SeveralDrawnRunsEvidence, SeveralRunsEvidence
from dpaudit.result.weighted_evidence import WeightedGuessesEvidence
from dpaudit.result.words import Words
from dpaudit.text.rounding import count
from dpaudit.values import Json, JsonObject

__all__ = [
    "KINDS",
    "CanariesInRunsEvidence",
    "CanaryLevelsEvidence",
    "CanaryScoresEvidence",
    "Counts",
    "DrawnCanariesEvidence",
    "DrawnRunEvidence",
    "Evidence",
    "FixedEvidence",
    "Guesses",
    "OneRunScoresEvidence",
    "OnlineEvidence",
    "RunScoresEvidence",
    "SequentialEvidence",
    "SeveralDrawnRunsEvidence",
    "SeveralRunsEvidence",
    "WeightedGuessesEvidence",
    "read_back",
    "spent",
]


class Guesses(Protocol):
    """A number of guesses about which canaries were included in the data, and the number of right guesses."""

    @property
    def canaries(self) -> int:
        """Number of canaries, each of which was included with probability 1/2, independently."""
        ...

    @property
    def guesses(self) -> int:
        """Number of guesses, fixed before the run."""
        ...

    @property
    def right(self) -> int:
        """Number of right guesses about canaries."""
        ...

    @property
    def by_chance(self) -> float:
        """Expected number of right guesses if the scores contained no information about the inclusions."""
        ...

    def least_right(self, claim: TradeoffFunction, *, confidence: float) -> int | None:
        """Return the least number of right guesses that refutes a claim; None if no number refutes the claim."""
        ...


class Evidence(Protocol):
    """The interface of every kind of evidence.

    For a sequential audit, the p-values and bounds of all methods hold jointly with the stated confidence.  For other
    audits, each p-value and each bound holds separately.
    """

    method: ClassVar[str]  # name of this kind of evidence in result files
    # whether the audit may stop as soon as it refutes its claim; p-values and bounds allow for such stopping
    anytime: ClassVar[bool]
    # whether the verdict and all bounds hold jointly at the stated confidence; if False, each holds separately
    joint: ClassVar[bool]
    # whether the rejection region and the number of runs were fixed before the counted outputs were sampled
    frozen: ClassVar[bool]
    # whether the evidence counts outputs on pairs of datasets, in rejection regions that attacks found
    of_pairs: ClassVar[bool]
    once: ClassVar[bool]  # whether the mechanism was run only once
    words: ClassVar[Words]  # sentences of reports about this kind of evidence

    @property
    def trials(self) -> int:
        """Number of counted runs on each dataset, without the runs that were only used to train attacks."""
        ...

    @property
    def edges(self) -> Array:
        """Edges of the score bins.

        Bin i counts the scores with edges[i - 1] < score <= edges[i].  The array is empty if no scores are counted.
        """
        ...

    @property
    def guessed(self) -> Guesses | None:
        """The guesses about canaries; None if the evidence counts outputs."""
        ...

    @property
    def histograms(self) -> tuple[Counts, ...]:
        """The counts of every pair that has counts, each of shape (2, BINS)."""
        ...

    def of_pair(self, pair: int | None) -> Counts | None:
        """Return the counts of scores on one pair, with shape (2, BINS); None if the pair has no counts.

        `pair`: Index of the pair in the result; None if the index is unknown.
        """
        ...

    def tested(self, claim: TradeoffFunction) -> TradeoffFunction:
        """Return the form of a claim that the evidence tests.

        This form is the symmetrized claim.  If the test itself symmetrizes claims, it is the unchanged claim.
        """
        ...

    def p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value of a claim."""
        ...

    def stated_p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value of the audited claim that the result states."""
        ...

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return a lower confidence bound of the parameter of a nested family of claims.

        If family(t) is true, the bound exceeds t with probability at most `significance`.
        """
        ...

    @property
    def planned(self) -> Planned | None:
        """The violations for which a share of the bets was planned; None if there are no such bets."""
        ...

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        """Whether the evidence refutes a claim.

        The probability that the evidence refutes a true claim is at most 1 - confidence.
        """
        ...

    def mu_lower(self, *, confidence: float) -> float:
        """Return a lower bound on mu: the mechanism is not mu-GDP for any mu below the bound."""
        ...

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        """Return a lower bound on epsilon (nats): the mechanism is not (epsilon, delta)-DP for any smaller epsilon."""
        ...

    def band(self, *, confidence: float, bounds_valid: bool) -> Band | None:
        """Return the attack's observed curve with the upper bound on the mechanism's curve; None if it is unknown.

        `bounds_valid`: Whether the audit certifies anything.  Otherwise, the bound is the trivial one.
        """
        ...

    def pair_log_e(self, claim: TradeoffFunction) -> list[float] | None:
        """Return the log-wealth of each pair, if bets had been placed on that pair only; None if it is unknown.

        `claim`: The claim, as returned by `tested`.
        """
        ...

    def fingerprint(self) -> str:
        """Return the SHA-256 hash of the counts, in hexadecimal."""
        ...

    def to_json(self) -> JsonObject:
        """Return the evidence as plain JSON values.

        Counts are stored as lists of [bin, count], without the empty bins.
        """
        ...

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> Evidence:
        """Read evidence that `to_json` wrote."""
        ...


KINDS: tuple[type[Evidence], ...] = (
    SequentialEvidence,
    FixedEvidence,
    RunScoresEvidence,
    CanaryScoresEvidence,
    CanariesInRunsEvidence,
    CanaryLevelsEvidence,
    OneRunScoresEvidence,
    DrawnCanariesEvidence,
    DrawnRunEvidence,
    SeveralRunsEvidence,
    SeveralDrawnRunsEvidence,
    WeightedGuessesEvidence,
    OnlineEvidence,
)
"""All kinds of evidence.  Other modules ask the evidence for its properties instead of comparing methods."""


def spent(evidence: Evidence, runs: int) -> str:
    """Describe a number of runs in the unit of the audit, such as "200 runs per dataset" or "393 steps"."""
    if evidence.once:
        return "one run"
    guessed = evidence.guessed
    return evidence.words.spent.format(
        runs=f"{count(runs)} run{'' if runs == 1 else 's'}",
        steps=count(min(2 * runs, getattr(evidence, "steps", 2 * runs))),
        canaries="" if guessed is None else count(guessed.canaries),
    )


def read_back(values: Mapping[str, Json], target: TradeoffFunction) -> Evidence:
    """Read evidence of any kind."""
    method, kinds = values["method"], {kind.method: kind for kind in KINDS}
    if method not in kinds:
        raise ValueError(f"evidence must be of method {' or '.join(kinds)}, got {method!r}")
    return kinds[method].from_json(values, target)
