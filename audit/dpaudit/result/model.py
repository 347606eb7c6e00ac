"""What an audit found, with the evidence, and how it is kept."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics.arrays import Array
from dpaudit.result.atomic_write import write_whole
from dpaudit.result.evidence import Evidence, written
from dpaudit.text.printable import one_line
from dpaudit.text.rounding import lower, percent, percent_at_most, upper

FORMAT = "dpaudit-result/1"
StoppedBy = Literal["evidence", "trials", "failure", "interruption", "dependence"]
"""What ended an audit.  "evidence": the claim was refuted, so the verdict is a violation.  "dependence": the evidence
reached its threshold, but the audit found that it counts for nothing, so the verdict is inconclusive."""
Counted = Literal["", "moving", "named", "later", "frozen", "guesses"]
NEAR = 0.2
"""A region came near a violation if the exact p-value of its counts is at most this."""


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
    p_value: float = math.nan  # of the claim by these counts, exact if "frozen"; else not corrected for the stopping
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
        """Whether the region came near a violation: its exact p-value is at most 0.2, or is not known."""
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
    smallest_rate: float  # an event of this probability shows in none of the runs with probability 5 %
    largest_epsilon: float  # at delta = 0; the audit certifies no more, and no valid test is sure to


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """The wealth as it grew; evidence only if the result is `certified`."""

    trials: npt.NDArray[np.int64]  # runs per dataset so far
    log_e: Array  # log of the wealth against the claim at that moment

    def __repr__(self) -> str:
        return f"History({len(self.trials)} points)"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AuditResult:
    """Everything an audit found.  `str(result)` is a summary.

    A result has no truth value, since "true" could mean that the claim was refuted or that it was not: ask `violated`.
    """

    name: str
    verdict: Verdict
    claim: TradeoffFunction
    confidence: float
    method: str
    p_value: float  # of the claim; sequential: valid at any stopping time, 1 over the largest wealth seen
    e_value: float  # of the claim, expectation <= 1 if it is true; sequential: the wealth at the end; may be inf.
    # At most 1 if the mechanism failed: the wealth just before a failure is no e-value
    trials_used: int  # runs per dataset, those the attacks learned from included
    trials_allowed: int
    stopped_by: StoppedBy = "trials"
    mu_lower: float  # certified: the mechanism is not mu-GDP for any mu below this
    curve: Curve
    witness: Witness | None
    detectable: Detectable
    history: History
    evidence: Evidence
    pairs: tuple[PairRow, ...]
    attacks: tuple[AttackRow, ...]
    warnings: tuple[str, ...]
    environment: Mapping[str, Any]  # versions, machine, seed, date, mechanism, config
    elapsed_s: float
    certified: bool = (
        True  # False if runs depended on each other, or a fixed number of trials was not reached: no bound
    )
    _bounds: dict[float, float] = field(init=False, default_factory=dict)  # found so far; `replace` begins a new one

    def __bool__(self) -> bool:
        """Refuse: a test such as `assert audit(...)` would always pass."""
        raise TypeError(
            f"a result has no truth value (this one: {self.verdict.value}); ask result.violated, or compare "
            "result.verdict with a Verdict"
        )

    def __repr__(self) -> str:
        return (
            f"<AuditResult {self.name!r}: {self.verdict.value}, {self.claim.label}, p <= {p_value_words(self)}, "
            f"confidence {self.confidence:.9g}, {self.trials_used:,} runs per dataset>"
        )

    @property
    def violated(self) -> bool:
        """Whether the claim was refuted."""
        return self.verdict is Verdict.VIOLATION

    def epsilon_lower(self, delta: float = 0.0) -> float:
        """Certified: with the audit's confidence the mechanism is not (epsilon, `delta`)-DP for any epsilon below this.

        Of a sequential audit: for all `delta` at once, and together with `mu_lower` and the verdict.  Of the others: at
        each `delta` alone.  0 if nothing is `certified`.  See `evidence`.
        """
        if not self.certified:
            return 0.0
        if delta not in self._bounds:
            self._bounds[delta] = self.evidence.epsilon_lower(delta, confidence=self.confidence)
        return self._bounds[delta]

    # --- as a file

    def to_json(self, path: str | Path) -> None:
        """Write the result as JSON.  Floats keep all their digits; inf and nan are written as strings."""
        write_whole(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "_bounds"}
        return {"format": FORMAT, **_plain(values | {"evidence": written(self.evidence)})}

    @classmethod
    def from_json(cls, path: str | Path) -> AuditResult:
        """Read a result that `to_json` wrote.  ValueError, naming the file, for anything else."""
        try:
            return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except RecursionError:
            raise ValueError(f"{path} is not a result of dpaudit: it is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"{path} is not a complete result of dpaudit ({FORMAT}): {error}") from None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AuditResult:
        """The inverse of `to_dict`.  ValueError for anything that it did not make."""
        return cls(**importlib.import_module("dpaudit.result.files").read(values))  # which needs the types of this one

    # --- for people

    def to_pdf(self, path: str | Path) -> None:
        """Write the report of this audit as PDF."""
        _reports().write_pdf([self], path)

    def to_html(self, path: str | Path) -> None:
        """Write the same report as one HTML file that needs nothing else."""
        _reports().write_html([self], path)

    def to_markdown(self) -> str:
        """A short form of the report, as Markdown for a comment on a pull request."""
        return str(_reports().to_markdown([self]))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return str(_reports().to_fragment([self]))

    def plot(self, ax: Any = None) -> Any:
        """Draw the trade-off plot.

        Args:
            ax: The axes to draw on; those of a new figure unless given.

        Returns:
            The axes.  Those of a new figure show themselves as a picture in a notebook.
        """
        return _reports().plot_tradeoff(self, ax)

    def __str__(self) -> str:
        confidence = f"confidence {100 * self.confidence:.9g} %"
        found = {
            Verdict.VIOLATION: f"VIOLATION of {self.claim.label} (p <= {p_value_words(self)}, {confidence})",
            Verdict.NO_VIOLATION: f"no violation of {self.claim.label} found ({confidence})",
            Verdict.INCONCLUSIVE: f"inconclusive about {self.claim.label}",
        }[self.verdict]
        lines = [f"{self.name}: {found}", f"  {self._runs} in {self.elapsed_s:.1f} s; {certified_words(self)}"]
        if self.witness is not None:
            near = self.violated or self.witness.near
            lines.append(f"  {self.witness.describe() if near else 'no region came near a violation'}")
        if not self.violated and self.certified:
            lines.append(f"  {_seen(self.detectable)}")
        return "\n".join(one_line(line) for line in [*lines, *(f"  warning: {words}" for words in self.warnings)])

    @property
    def _runs(self) -> str:
        return "one run" if self.method == "one_run" else f"{self.trials_used:,} runs per dataset"


Written = Callable[..., str]
"""`lower` or `upper` of `dpaudit.text.rounding`, or `at_least` or `at_most`: the same digits, typeset."""


def p_value_words(result: AuditResult, write: Written = upper) -> str:
    """The p-value, rounded up, with enough digits to see on which side of the audit's level it is."""
    return write(result.p_value, under=1 - result.confidence)


