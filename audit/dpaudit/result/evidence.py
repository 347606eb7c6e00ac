"""Defines evidence: the counts of an audit, and the conclusions about any claim that the counts allow.

Each kind of audit has one class of evidence, in a separate module.  The evidence can also test claims that were unknown
when the audit ran.  The verdict and the bounds can be recomputed from the counts in a result file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Protocol

from dpaudit.claims import PureDP, TradeoffFunction
from dpaudit.inference import resolution
from dpaudit.inference.scores.families import Family
from dpaudit.inference.sequential.bands import Band
from dpaudit.inference.sequential.planned import Planned
from dpaudit.numerics.arrays import Array
from dpaudit.result.canary_runs_evidence import CanariesInRunsEvidence
from dpaudit.result.fixed_evidence import FixedEvidence
from dpaudit.result.fixed_number_evidence import DrawnCanariesEvidence, DrawnRunEvidence
from dpaudit.result.histograms import Counts
from dpaudit.result.levels_evidence import CanaryLevelsEvidence
from dpaudit.result.one_run_evidence import Guesses, OneRunEvidence
from dpaudit.result.online_evidence import OnlineEvidence
from dpaudit.result.scores_evidence import CanaryScoresEvidence, OneRunScoresEvidence, RunScoresEvidence
from dpaudit.result.sequential_evidence import SequentialEvidence
from dpaudit.result.several_runs_evidence import SeveralDrawnRunsEvidence, SeveralRunsEvidence
from dpaudit.result.weighted_evidence import WeightedGuessesEvidence
from dpaudit.result.words import Words
from dpaudit.text.rounding import lower, number
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
    "OneRunEvidence",
    "OneRunScoresEvidence",
    "OnlineEvidence",
    "RunScoresEvidence",
    "SequentialEvidence",
    "SeveralDrawnRunsEvidence",
    "SeveralRunsEvidence",
    "WeightedGuessesEvidence",
    "check_method",
    "overstated",
    "read_back",
]


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
    # whether bounds take long to compute, so that `overstated` uses a theorem instead where possible
    slow: ClassVar[bool]
    # whether the bounds invert `refutes` and take long to compute, so that one test checks a stated bound
    inverted: ClassVar[bool]
    words: ClassVar[Words]  # sentences of reports about this kind of evidence

    @property
    def trials(self) -> int:
        """Number of counted runs on each dataset, without the runs that were only used to train attacks."""
        ...

    @property
    def tries(self) -> int:
        """Number of independent chances to see a rare event on one pair, or for one record."""
        ...

    def detects(
        self, claim: TradeoffFunction, truth: TradeoffFunction, *, confidence: float, power: float, needed: int
    ) -> bool:
        """Whether an audit of this size detects a mechanism whose trade-off curve is `truth`.

        The answer is the estimate from which the audit computed the smallest detectable violation, or a more
        optimistic estimate.  A small tolerance allows for rounding errors and for other versions of numpy.
        """
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

    def p_value(self, claim: TradeoffFunction, path: Array | None = None) -> float:
        """Return the p-value of a claim."""
        ...

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return a lower confidence bound of the parameter of a nested family of claims.

        If family(t) is true, the bound exceeds t with probability at most `significance`.
        """
        ...

    def proves_peak(self, path: Array, *, went_on: bool) -> bool:
        """Whether the counts give the largest wealth of a nonempty path, for an audit that found a violation."""
        ...

    def unexplained(self, claim: TradeoffFunction, *, confidence: float, allowed: int) -> str:
        """Describe a recorded choice that the counts before this choice do not explain; "" if there is none.

        `allowed`: The largest number of trials.
        """
        ...

    @property
    def planned(self) -> Planned | None:
        """The violations for which a share of the bets was planned; None if there are no such bets."""
        ...

    @property
    def failed_pairs(self) -> tuple[int, ...]:
        """Indices of pairs on which a run failed after evidence had been collected."""
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

    def usual_log_e(self, claim: TradeoffFunction) -> float | None:
        """Return the log-wealth that all counts would give without late bets, in nats; None without late bets.

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
    OneRunEvidence,
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


def read_back(values: Mapping[str, Json], target: TradeoffFunction, *, pairs: int | None = None) -> Evidence:
    """Read evidence of any kind."""
    method, counts = values["method"], values.get("counts")
    for kind in KINDS:
        if method == kind.method:
            counted = len(counts) if issubclass(kind, SequentialEvidence) and isinstance(counts, list) else 0
            if pairs is not None and counted > pairs:
                raise ValueError(f"evidence must count the {pairs:,} pairs of the result, got {counted:,}")
            return kind.from_json(values, target)
    *others, last = (kind.method for kind in KINDS)
    raise ValueError(f"evidence must be of method {', '.join(others)} or {last}, got {method!r}")


def check_method(values: Mapping[str, Json], method: str) -> None:
    """Raise ValueError unless the evidence states the method that the rest of the result file states."""
    if values.get("method") != method:
        raise ValueError(f"method is {method}, but the method of its evidence is {values.get('method')!r}")


def overstated(evidence: Evidence, largest_epsilon: float, *, confidence: float) -> str:
    """Check the statement that an audit can certify no epsilon above `largest_epsilon` at delta = 0.

    The check compares the statement with the bound of the evidence.  If the bound is slow to compute, and the theorem
    of `inference.resolution.largest_epsilon` proves the statement for this number of runs, the bound is not computed.
    If the bound inverts a test, and this test does not refute `largest_epsilon`, the bound is not computed either.

    Returns:
        A description of the contradiction; "" if the evidence is consistent with the statement.
    """
    proved = resolution.largest_epsilon(evidence.trials, significance=1 - confidence)
    if evidence.slow and largest_epsilon >= proved * (1 - 1e-9):
        return ""
    testable = evidence.inverted and 0 <= largest_epsilon < math.inf
    if testable and not evidence.refutes(PureDP(largest_epsilon), confidence=confidence):
        return ""  # the bound is the largest epsilon that the evidence refutes
    certified = evidence.epsilon_lower(0.0, confidence=confidence)
    if certified <= largest_epsilon + 1e-6 * max(1.0, largest_epsilon):
        return ""
    return (
        f"the counts certify epsilon >= {lower(certified, 6, over=largest_epsilon)} at delta = 0, but the result "
        f"states that no epsilon above {number(largest_epsilon, 6)} can be certified"
    )
