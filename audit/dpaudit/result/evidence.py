"""What was counted, and what follows from it about any claim.

One class for each way to audit, in a module of its own.  Each one can be asked about claims that nobody thought of when
the audit ran: a reader of a result file computes the verdict and the bounds again from these numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from dpaudit.claims import TradeoffFunction
from dpaudit.inference import power as planning
from dpaudit.numerics.arrays import Array
from dpaudit.result.fixed_evidence import FixedEvidence
from dpaudit.result.histograms import Counts
from dpaudit.result.one_run_evidence import Guesses, OneRunEvidence
from dpaudit.result.online_evidence import OnlineEvidence
from dpaudit.result.scores_evidence import CanaryScoresEvidence, OneRunScoresEvidence, RunScoresEvidence
from dpaudit.result.sequential_evidence import SequentialEvidence
from dpaudit.result.words import Words

__all__ = [
    "KINDS",
    "CanaryScoresEvidence",
    "Counts",
    "Evidence",
    "FixedEvidence",
    "Guesses",
    "OneRunEvidence",
    "OneRunScoresEvidence",
    "OnlineEvidence",
    "RunScoresEvidence",
    "SequentialEvidence",
    "check_method",
    "overstated",
    "read_back",
]


class Evidence(Protocol):
    """What every kind of evidence answers.

    With the stated confidence all answers hold together for a sequential audit, and each one by itself otherwise.
    """

    method: ClassVar[str]
    anytime: ClassVar[bool]  # whether the audit stops as soon as it refutes its claim, and all answers allow for that
    joint: ClassVar[bool]  # whether all bounds and the verdict hold at once; otherwise each one by itself
    frozen: ClassVar[bool]  # whether region and number of runs were fixed before the outputs that are counted
    of_pairs: ClassVar[bool]  # whether outputs of the datasets of pairs are counted, in regions that attacks found
    once: ClassVar[bool]  # whether the mechanism ran once
    slow: ClassVar[bool]  # whether bounds take so long that what is proved of them is not computed again
    words: ClassVar[Words]  # for reports

    @property
    def trials(self) -> int:
        """Runs per dataset that count; those the attacks only learned from do not."""
        ...

    @property
    def edges(self) -> Array:
        """Ends of the bins: bin i counts edges[i - 1] < score <= edges[i].  Empty if no scores are counted."""
        ...

    @property
    def guessed(self) -> Guesses | None:
        """The guesses about canaries; None if outputs are counted."""
        ...

    @property
    def histograms(self) -> tuple[Counts, ...]:
        """The counts of each pair that has any, each (2, BINS)."""
        ...

    def of_pair(self, pair: int | None) -> Counts | None:
        """The counts of a pair of the result, by its number if it is known, (2, BINS); None if there are none."""
        ...

    def tested(self, claim: TradeoffFunction) -> TradeoffFunction:
        """The form of a result's claim that the other answers are about: for both orders of a pair, if there are."""
        ...

    def p_value(self, claim: TradeoffFunction, path: Array | None = None) -> float:
        """Of a claim in the form of `tested`; `path`: the log-wealth against it at every look, where one is kept."""
        ...

    def ends_at_its_peak(self, path: Array) -> bool:
        """Whether a path, not empty, ends where it is largest, as that of an `anytime` audit with a violation does."""
        ...

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        """Whether this is enough to call a claim false, which happens to a true one with 1 - confidence at most."""
        ...

    def mu_lower(self, *, confidence: float) -> float:
        """The mechanism is not mu-GDP for any mu below this."""
        ...

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        """The mechanism is not (epsilon, delta)-DP for any epsilon below this, nats."""
        ...

    def fingerprint(self) -> str:
        """SHA-256 of the counts."""
        ...

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values.  Counts are lists of [bin, count]: most bins are empty."""
        ...

    @classmethod
    def from_json(cls, values: Mapping[str, Any], target: TradeoffFunction) -> Evidence:
        """The inverse of `to_json`; `target`: the claim, for both directions.  ValueError for impossible counts."""
        ...


KINDS: tuple[type[Evidence], ...] = (
    SequentialEvidence,
    FixedEvidence,
    OneRunEvidence,
    RunScoresEvidence,
    CanaryScoresEvidence,
    OneRunScoresEvidence,
    OnlineEvidence,
)
"""Every way to audit.  Whatever depends on it is asked of the evidence; nothing outside compares methods."""


def read_back(values: Mapping[str, Any], target: TradeoffFunction) -> Evidence:
    """The evidence whose `to_json` gave these values.  ValueError if there is no such evidence."""
    method = values["method"]
    for kind in KINDS:
        if method == kind.method:
            return kind.from_json(values, target)
    *others, last = (kind.method for kind in KINDS)
    raise ValueError(f"evidence must be of method {', '.join(others)} or {last}, got {method!r}")


def check_method(values: Mapping[str, Any], method: str) -> None:
    """ValueError unless these values are of the method that the rest of a file states."""
    if values.get("method") != method:
        raise ValueError(f"method is {method}, but its evidence is of {values.get('method')!r}")


def overstated(evidence: Evidence, largest_epsilon: float, *, confidence: float) -> str:
    """How the evidence contradicts that no epsilon above `largest_epsilon` can be certified; "" if it does not.

    What `inference.power.largest_epsilon` says of so many runs is proved, and is not computed again for the exact
    test, where that takes time.
    """
    proved = planning.largest_epsilon(evidence.trials, significance=1 - confidence)
    if evidence.slow and largest_epsilon >= proved * (1 - 1e-9):
        return ""
    certified = evidence.epsilon_lower(0.0, confidence=confidence)
    if certified <= largest_epsilon + 1e-6 * max(1.0, largest_epsilon):
        return ""
    return (
        f"the counts certify epsilon >= {certified:.6g} at delta = 0, beside the statement that no epsilon above "
        f"{largest_epsilon:.6g} can be certified"
    )
