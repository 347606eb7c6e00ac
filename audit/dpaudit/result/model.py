"""The result of an audit, with its bounds, files, plots and reports."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit.claims import Reported, TradeoffFunction
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.inference.scores.families import Family
from dpaudit.result.atomic_write import write_whole
from dpaudit.result.confirmation import Confirmation, runs_for_size
from dpaudit.result.evidence import (
    AssumedBound,
    Evidence,
    bound_inside,
    bound_outside,
    confirmation_of,
    given_scores,
    spent,
)
from dpaudit.result.provenance import Provenance, TrainingRecord
from dpaudit.result.scores_evidence import ScoreBound, score_bounds
from dpaudit.result.summary import p_value_words, summary_of
from dpaudit.result.values import FORMAT, AttackRow, Curve, Detectable, History, PairRow, StoppedBy, Verdict, Witness
from dpaudit.result.words import words_of
from dpaudit.text import WarningCode, has_code, read_foreign
from dpaudit.values import Json, JsonObject


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AuditResult:
    """The result of an audit.  `str(result)` returns a summary.

    It has no truth value, which could mean either that the claim was refuted or that it was not; use `violated`.
    """

    name: str
    verdict: Verdict
    claim: TradeoffFunction
    confidence: float
    method: str
    p_value: float  # of the claim; for a sequential audit, 1 / maximum wealth, which is valid at any stopping time
    # of expectation <= 1 if the claim is true; may be inf.  That of a sequential audit is the final wealth, but at most
    # 1 after a failure, just before which the wealth is no e-value.
    e_value: float
    trials_used: int  # number of runs made on each dataset, including those that were only used to train attacks
    trials_allowed: int  # maximum number of runs on each dataset
    stopped_by: StoppedBy = "trials"
    refuted_at: int | None = None  # number of runs on each dataset when the claim was refuted, if it was refuted
    mu_lower: float  # certified lower bound on mu: not mu-GDP for any mu below the bound; nan if not `bounded`
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

    def __bool__(self) -> bool:
        """Raise TypeError, because a test such as `assert audit(...)` would otherwise always pass."""
        raise TypeError(
            f"a result has no truth value (this one: {self.verdict.value}); use result.violated, or "
            "compare result.verdict with a Verdict"
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
    def bounded(self) -> bool:
        """Whether the counts prove bounds.  What sessions report is refuted or not, and has no bounds."""
        return self.bounds_valid and not isinstance(self.claim, Reported)

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
        scores = given_scores(self.evidence) if self.bounds_valid else None
        return () if scores is None else score_bounds(scores, self.claim, delta, self.confidence)

    def epsilon_lower(self, delta: float = 0.0, assuming: str | Family | None = None) -> float:
        """Return a certified lower bound on epsilon for a given delta.

        With the confidence of the audit, the mechanism is not (epsilon, delta)-DP for any epsilon below this bound.
        For a sequential audit, the bounds for all deltas, `mu_lower` and the verdict hold jointly at this confidence.
        For other audits, each bound holds separately.

        Args:
            delta: Delta of the bound, between 0 and 1.
            assuming: A one-parameter family of claims that is assumed to contain the mechanism's curve: "gaussian", the
                text of a claim with one `?`, or a function from the parameter to a claim that weakens as it grows.  The
                bound is certified only if the assumption is true.

        Returns:
            The bound in nats; 0 if `bounds_valid` is False, and nan for what sessions report.  With an untested
            assumption, of the family or of the audit itself (such as `independence="canaries"`), it is an
            `AssumedBound`, a number that prints all its assumptions.

        Raises:
            ValueError: If the family cannot be read, or if its claims are not nested.
        """
        if isinstance(self.claim, Reported):
            return math.nan
        if assuming is not None:
            return self.assumed_bound(delta, assuming)
        if not self.bounds_valid:
            return 0.0
        if delta not in self._bounds:
            self._bounds[delta] = bound_outside(self.evidence, self.evidence.lower(delta, confidence=self.confidence))
        return self._bounds[delta]

    def assumed_bound(self, delta: float, assuming: str | Family) -> AssumedBound:
        """Return `epsilon_lower`, whose arguments and errors these are, with the largest refuted parameter."""
        if isinstance(self.claim, Reported):
            raise ValueError("no bound follows from what sessions report: audit a claim about the whole session")
        key, confidence = (delta, assuming), self.confidence
        if key not in self._assumed:
            bound = bound_inside(self.evidence, delta, assuming, confidence=confidence, valid=self.bounds_valid)
            self._assumed[key] = bound
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

        An event has the probability P(S and success) / P(success) among the runs that succeed.  Under epsilon-DP, each
        of the two differs between neighbours by a factor of at most e^epsilon, so these runs are 2 epsilon-DP, and need
        not be better.
        """
        if not any(has_code(warning, WarningCode.RETRIED) for warning in self.warnings):
            return ""
        return " among the runs that succeeded (failed runs were retried, which alone can double epsilon)"

    def __str__(self) -> str:
        return self.summary()

    def summary(self, delta: float | None = None) -> str:
        """Return the summary of `str`, with `bounds_at(delta)` as the table of given scores."""
        return summary_of(self, delta)

    @property
    def runs_for_size(self) -> float | None:
        """Estimated fresh runs on each dataset that would show the size: inf if unknown, None if the size is known."""
        if not (self.violated and self.bounded) or not self.evidence.kind.anytime or self.confirmation is None:
            return None
        return runs_for_size(self.confirmation, self.claim.symmetrized(), 1 - self.confidence)

    def to_json(self, path: str | Path) -> None:
        """Write the result as a JSON file: floats with all digits, inf and nan as strings; may raise OSError."""
        from dpaudit.result.files import as_text

        write_whole(path, as_text(self.to_dict()))

    def to_pdf(self, path: str | Path, *, paper: str = "a4") -> None:
        """Write the report of this audit as a PDF file; `paper` is "a4" or "letter"."""
        from dpaudit_reports import write_pdf

        write_pdf([self], path, paper=paper)

    def as_pdf(self) -> bytes:
        """Return the report of this audit as the content of a PDF file."""
        from dpaudit_reports import to_pdf

        return to_pdf([self])

    def to_html(self, path: str | Path) -> None:
        """Write the report of this audit as a single, self-contained HTML file."""
        from dpaudit_reports import write_html

        write_html([self], path)

    def to_markdown(self) -> str:
        """Return a short report in Markdown, suitable as a comment on a pull request."""
        from dpaudit_reports import to_markdown

        return to_markdown([self])

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook displays for the result."""
        from dpaudit_reports import to_fragment

        return to_fragment([self])

    def plot(
        self,
        kind: Any = "tradeoff",
        ax: Any = None,
        *,
        label: str | None = None,
        color: str | None = None,
        claim: bool = True,
        legend: bool = True,
    ) -> Any:
        """Draw a plot of the result on new or given axes, and return the axes, which a notebook displays.

        With `label` or `color`, or on axes that already hold such a plot, only one line is added, so that several
        results can share the axes.
        """
        from dpaudit_reports import plot_result

        if not isinstance(kind, str):  # `plot(ax)`
            kind, ax = "tradeoff", kind
        return plot_result(self, kind, ax, label=label, color=color, claim=claim, legend=legend)
