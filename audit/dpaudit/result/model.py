"""Defines the result of an audit, with its files and its summary."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dpaudit.claims import ApproxDP, PureDP, TradeoffFunction
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.inference.scores.families import Family
from dpaudit.result.confirmation import Confirmation, confirmation_words, runs_for_size
from dpaudit.result.evidence import (
    AssumedBound,
    Evidence,
    bound_inside,
    bound_outside,
    confirmation_of,
    given_scores,
    spent,
)
from dpaudit.result.provenance import Provenance
from dpaudit.result.scores_evidence import ScoreBound, score_bounds, table_words
from dpaudit.result.shown import Shown
from dpaudit.result.training import TrainingRecord
from dpaudit.result.values import (
    FORMAT,
    MEASUREMENT,
    AttackRow,
    Curve,
    Detectable,
    History,
    PairRow,
    StoppedBy,
    Verdict,
    Witness,
)
from dpaudit.result.words import words_of
from dpaudit.rounding import count, lower, percent_at_least, percent_at_most, rate_at_most, upper
from dpaudit.text import WarningCode, has_code, one_line, read_foreign
from dpaudit.values import Json, JsonObject


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AuditResult(Shown):
    """The result of an audit.  `str(result)` returns a summary.

    A result cannot be converted to bool, because "true" could mean either that the claim was refuted or that it was
    not. Use `violated`.
    """

    name: str
    verdict: Verdict
    claim: TradeoffFunction
    confidence: float
    method: str
    p_value: float  # of the claim; for a sequential audit, 1 / maximum wealth, which is valid at any stopping time
    # e-value of the claim, which has expectation <= 1 if the claim is true, and may be inf.  The e-value of a
    # sequential audit is the final wealth.  If the mechanism failed, the e-value is at most 1, because the wealth just
    # before a failure is not an e-value.
    e_value: float
    trials_used: int  # number of runs made on each dataset, including those that were only used to train attacks
    trials_allowed: int  # maximum number of runs on each dataset
    stopped_by: StoppedBy = "trials"
    refuted_at: int | None = None  # number of runs on each dataset when the claim was refuted, if it was refuted
    mu_lower: float  # certified lower bound on mu: the mechanism is not mu-GDP for any mu below the bound
    curve: Curve
    witness: Witness | None
    detectable: Detectable
    history: History
    evidence: Evidence
    pairs: tuple[PairRow, ...]
    attacks: tuple[AttackRow, ...]
    warnings: tuple[str, ...]
    provenance: Provenance  # versions, machine, seed, date, mechanism and config of the audit
    elapsed_s: float  # duration of the audit in seconds
    bounds_valid: bool = True  # False if runs were dependent, or if the audit made fewer trials than planned
    training: TrainingRecord | None = None  # design and scores of an audit of training; None for other audits
    _computed_at: float | None = None  # confidence of verdict, bounds and curve, retained by `dataclasses.replace`
    _bounds: dict[float, float] = field(init=False, default_factory=dict)
    _assumed: dict[tuple[float, str | Family], AssumedBound] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError if the confidence was replaced: verdict, bounds and curve hold at the former one."""
        if self._computed_at is None:
            object.__setattr__(self, "_computed_at", self.confidence)
        elif self._computed_at != self.confidence:
            raise ValueError(
                f"the confidence cannot be replaced by {self.confidence!r}: verdict, bounds and curve hold at "
                f"{self._computed_at!r}; call result.evidence.refutes or .lower, or audit again"
            )

    def __repr__(self) -> str:
        assumed = (words := words_of(self.evidence).assumption) and f", assumed, not tested: {words}"
        return (
            f"<AuditResult {self.name!r}: {self.verdict.value}, {self.claim.label}, p <= {p_value_words(self)}, "
            f"confidence {self.confidence}, {spent(self.evidence, self.trials_used)}{assumed}>"
        )

    @property
    def violated(self) -> bool:
        """Whether the audit refuted the claim."""
        return self.verdict is Verdict.VIOLATION

    @property
    def confirmation(self) -> Confirmation | None:
        """The fresh runs after the claim was refuted; None if it was not refuted, or if outputs were not counted."""
        return confirmation_of(self.evidence)

    @property
    def measurement(self) -> bool:
        """Whether the audit had no claim to test.  The bounds of such an audit are valid."""
        return self.claim == NO_CLAIM

    @property
    def environment(self) -> Mapping[str, Json]:
        """The `provenance` in the form of result files: a read-only mapping of keys to plain values."""
        return self.provenance.environment

    @property
    def bounds(self) -> tuple[ScoreBound, ...]:
        """What given scores prove at the claim's delta, or 1e-5, under each assumption; () for other audits."""
        return self.bounds_at(None)

    def bounds_at(self, delta: float | None) -> tuple[ScoreBound, ...]:
        """Return `bounds` at another delta."""
        found = given_scores(self.evidence)
        if found is None or not self.bounds_valid:
            return ()
        return score_bounds(found, self.claim, delta, self.confidence)

    def epsilon_lower(self, delta: float = 0.0, assuming: str | Family | None = None) -> float:
        """Return a certified lower bound on epsilon for a given delta.

        With the confidence of the audit, the mechanism is not (epsilon, delta)-DP for any epsilon below this bound.
        For a sequential audit, the bounds for all deltas, `mu_lower` and the verdict hold jointly at this confidence.
        For other audits, each bound holds separately at this confidence.

        Args:
            delta: Delta of the bound, between 0 and 1.
            assuming: A one-parameter family of claims that is assumed to contain the mechanism's curve.  The family is
                "gaussian", the text of a claim with one `?`, or a function from the parameter to a claim.  The claims
                must be weaker for larger parameters.  The bound is certified only if the assumption is true.

        Returns:
            The bound in nats; 0 if `bounds_valid` is False.  A bound with an untested assumption is an `AssumedBound`,
            a number that prints all its assumptions.  These are the family of `assuming` and the assumption of the
            audit itself, such as that of `independence="canaries"`.

        Raises:
            ValueError: If the family cannot be read, or if its claims are not nested.
        """
        if assuming is not None:
            return self.assumed_bound(delta, assuming)
        if not self.bounds_valid:
            return 0.0
        if delta not in self._bounds:
            self._bounds[delta] = bound_outside(self.evidence, self.evidence.lower(delta, confidence=self.confidence))
        return self._bounds[delta]

    def assumed_bound(self, delta: float, assuming: str | Family) -> AssumedBound:
        """Return `epsilon_lower` under the assumption of a family, with the parameter of the largest refuted claim.

        The arguments and errors are those of `epsilon_lower`.
        """
        key = (delta, assuming)
        if key not in self._assumed:
            self._assumed[key] = bound_inside(
                self.evidence, delta, assuming, confidence=self.confidence, valid=self.bounds_valid
            )
        return self._assumed[key]

    def to_dict(self) -> JsonObject:
        """Return the result as plain JSON values."""
        from dpaudit.result.files import written  # see `from_dict`

        public = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name[0] != "_"}
        return written({**public, "bounds": self.bounds})  # other readers get bounds, which the evidence implies

    @classmethod
    def from_json(cls, path: str | Path) -> AuditResult:
        """Read a result that `to_json` wrote.

        Raises:
            ValueError: If the file is not a complete result.  The message names the file.
            OSError: If the file cannot be read.
        """
        try:
            return cls.from_dict(json.loads(read_foreign(path)))
        except RecursionError:
            raise ValueError(f"{path} is not a result of dpaudit: it is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"{path} is not a complete result of dpaudit ({FORMAT}): {error}") from None

    @classmethod
    def from_dict(cls, values: Mapping[str, Json]) -> AuditResult:
        """Convert the plain values that `to_dict` returned, or raise ValueError if they are not a complete result."""
        from dpaudit.result.files import read  # `files` is imported in the function because pydantic loads slowly

        return cls(**read(values))

    @property
    def scope(self) -> str:
        """Words after the claim in each verdict: which runs the verdict is about; "" if it is about all runs.

        An event has the probability P(S and success) / P(success) among the runs that succeed.  If the mechanism is
        epsilon-DP, each of the two probabilities differs between neighbours by a factor of at most e^epsilon.  So the
        runs that succeed are 2 epsilon-DP, and need not be better.
        """
        if not any(has_code(warning, WarningCode.RETRIED) for warning in self.warnings):
            return ""
        return " among the runs that succeeded (failed runs were retried, which alone can double epsilon)"

    def __str__(self) -> str:
        return self.summary()

    def summary(self, delta: float | None = None) -> str:
        """Return the summary of `str`, with `bounds_at(delta)` as the table of given scores."""
        claim = f"{self.claim.label}{self.scope}"
        confidence = f"confidence {percent_at_least(self.confidence)}".replace("\u00a0", " ")
        found = {
            Verdict.VIOLATION: f"VIOLATION of {claim} (p <= {p_value_words(self)}, {confidence})",
            Verdict.NO_VIOLATION: f"no violation of {claim} found ({confidence})",
            Verdict.INCONCLUSIVE: f"inconclusive about {claim}",
        }[self.verdict]
        if self.measurement:
            found = f"measurement, no claim was tested ({confidence})"
        warnings = [words for words in self.warnings if words != MEASUREMENT]
        if warnings and not self.bounds_valid and given_scores(self.evidence) is not None:
            found = f"nothing is proven: {warnings.pop()}"
        assumed, rows = words_of(self.evidence).assumption, self.bounds_at(delta)
        lines = [f"{self.name}: {found}", *([f"  assumed, not tested: {assumed}"] if assumed else [])]
        runs, took = spent(self.evidence, self.trials_used), f"{self.elapsed_s:.1f} s"
        of_epsilon = self.measurement or isinstance(self.claim, PureDP | ApproxDP)
        mu = "" if of_epsilon else f"; certified: mu >= {mu_words(self)}"
        certified = f"{'certified: ' * self.bounds_valid}{certified_words(self)}"
        lines.append(f"  {runs}; the audit took {took}{mu}" if rows else f"  {runs} in {took}; {certified}")
        lines += table_words(rows)
        lines += [f"  {words}" for words in size_words(self) if self.violated]
        if self.witness is not None:
            near = self.violated or self.witness.near or not self.bounds_valid
            far = "no region that was counted came near a violation"
            lines.append(f"  {witness_words(self, self.witness) if near else far}")
        if not self.violated and self.bounds_valid and not self.measurement:
            seen = self.detectable
            lines.append(
                f"  detectable with 90 % probability: {seen.claim} ({seen.assumption})"
                if seen.claim
                else "  no violation in the claim's own family was detectable with this number of runs"
            )
            lines += [f"  {seen.needed}"] if seen.needed else []
        return "\n".join(map(one_line, [*lines, *(f"  warning: {words}" for words in warnings)]))

    @property
    def runs_for_size(self) -> float | None:
        """Estimated fresh runs on each dataset that would show the size: inf if unknown, None if the size is known."""
        if not self.violated or not self.evidence.kind.anytime or self.confirmation is None:
            return None
        return runs_for_size(self.confirmation, self.claim.symmetrized(), 1 - self.confidence)


Written = Callable[..., str]
"""Writes a rounded number: `lower` or `upper` of `dpaudit.rounding`, or `at_least` or `at_most` of the reports."""


def p_value_words(result: AuditResult, write: Written = upper) -> str:
    """Write the p-value, rounded up, with enough digits to distinguish it from the significance of the audit."""
    return write(result.p_value, under=1 - result.confidence)


def mu_words(result: AuditResult, write: Written = lower) -> str:
    """Write `mu_lower`, rounded down.  For a violation, the digits suffice to exceed the claim's mu."""
    return write(result.mu_lower, over=result.claim.mu() if result.violated else -math.inf)


def epsilon_words(result: AuditResult, delta: float = 0.0, write: Written = lower) -> str:
    """Write `epsilon_lower(delta)`, rounded down; for a violation, with enough digits to exceed the claim's epsilon."""
    return write(result.epsilon_lower(delta), over=result.claim.epsilon(delta) if result.violated else -math.inf)


def size_words(result: AuditResult) -> list[str]:
    """Write what the fresh runs say about a violation, and whether the bounds state its size, each on one line."""
    found = result.confirmation
    lines = [] if found is None else [confirmation_words(found)]
    if result.refuted_at is not None and result.stopped_by != "evidence":
        after = spent(result.evidence, result.refuted_at)
        lines.append(f"refuted after {after}; {words_of(result.evidence).went_on}")
    elif result.evidence.kind.anytime and (found is None or found.counts is None):
        lines.append("stopped at the first proof; the bounds do not estimate the size of the violation")
    elif (needed := result.runs_for_size) is not None:
        runs = "" if math.isinf(needed) else f" (about {count(int(needed))} fresh runs would)"
        lines.append(f"more than claimed; how much more is not measured{runs}")
    return lines


def certified_words(result: AuditResult) -> str:
    """Write the certified lower bounds on one line of plain text: epsilon alone for a claim that states an epsilon."""
    if not result.bounds_valid:
        return "nothing is certified"
    if isinstance(result.claim, PureDP | ApproxDP):
        delta = float(result.claim.parameters.get("delta", 0.0))
        return f"epsilon >= {epsilon_words(result, delta)} at delta = {delta:g}"
    return f"mu >= {mu_words(result)}, epsilon >= {epsilon_words(result)} at delta = 0"


def allowed_rate(result: AuditResult) -> float:
    """Return the largest rate under d1 that a report may state as allowed by the claim, in [0, 1].

    It holds if the rate under d0 is at most the upper end of its 95 % interval, rounded up as `percent_at_most` does.
    """
    found = result.witness
    if found is None or not result.bounds_valid or found.counted == "moving" or math.isnan(found.allowed_upper):
        return math.nan
    claim, end = result.claim.symmetrized(), found.alpha_upper
    rounding = float(claim.beta(end)) - float(claim.beta(min(1.0, rate_at_most(end))))
    allowed = found.allowed_upper + max(0.0, rounding)
    return allowed if result.violated or 1 - found.beta <= allowed else math.nan


def witness_words(result: AuditResult, found: Witness) -> str:
    """Describe a witness in a sentence of plain text, for example for an error message."""
    if not result.bounds_valid:
        return f"{found.region}: the counts prove nothing ({found.pair})"
    if result.violated and found.counted == "moving":
        return (
            f"{found.region}, an illustration of the proof, which rests on all runs (pair {found.pair}; "
            f"attack {found.attack}; the region changed while the attack learned, so its rates are not known)"
            + found.told
        )
    return found.describe(_allowance(result, found) + ("" if result.violated else "; not significant"))


def _allowance(result: AuditResult, found: Witness) -> str:
    allowed = allowed_rate(result)
    if result.violated and result.evidence.kind.anytime and not 1 - found.beta > allowed:
        return ", an illustration of the proof, which rests on all runs"
    if math.isnan(allowed):
        return ""
    end = percent_at_most(found.alpha_upper)
    return f"; the claim allows at most {percent_at_most(allowed)}, even if d0's rate is {end}"
