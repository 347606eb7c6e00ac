"""What a result consists of: verdict, witness, curve, history, and a row for each pair and attack."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array
from dpaudit.text.rounding import percent, percent_at_most

FORMAT = "dpaudit-result/2"

StoppedBy = Literal["evidence", "trials", "failure", "interruption", "dependence"]
"""What ended an audit.  "evidence": the claim was refuted, so the verdict is a violation.  "dependence": the evidence
reached its threshold, but the audit found that it counts for nothing, so the verdict is inconclusive."""

Counted = Literal["", "moving", "named", "later", "frozen", "guesses"]

NEAR = 0.2
"""A region came near a violation if the p-value of its counts is at most this; see `Witness.p_value`."""


class Verdict(enum.Enum):
    """What was shown.  There is no verdict that a mechanism is private: no audit can show that."""

    VIOLATION = "violation"
    NO_VIOLATION = "no violation found"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Mistakes of a rejection region on outputs it was not learned from."""

    false_positives: int  # outputs of d0 in the region, out of n0
    n0: int
    false_negatives: int  # outputs of d1 outside it, out of n1
    n1: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """The attack's trade-off curve at its thresholds, from certain rejection to none; arrays of one length."""

    alpha: Array  # observed type I error
    beta: Array  # observed type II error; an estimate, decides nothing
    beta_upper: Array
    """With the audit's confidence, T(P, Q)(alpha) <= beta_upper at all alpha at once.

    It is 1 - alpha, which holds of every mechanism, where the audit certifies nothing: runs depended on each other, a
    fixed audit ended early, running times were observed, or there was only one run.
    """

    def __repr__(self) -> str:
        return f"Curve({len(self.alpha)} points)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The rejection region that shows the violation, or came closest to showing one.

    `counted` says which outputs the counts are of:

    - "later": outputs that came after region and score had been frozen.  The audit stopped by what came out, so the
      counts may look better than the rates.  The intervals account for that, and for the choice of the region.
    - "moving": all outputs that were bet on, each scored as the attack stood at that moment.  The region that is named
      is that of the last score, so its own rates may differ.  There are no intervals.
    - "frozen": region and score were frozen before any of the outputs were drawn (method "fixed").
    - "guesses": no region; right guesses about canaries in one run.
    - "named": a file of an earlier version.  The outputs came after the attacks had learned, but the region was chosen
      by them; its intervals account neither for that nor for the stopping, and neither do those of an earlier "moving".
    - "": a file of an earlier version, which does not say.
    """

    pair: str
    attack: str
    region: str  # in words, as the attack last knew it
    threshold: float = math.nan  # the region: estimated log-likelihood ratio above this; nan in older files
    alpha: float  # observed type I error; nan for guesses
    beta: float  # observed type II error; nan for guesses
    claimed_beta: float  # least type II error at this alpha under the claim; nan for guesses
    counts: Counts
    counted: Counted = ""
    p_value: float = math.nan
    """Of the claim by these counts, as if region and number of outputs had been fixed before.

    That is so if "frozen".  Else it ranks regions and is no p-value: it is corrected neither for the stopping nor for
    the choice of the region and the pair.  The audit's own p-value is valid.
    """
    alpha_lower: float = math.nan  # ends of the 95 % interval of alpha, each interval by itself; see `counted`
    alpha_upper: float = math.nan
    beta_lower: float = math.nan  # of beta
    beta_upper: float = math.nan
    allowed_upper: float = math.nan  # largest rate under d1 that the claim allows at alpha_upper, rounded up
    scores: tuple[tuple[tuple[int, int], ...], ...] = ()  # if "later": [bin, count] of all scores, of d0 and of d1
    guesses: int = 0  # about canaries; 0: this is a region
    right: int = 0  # of these guesses
    needed: int = 0  # fewest right guesses that would refute the claim; more than `guesses`: it takes more canaries

    @property
    def near(self) -> bool:
        """Whether the region came near a violation: its `p_value` is at most 0.2, or is not known."""
        return not self.p_value > NEAR

    def describe(self) -> str:
        """The region in a sentence, e.g. for an error message."""
        if self.guesses:
            return f"{self.region}; {self._needed()} ({self.pair})"
        about = "; ".join([f"pair {self.pair}", f"attack {self.attack}", *self._outputs_counted()])
        words = (
            f"{self.region}: {percent(self.alpha)} of the outputs of d0, {percent(1 - self.beta)} of those of d1; "
            f"the claim allows at most {self._allowed()} ({about})"
        )
        return words.replace("\u00a0", " ")

    def _needed(self) -> str:
        if self.needed > self.guesses:
            return f"not even {self.guesses:,} right ones would refute the claim"
        return f"{self.needed:,} right ones would refute the claim"

    def _allowed(self) -> str:
        if math.isnan(self.allowed_upper):
            return percent(1 - self.claimed_beta)
        return f"{percent_at_most(self.allowed_upper)}, even if d0's rate is {percent_at_most(self.alpha_upper)}"

    def _outputs_counted(self) -> list[str]:
        n = self.counts.n0
        match self.counted:
            case "later":
                return [f"counted on {n:,} outputs of each dataset that came after the region had been frozen"]
            case "named":
                return [f"counted on the last {n:,} outputs of each dataset, which came after the attack had learned"]
            case "moving":
                return ["counted with scores that moved while the attack learned; the region is the last one"]
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """One pair and what was spent on it."""

    label: str
    relation: str
    d0: str  # as text, shortened
    d1: str
    trials: int  # runs on each of its two datasets
    log_e: float  # log of the wealth won on this pair; evidence only if the result is `certified`


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackRow:
    """One attack and how well it told the datasets apart."""

    name: str
    weight: float  # its final say in the combined score, 0..1, mean over pairs
    log_loss: float  # mean on outputs it had not seen, nats; ln 2 = 0.693 is blind guessing
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """How small a violation this audit would have seen with 90 % probability."""

    claim: str  # the least violation, as a claim, e.g. "gaussian(mu=1.08)"; "" if none would have been
    assumption: str  # about what the mechanism would have looked like
    rule_of_three_rate: float  # an event of this probability shows in none of the runs with probability 5 %
    largest_epsilon: float  # at delta = 0; the audit certifies no more, and no valid test is sure to


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """The wealth as it grew; evidence only if the result is `certified`."""

    trials: npt.NDArray[np.int64]  # runs per dataset so far
    log_e: Array  # log of the wealth against the claim at that moment

    def __repr__(self) -> str:
        return f"History({len(self.trials)} points)"
