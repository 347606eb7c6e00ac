"""The counts of a region in natural frequencies, such as "14 of 26 runs"."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.result.model import AuditResult, allowed_rate
from dpaudit.result.values import Witness
from dpaudit.result.words import quotation
from dpaudit_reports.confirmed import fresh
from dpaudit_reports.numbers import count, percent_at_most
from dpaudit_reports.rates import accounted, frozen, intervals, least_inside, region
from dpaudit_reports.sides import Sides, sides

BY_TEST = "The exact test of both rates together refutes the claim."
_ILLUSTRATION = "These counts illustrate the proof, which rests on all runs."


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The numbers of outputs of d0 and of d1 in a region."""

    hits0: int
    n0: int
    hits1: int
    n1: int
    # largest hits1 that the claim allows on average; None if no such comparison is valid, see `frequencies`
    most: int | None
    moving: bool  # whether the region changed while its outputs were counted
    later: bool  # whether the region was fixed before these outputs came, but not the number of runs
    runs: str  # "fresh runs" if new runs followed the refutation, otherwise "runs"
    sides: Sides

    @property
    def exceeded(self) -> bool:
        """Whether more outputs of d1 were in the region than the claim allows on average."""
        return self.most is not None and self.hits1 > self.most


def frequencies(result: AuditResult) -> Frequencies | None:
    """Return the counts of the result's region; None if the result has no region or no counts of one dataset.

    The claim's limit `most` takes the rate on d0 at the upper end of its 95 % interval and is rounded up to a whole
    number.  It is set if region and number of runs were fixed before the outputs were counted.  If only the region was
    fixed, the observed rates are biased against the claim, because the evidence ends the audit.  Then the limit is set
    only if the whole 95 % interval of the rate on d1, which holds whenever the audit stops, is above the limit.
    """
    found = result.witness
    if found is None or not result.evidence.of_pairs or not (found.counts.n0 > 0 and found.counts.n1 > 0):
        return None
    counts = found.counts
    most: int | None = None
    moving, later = intervals(found) is None, accounted(found) and not frozen(result)
    hits1 = counts.n1 - counts.false_negatives
    if (frozen(result) or later) and not moving and not math.isnan(rate := allowed_rate(result)):
        most = min(counts.n1, math.ceil(rate * counts.n1))
        if later and not (hits1 > most and least_inside(found) > rate):
            most = None
    runs, shown = "fresh runs" if fresh(result) else "runs", sides(result, found.pair)
    return Frequencies(counts.false_positives, counts.n0, hits1, counts.n1, most, moving, later, runs, shown)


def by_test(result: AuditResult) -> bool:
    """Return whether the exact test of the region's counts refutes the claim."""
    found = fresh(result)
    return result.evidence.frozen if found is None else found.outcome == "confirmed"


def in_words(result: AuditResult, found: Frequencies) -> tuple[str, str]:
    """Return the counts in a sentence, with the claim's limit if this limit is known, and the meaning of the counts."""
    if found.moving:
        return counted(result, found), _ILLUSTRATION
    limit = "" if found.most is None else f"; the claim allows at most {count(found.most)} of {count(found.n1)}"
    return f"{counted(result, found)}{limit}.", _meaning(result, found)


def counted(result: AuditResult, found: Frequencies) -> str:
    """Return the counts as the beginning of a sentence, or as two sentences if the region changed."""
    assert result.witness is not None
    times1 = f"{count(found.hits1)} of {count(found.n1)} {found.runs} {found.sides.on1}"
    times0 = f"{count(found.hits0)} of {count(found.n0)} {found.sides.on0}"
    if found.moving:
        return (
            f"The attack's region changed while the attack learned. It held the outputs of {times1} and of {times0}. "
            f"At the end, the region was: {region(result.witness)}."
        )
    return f"{_subject(result.witness)} in {times1} and in {times0}"


def _subject(found: Witness) -> str:
    words = region(found)
    if words.startswith(("output above ", "output below ", "output at most ", "output between ", "output in ")):
        return f"The output is {words.removeprefix('output ')}"
    if "estimated log-likelihood ratio above" in words:
        return f"The output was in the region ({words.replace(': ', ' ')})"
    return f"{quotation(words)} was true"


def if_rate(result: AuditResult, found: Frequencies) -> str:
    """Return the condition of the claim's limit: a rate on d0 that is at most the upper end of its interval."""
    ends = None if result.witness is None else intervals(result.witness)
    assert ends is not None
    most = percent_at_most(ends[0][1])
    return f"if the true rate {found.sides.name0} is at most {most}, the upper end of its 95\u00a0% interval"


def _meaning(result: AuditResult, found: Frequencies) -> str:
    """State what the counts prove, in sentences."""
    limit = "" if found.most is None else f"The limit is an average, {if_rate(result, found)}. "
    if found.later and result.stopped_by == "evidence":
        return (
            f"{limit}{_ILLUSTRATION} They may exaggerate the difference, because the audit stopped as soon as it had a "
            "proof; the verdict allows for this."
        )
    if found.later:
        return f"{limit}{_ILLUSTRATION}"
    return limit.rstrip() if found.exceeded or not by_test(result) else f"{limit}{BY_TEST}"
