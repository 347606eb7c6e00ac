"""The parts of a result: verdict, witness and its region, curve, history, and the tables of pairs and attacks."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dpaudit.inference.grid import EDGES
from dpaudit.numerics import EXACT, Array, Integers
from dpaudit.rounding import percent
from dpaudit.values import OUTPUT, checked, words

FORMAT = "dpaudit-result/2"

MEASUREMENT = "no claim was given, so there was nothing to refute: this is a measurement"
"""The reason of an inconclusive verdict if no claim was tested."""

StoppedBy = Literal["evidence", "trials", "failure", "interruption", "dependence"]
"""Why an audit ended; "dependence": the evidence reached its threshold, but dependent runs make it invalid."""

Counted = Literal["moving", "later", "frozen", "guesses"]

NEAR = 0.2  # largest p-value of a region's counts at which the region comes near a violation; see `Witness.p_value`


class Verdict(enum.Enum):
    """The verdict of an audit.  No verdict states that a mechanism is private, because no audit can show privacy."""

    VIOLATION = "violation"
    NO_VIOLATION = "no violation found"
    INCONCLUSIVE = "inconclusive"


View = Literal["natural", "bits", "timed"]
VIEW_WORDS: dict[View, str] = {"natural": "", "bits": "low-order bits of the numbers: ", "timed": "running time: "}


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() and abs(value) <= EXACT else str(value)


@dataclass(frozen=True, slots=True)
class Interval:
    """An open interval of numbers.  Its ends are exact, and midpoints between outputs as far as possible."""

    low: int | float = -math.inf
    high: int | float = math.inf

    def __str__(self) -> str:
        if math.isinf(self.low) and self.low < 0:
            return f"below {_number(self.high)}"
        above = f"above {_number(self.low)}"
        return above if self.high == math.inf else f"between {_number(self.low)} and {_number(self.high)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition: one feature is in an interval or has a listed value, or is a statement without either."""

    feature: Any = OUTPUT  # a `Feature`; a result file holds it as nested lists
    intervals: tuple[Interval, ...] = ()  # an interval without ends holds every number
    listed: tuple[Any, ...] | None = None  # numbers, and arguments of features such as texts
    missing: bool = False  # whether the condition holds if the feature is missing or nan
    negated: bool = False  # whether the region is the complement, which holds if the feature is missing

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", checked(self.feature))
        if self.listed is not None:
            plain = (bool, int, float, str)
            listed = tuple(value if type(value) in plain else checked(value) for value in self.listed)
            object.__setattr__(self, "listed", listed)

    def __str__(self) -> str:
        name, values = words(self.feature), self.values
        return f"{name} {values}" if values else f"{'not: ' * self.negated}{name}"

    @property
    def of_output(self) -> bool:
        """Whether the condition says which values the output itself has."""
        return self.feature == OUTPUT and self.values != ""

    @property
    def values(self) -> str:
        """The values of the feature in words, such as "above 3"; "" for a statement."""
        if self.listed is not None:  # integers keep all digits
            texts = (
                words(value)
                if not isinstance(value, float)
                else _number(value)
                if value.is_integer()
                else f"{value:.6g}"
                for value in self.listed
            )
            return f"in {{{', '.join(texts)}}}"
        if self.intervals == (Interval(),):
            return "is missing" if self.negated else "is present"
        if self.negated and self.intervals:
            return f"at most {_number(self.intervals[0].low)}{' or missing' * self.missing}"
        return " or ".join([*map(str, self.intervals), *["nan"] * self.missing])


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A rejection region.  Without a condition, only the score of the attacks defines it."""

    condition: Condition | None = None
    nearly: bool = False  # whether the condition holds for most outputs of the region, and for few others
    view: View = "natural"  # which view of the outputs the strongest attack scores

    def words(self, threshold: float) -> str:
        """Describe the region, whose scores are above the threshold."""
        if self.condition is not None and not self.nearly:
            return str(self.condition)
        score = f"{VIEW_WORDS[self.view]}estimated log-likelihood ratio above {threshold:.3g}"
        return score if self.condition is None else f"{score}; nearly the same as: {self.condition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Error counts of a rejection region on outputs that were not used to select the region."""

    false_positives: int  # number of outputs of d0 inside the rejection region
    n0: int  # number of counted outputs of d0
    false_negatives: int  # number of outputs of d1 outside the rejection region
    n1: int  # number of counted outputs of d1

    @property
    def hits(self) -> tuple[int, int, int, int]:
        """(x, n0, y, n1): the region contains x of the n0 outputs of d0, and y of the n1 outputs of d1."""
        return self.false_positives, self.n0, self.n1 - self.false_negatives, self.n1

    @property
    def rates(self) -> tuple[float, float]:
        """The observed type I and type II error; 0 for a dataset without outputs."""
        return self.false_positives / max(1, self.n0), self.false_negatives / max(1, self.n1)


