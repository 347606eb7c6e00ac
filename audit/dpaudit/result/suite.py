"""Joint guarantees of several audits: their computation and their words."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpaudit.inference.e_bh import e_bh, shared_confidences, significance
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit.result.values import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The joint guarantee of all audits of one command: if all claims are true, P[any violation] <= `false_alarm`."""

    confidences: tuple[float, ...]  # confidence of each audit
    false_alarm: Fraction  # maximum probability of at least one false alarm in the command
    # whether the audits share the false alarm probability; if False, each audit uses its requested confidence
    shared: bool
    number: str  # random identifier of the command, recorded in its results

    @classmethod
    def of(cls, confidences: Sequence[float], *, each: bool = False) -> Promise:
        """Divide the probability of a false alarm among several audits."""
        total = sum((significance(confidence) for confidence in confidences), Fraction(0))
        shares = shared_confidences(confidences)
        number = secrets.token_hex(4)
        if each:
            return cls(confidences=tuple(confidences), false_alarm=min(total, Fraction(1)), shared=False, number=number)
        together = total / len(confidences) if confidences else Fraction(0)
        return cls(confidences=tuple(shares), false_alarm=together, shared=True, number=number)

    def recorded(self, provenance: Provenance) -> Provenance:
        """Add the promise to the provenance of a result, if the command makes a joint promise."""
        if len(self.confidences) < 2 or not self.shared:
            return provenance
        exact = 1 - self.false_alarm
        confidence = float(exact)
        if Fraction(repr(confidence)) > exact:
            confidence = math.nextafter(confidence, 0.0)
        return replace(
            provenance, command_number=self.number, command_audits=len(self.confidences), command_confidence=confidence
        )

    def words(self, results: Sequence[AuditResult]) -> str:
        """Describe the joint guarantee of the command's results; "" if the command has only one audit."""
        audits = len(self.confidences)
        own = "" if self.shared else ", each at its own confidence"
        return f"{_refuted(results, audits, own)}  {_promise(audits, self.false_alarm)}" if audits > 1 else ""


def named_together(results: Sequence[AuditResult]) -> str:
    """Describe which of several violations remain after a correction for multiple testing, by `inference.e_bh`.

    "" for a single result, without refutation, or if one command guarantees all results jointly.
    """
    refuted = [result for result in results if result.violated]
    if len(results) < 2 or not refuted or promised_together(results):
        return ""
    named = [result.name for result in standing(results)]
    confidences = {result.confidence for result in results}
    each = f", each at {_percent(1 - significance(min(confidences)), up=False)}" if len(confidences) == 1 else ""
    words = (
        f"{len(refuted)} of {len(results)} refuted{each}.  With {len(results)} audits, a false alarm is more likely "
        "than with one.  After an e-BH correction for this, "
    )
    if len(named) == len(refuted):
        return words + "all refutations stand."
    stands = "no refutation stands yet"
    if named:
        stands = f"only the refutation{'s' * (len(named) > 1)} of {', '.join(named)} stand{'s' * (len(named) == 1)}"
    return f"{words}{stands}.  {to_settle(results)}"


def standing(results: Sequence[AuditResult]) -> list[AuditResult]:
    """Return the violations that remain after the correction; all if one command guarantees all results jointly."""
    if len(results) < 2 or promised_together(results):
        return [result for result in results if result.violated]
    # After a failure, `e_value` may be the wealth just before the failing run, which is not a stopping time.
    e_values = [min(r.e_value, 1.0) if r.verdict is Verdict.INCONCLUSIVE else r.e_value for r in results]
    chosen = e_bh(e_values, false_discovery_rate=max(1 - result.confidence for result in results))
    return [results[i] for i in chosen if results[i].violated]


def to_settle(results: Sequence[AuditResult]) -> str:
    """Say at which confidence refutations need no correction."""
    confidence = shared_confidences([min(result.confidence for result in results)] * len(results))[0]
    return f"To settle it, run all audits in one command, or each with --confidence {_digits(confidence)}."


def promised_together(results: Sequence[AuditResult]) -> str:
    """Describe the joint guarantee of the command that made all the given results; "" if there is none."""
    if len(results) < 2:
        return ""
    stated = {
        (r.provenance.command_number, r.provenance.command_audits, r.provenance.command_confidence) for r in results
    }
    _, audits, confidence = next(iter(stated))
    if len(stated) > 1 or audits is None or confidence is None or not 0 < confidence < 1:
        return ""
    if len(results) > audits or len({result.name for result in results}) < len(results):
        return ""
    significances = sum((1 - Fraction(result.confidence) for result in results), Fraction(0))
    if significances > significance(confidence):
        return ""
    promise = _promise(audits, significance(confidence))
    return promise if len(results) == audits else f"{_refuted(results, audits, '')}  {promise}"


def _refuted(results: Sequence[AuditResult], audits: int, own: str) -> str:
    refuted, shown = sum(result.violated for result in results), len(results)
    if shown < audits:  # only some of the results may be shown
        return f"{refuted} of the {shown} claims shown refuted{own}; the command had {audits} audits."
    return f"{refuted} of {audits} claims refuted{own}."


def _promise(audits: int, false_alarm: Fraction) -> str:
    return (
        f"If all {audits} claims were true, this command would refute one or more of them with probability "
        f"at most {_percent(false_alarm)}."
    )


def _percent(share: Fraction, *, up: bool = True) -> str:
    """Write a probability in percent with four digits, rounded up if `up` is True and otherwise rounded down."""
    percent = 100 * share
    if percent <= 0:
        return "0 %"
    scale = Fraction(10) ** (3 - math.floor(math.log10(percent)))
    digits = math.ceil(percent * scale) if up else math.floor(percent * scale)
    return f"{float(Fraction(digits) / scale):.10g} %"


def _digits(confidence: float) -> str:
    """Write a confidence, rounded up, with the fewest digits that change 1 - confidence by at most a tenth."""
    for digits in range(2, 17):
        scale = 10**digits
        rounded = math.ceil(Fraction(confidence) * scale)
        if rounded < scale and Fraction(rounded, scale) - Fraction(confidence) <= (1 - Fraction(confidence)) / 10:
            return f"{rounded / scale:.{digits}f}".rstrip("0")
    return repr(confidence)