def mu_words(result: AuditResult, write: Written = lower) -> str:
    """`mu_lower`, rounded down; of a violation with enough digits to see that it is above what the claim allows."""
    return write(result.mu_lower, over=result.claim.mu() if result.violated else -math.inf)


def epsilon_words(result: AuditResult, delta: float = 0.0, write: Written = lower) -> str:
    """`epsilon_lower(delta)`, written as `mu_words` writes `mu_lower`."""
    return write(result.epsilon_lower(delta), over=result.claim.epsilon(delta) if result.violated else -math.inf)


def certified_words(result: AuditResult) -> str:
    """The certified bounds in a line of plain text."""
    if not result.certified:
        return "nothing is certified"
    return f"certified: mu >= {mu_words(result)}, epsilon >= {epsilon_words(result)} at delta = 0"


def _seen(detectable: Detectable) -> str:
    if not detectable.claim:
        return "no violation in the claim's own family would have been seen with so few runs"
    return f"would have been seen with 90 % probability: {detectable.claim} ({detectable.assumption})"


def _reports() -> Any:
    """The reports are loaded only when asked for: they read results, and nothing here depends on them."""
    return importlib.import_module("dpaudit_reports")


def _plain(value: Any) -> Any:
    match value:
        case np.ndarray():
            return [_plain(x) for x in value.tolist()]
        case enum.Enum():
            return value.value
        case TradeoffFunction():
            return str(value)
        case bool() | int() | str() | None:
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(k): _plain(v) for k, v in value.items()}
        case tuple() | list():
            return [_plain(x) for x in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no place in a result file")
