"""What an audit found, with the evidence, and how it is kept."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.nothing import NO_CLAIM
from dpaudit.inference.scores.families import Family
from dpaudit.result.assumed import AssumedBound, bound_inside
from dpaudit.result.atomic_write import write_whole
from dpaudit.result.evidence import Evidence
from dpaudit.result.provenance import Provenance
from dpaudit.result.values import FORMAT, AttackRow, Curve, Detectable, History, PairRow, StoppedBy, Verdict, Witness
from dpaudit.text.foreign_files import read_foreign
from dpaudit.text.printable import one_line
from dpaudit.text.rounding import lower, upper

MAX_RESULT_BYTES = 2**25  # of a file; results have some hundred kB


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
    refuted_at: int | None = None  # runs per dataset at which the claim was refuted; None if not, or not looked for
    mu_lower: float  # certified: the mechanism is not mu-GDP for any mu below this
    curve: Curve
    witness: Witness | None
    detectable: Detectable
    history: History
    evidence: Evidence
    pairs: tuple[PairRow, ...]
    attacks: tuple[AttackRow, ...]
    warnings: tuple[str, ...]
    provenance: Provenance  # versions, machine, seed, date, mechanism, config
    elapsed_s: float
    bounds_valid: bool = (
        True  # False if runs depended on each other, or a fixed number of trials was not reached: no bound
    )
    _assumed: dict[tuple[float, str | Family], AssumedBound] = field(init=False, default_factory=dict)
    _bounds: dict[float, float] = field(init=False, default_factory=dict)  # found so far; `replace` begins a new one

    def __bool__(self) -> bool:
        """Refuse: a test such as `assert audit(...)` would always pass."""
        raise TypeError(
            f"a result has no truth value (this one: {self.verdict.value}); ask result.violated, or compare "
            "result.verdict with a Verdict"
        )

    def __repr__(self) -> str:
        assumption = self.evidence.words.assumption
        assumed = f", assumed, not tested: {assumption}" if assumption else ""
        return (
            f"<AuditResult {self.name!r}: {self.verdict.value}, {self.claim.label}, p <= {p_value_words(self)}, "
            f"confidence {self.confidence:.9g}, {self._runs}{assumed}>"
        )

    @property
    def violated(self) -> bool:
        """Whether the claim was refuted."""
        return self.verdict is Verdict.VIOLATION

    @property
    def measurement(self) -> bool:
        """Whether no claim was given, so that there was nothing to refute.  The bounds hold all the same."""
        return self.claim == NO_CLAIM

    @property
    def environment(self) -> Mapping[str, Any]:
        """The `provenance` as a file states it: plain values by key, read-only."""
        return self.provenance.environment

    def epsilon_lower(self, delta: float = 0.0, assuming: str | Family | None = None) -> float:
        """Certified: with the audit's confidence the mechanism is not (epsilon, `delta`)-DP for any epsilon below this.

        Of a sequential audit: for all `delta` at once, and together with `mu_lower` and the verdict.  Of the others: at
        each `delta` alone.  0 if nothing is `bounds_valid`.  See `evidence`.

        Args:
            delta: In [0, 1].
            assuming: A one-parameter family of claims in which the mechanism's curve is assumed to lie: "gaussian", a
                claim's text with one `?`, or a function from the parameter to a claim.  The claims must promise less
                as the parameter grows.  The bound is then an `AssumedBound`, which prints its assumption; it is
                certified only if the assumption is true.

        Raises:
            ValueError: If the family cannot be read, or its members are not nested.
        """
        if assuming is not None:
            return self.assumed_bound(delta, assuming)
        if not self.bounds_valid:
            return 0.0
        if delta not in self._bounds:
            self._bounds[delta] = self.evidence.epsilon_lower(delta, confidence=self.confidence)
        return self._bounds[delta]

    def assumed_bound(self, delta: float, assuming: str | Family) -> AssumedBound:
        """`epsilon_lower` inside a family, with the largest member that is refuted."""
        key = (delta, assuming)
        if key not in self._assumed:
            evidence = self.evidence if self.bounds_valid else None
            self._assumed[key] = bound_inside(evidence, delta, assuming, confidence=self.confidence)
        return self._assumed[key]

    # --- as a file

    def to_json(self, path: str | Path) -> None:
        """Write the result as JSON.  Floats keep all their digits; inf and nan are written as strings."""
        write_whole(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        from dpaudit.result.files import plain

        names = ("environment" if f.name == "provenance" else f.name for f in dataclasses.fields(self) if f.init)
        values = {name: getattr(self, name) for name in names}
        return {"format": FORMAT, **plain(values | {"evidence": self.evidence.to_json()})}

    @classmethod
    def from_json(cls, path: str | Path) -> AuditResult:
        """Read a result that `to_json` wrote.  ValueError, naming the file, for anything else."""
        try:
            return cls.from_dict(json.loads(read_foreign(path, MAX_RESULT_BYTES)))
        except RecursionError:
            raise ValueError(f"{path} is not a result of dpaudit: it is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"{path} is not a complete result of dpaudit ({FORMAT}): {error}") from None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AuditResult:
        """The inverse of `to_dict`.  ValueError for anything that it did not make."""
        from dpaudit.result.files import read  # pydantic takes a while to load

        return cls(**read(values))

    # --- for people

    def to_pdf(self, path: str | Path) -> None:
        """Write the report of this audit as PDF."""
        from dpaudit_reports import write_pdf

        write_pdf([self], path)

    def to_html(self, path: str | Path) -> None:
        """Write the same report as one HTML file that needs nothing else."""
        from dpaudit_reports import write_html

        write_html([self], path)

    def to_markdown(self) -> str:
        """A short form of the report, as Markdown for a comment on a pull request."""
        from dpaudit_reports import to_markdown

        return to_markdown([self])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from dpaudit_reports import to_fragment

        return to_fragment([self])

    def plot(self, ax: Any = None) -> Any:
        """Draw the trade-off plot.

        Args:
            ax: The axes to draw on; those of a new figure unless given.

        Returns:
            The axes.  Those of a new figure show themselves as a picture in a notebook.
        """
        from dpaudit_reports import plot_tradeoff

        return plot_tradeoff(self, ax)

    def __str__(self) -> str:
        confidence = f"confidence {100 * self.confidence:.9g} %"
        found = {
            Verdict.VIOLATION: f"VIOLATION of {self.claim.label} (p <= {p_value_words(self)}, {confidence})",
            Verdict.NO_VIOLATION: f"no violation of {self.claim.label} found ({confidence})",
            Verdict.INCONCLUSIVE: f"inconclusive about {self.claim.label}",
        }[self.verdict]
        if self.measurement:
            found = f"measurement, no claim was tested (confidence {100 * self.confidence:.9g} %)"
        lines = [f"{self.name}: {found}"]
        if self.evidence.words.assumption:
            lines.append(f"  assumed, not tested: {self.evidence.words.assumption}")
        lines.append(f"  {self._runs} in {self.elapsed_s:.1f} s; {certified_words(self)}")
        if self.violated and self.evidence.anytime:
            lines.append(f"  {self._size}")
        if self.witness is not None:
            near = self.violated or self.witness.near
            lines.append(f"  {self.witness.describe() if near else 'no region that was counted came near a violation'}")
        if not self.violated and self.bounds_valid and not self.measurement:
            lines.append(f"  {_seen(self.detectable)}")
        return "\n".join(one_line(line) for line in [*lines, *(f"  warning: {words}" for words in self.warnings)])

    @property
    def _size(self) -> str:
        """What the bounds of an audit that may stop at its proof are worth."""
        if self.stopped_by == "evidence" or self.refuted_at is None:
            return "stopped at the first proof; this is no estimate of the size"
        return f"refuted after {self.refuted_at:,} runs per dataset; the bounds are those of the end"

    @property
    def _runs(self) -> str:
        return "one run" if self.evidence.once else f"{self.trials_used:,} runs per dataset"


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
    if not result.bounds_valid:
        return "nothing is certified"
    return f"certified: mu >= {mu_words(result)}, epsilon >= {epsilon_words(result)} at delta = 0"


def _seen(detectable: Detectable) -> str:
    if not detectable.claim:
        return "no violation in the claim's own family would have been seen with so few runs"
    return f"would have been seen with 90 % probability: {detectable.claim} ({detectable.assumption})"