def beyond(scores: Integers, threshold: int) -> Counts:
    """Return the counts of the rejection region {bin > threshold}, given the counts of all bins, shape (2, BINS)."""
    (n0, n1), (x, y) = scores.sum(axis=1), scores[:, threshold + 1 :].sum(axis=1)
    return Counts(false_positives=int(x), n0=int(n0), false_negatives=int(n1 - y), n1=int(n1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """The empirical trade-off curve of the attack, with one point for each threshold, from alpha = 1 to alpha = 0."""

    alpha: Array  # observed type I error at each threshold; shape (n,)
    beta: Array  # observed type II error at each threshold, which does not influence the verdict; shape (n,)
    beta_upper: Array
    """With the audit's confidence, T(P, Q)(alpha) <= beta_upper at all alpha together.

    If the audit certifies no curve, `beta_upper` is 1 - alpha, which holds for every mechanism.  An audit certifies no
    curve if runs depended on each other, a fixed audit ended early, running times were observed, or only one run was
    made.
    """

    def __repr__(self) -> str:
        return f"Curve({len(self.alpha)} points)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The rejection region that shows a violation, or the region that was closest to showing a violation.

    The field `counted` states which outputs were counted:

    - "later": Outputs that came after the region and the score had been fixed.  These outputs influence when the audit
      ends, so the counts may exaggerate the violation.  The intervals account for optional stopping and for the
      selection of the region.
    - "moving": All outputs that were used for bets, each with the score in use at that time.  `region` is
      that of the last score, whose rates may differ from the counted rates.  The witness has no intervals.
    - "frozen": Outputs that were sampled after the region and the score had been fixed (method "fixed").
    - "guesses": Right guesses about given scores.  No outputs are counted, and the witness has no region.
    """

    pair: str  # label of the pair of datasets
    # d0 and d1, each as a list of one value of `values.stored`; empty if it is unknown
    datasets: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    attack: str  # names of the attacks with the largest contributions, joined by "+"
    described: Region = field(default_factory=Region)  # the rejection region as a condition
    guessed: str = ""  # the right guesses in words; "" for a rejection region
    # the query of synthetic tables that tells the datasets apart best, with its answers on both; "" for other outputs
    query: str = ""
    outcomes: bool = False  # whether `query` states the outcome on each dataset instead, because one gives no table
    # lower bound of the estimated log-likelihood ratio in the rejection region, in nats; nan for guesses
    threshold: float = math.nan
    alpha: float  # observed type I error of the rejection region; nan for guesses
    beta: float  # observed type II error of the rejection region; nan for guesses
    claimed_beta: float  # least type II error that the claim allows at this alpha; nan for guesses
    counts: Counts
    counted: Counted
    p_value: float = math.nan
    """The p-value of the claim by these counts, if region and number of outputs had been fixed beforehand.

    Both were fixed beforehand only if `counted` is "frozen".  Otherwise the number only ranks regions.  It is then not
    a valid p-value, because no correction was made for optional stopping or for the choice of region and pair.  The
    p-value of the result is valid.
    """
    alpha_lower: float = math.nan  # lower end of the 95 % interval of alpha, valid separately from the interval of beta
    alpha_upper: float = math.nan
    beta_lower: float = math.nan  # lower end of the 95 % interval of beta
    beta_upper: float = math.nan
    # largest rate under d1 that the claim allows if the rate under d0 is alpha_upper, rounded up
    allowed_upper: float = math.nan
    # pairs (bin, count) of all scores on d0 and on d1; empty if the evidence holds them
    scores: tuple[tuple[tuple[int, int], ...], ...] = ()
    guesses: int = 0  # number of guesses about scores; 0 for a rejection region
    right: int = 0  # number of right guesses about scores

    @property
    def region(self) -> str:
        """The rejection region or the guesses in words."""
        return self.guessed or self.described.words(self.threshold)

    @property
    def told(self) -> str:
        """The query in words, as the end of a sentence."""
        return f"; {'output: ' * self.outcomes}{self.query}" if self.query else ""

    @property
    def near(self) -> bool:
        """Whether the p-value of the region is at most 0.2 or unknown, so that the region was close to a violation."""
        return not self.p_value > NEAR

    @property
    def last_bin(self) -> int:
        """The bin of `inference.grid` just below the rejection region."""
        return int(np.argmin(np.abs(EDGES - self.threshold)))

    def describe(self, comparison: str = "") -> str:
        """Describe the region and its counts in plain text, with a `comparison` with the claim if one is valid."""
        if self.guesses:
            return f"{self.region} ({self.pair})"
        about = f"pair {self.pair}; attack {self.attack}"
        if self.counted == "later":
            outputs = f"{self.counts.n0:,} outputs of each dataset"
            about += f"; counted on {outputs} that came after the region had been frozen"
        elif self.counted == "moving":
            about += "; counted with scores that changed while the attack learned; the region is that of the last score"
        rates = f"{percent(self.alpha)} of the outputs of d0, {percent(1 - self.beta)} of those of d1"
        return f"{self.region}: {rates}{comparison} ({about}){self.told}".replace("\u00a0", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """One pair of datasets and its trials."""

    label: str
    relation: str
    d0: str  # the dataset d0 as text, shortened
    d1: str
    trials: int  # number of runs made on each of the two datasets of the pair
    log_e: float  # log-wealth of the bets on this pair in nats; evidence only if the bounds of the result are valid
    # difference between d1 and d0 in words; "" if both texts are complete or the difference is unknown
    difference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackRow:
    """One attack and the quality of its predictions."""

    name: str
    weight: float  # final weight of the attack in the combined score, in [0, 1], averaged over all pairs
    log_loss: float  # mean logarithmic loss on unseen outputs in nats; random guessing has ln 2 = 0.693
    note: str = ""  # reason why the attack was not used; "" if it was used


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """The smallest violation that the audit would have detected with probability 90 %."""

    claim: str  # smallest detectable violation as a claim, such as "gaussian(mu=1.08)"; "" if none was detectable
    assumption: str  # assumption about the attacks and the mechanism, in words
    rule_of_three_rate: float  # event probability at which the probability that no run has the event is 5 %
    largest_epsilon: float  # largest epsilon that the audit can certify at delta = 0, in nats
    needed: str = ""  # how many scores would find a violation by 20 %; "" if unknown, or if these would


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """The wealth at every interim analysis, which is evidence only if the bounds of the result are valid."""

    trials: Integers  # number of runs made on each dataset until each interim analysis; shape (n,)
    log_e: Array  # logarithm of the wealth against the claim at each interim analysis, in nats; shape (n,)

    def __repr__(self) -> str:
        return f"History({len(self.trials)} points)"
