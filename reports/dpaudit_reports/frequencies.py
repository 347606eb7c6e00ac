"""The counts of a region in natural frequencies, such as "14 of 26 runs"."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.result.model import AuditResult
from dpaudit.result.values import Witness
from dpaudit.result.witness_words import allowed_rate
from dpaudit_reports.numbers import count
from dpaudit_reports.rates import accounted, intervals, region
from dpaudit_reports.sides import Sides, sides


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The numbers of outputs of d0 and of d1 in a region."""

    hits0: int
    n0: int
    hits1: int
    n1: int
    # largest hits1 that the claim allows on average; None unless region and number of runs were fixed beforehand
    most: int | None
    moving: bool  # whether the region changed while its outputs were counted
    stopping: bool  # whether the region was fixed, and the evidence ended the audit
    later: bool  # whether the region was fixed before these outputs came, but not the number of runs
    sides: Sides

    @property
    def exceeded(self) -> bool:
        """Whether more outputs of d1 were in the region than the claim allows on average."""
        return self.most is not None and self.hits1 > self.most


def frequencies(result: AuditResult) -> Frequencies | None:
    """Return the counts of the result's region; None if the result has no region or no counts of one dataset.

    The claim's limit `most` is set only if region and number of runs were fixed before the outputs were counted.
    Otherwise the observed rates would be biased against the claim.  The limit takes the rate on d0 at the upper end of
    its 95 % interval and is rounded up to a whole number.
    """
    found = result.witness
    if found is None or not result.evidence.of_pairs or not (found.counts.n0 > 0 and found.counts.n1 > 0):
        return None
    counts = found.counts
    most: int | None = None
    frozen, moving = result.evidence.frozen, intervals(found) is None
    if frozen and not moving and not math.isnan(rate := allowed_rate(result)):
        most = min(counts.n1, math.ceil(rate * counts.n1))
    hits1 = counts.n1 - counts.false_negatives
    later = accounted(found) and not frozen
    stopping, shown = later and result.stopped_by == "evidence", sides(result, found.pair)
    return Frequencies(counts.false_positives, counts.n0, hits1, counts.n1, most, moving, stopping, later, shown)


def in_words(result: AuditResult, found: Frequencies) -> str:
    """Return the counts in a sentence, with the claim's limit if this limit is known."""
    return counted(result, found) if found.moving else f"{counted(result, found)}{_allowance(found)}"


def counted(result: AuditResult, found: Frequencies) -> str:
    """Return the counts as the beginning of a sentence, or as two sentences if the region changed."""
    assert result.witness is not None
    times1 = f"{count(found.hits1)} of {count(found.n1)} runs {found.sides.on1}"
    times0 = f"{count(found.hits0)} of {count(found.n0)} {found.sides.on0}"
    if found.moving:
        return (
            f"The attack's region changed while the attack learned. It held the outputs of {times1} and of {times0}. "
            f"At the end, the region was: {region(result.witness)}."
        )
    return f"{_subject(result.witness)} in {times1} and in {times0}"


def _subject(found: Witness) -> str:
    words = region(found)
    if words.startswith("output ") and ";" not in words:
        return f"The output is {words.removeprefix('output ')}"
    ours = words.startswith(("estimated log-likelihood ratio", "low-order bits", "running time"))
    return f"{words[:1].upper()}{words[1:]}:" if ours else f"{words}:"


def _allowance(found: Frequencies) -> str:
    if found.stopping:
        return (
            ". The audit stopped because of these outputs, so the observed rates may look worse for the claim than the "
            "true rates. The verdict rests on all runs."
        )
    if found.later:
        return ". The region was fixed before these outputs were sampled. The verdict rests on all runs."
    if found.most is None:
        return ". The region was chosen by these counts."
    end = f"if the rate {found.sides.name0} is at the upper end of its 95\u00a0% interval"
    both = "" if found.exceeded else " The exact test of both rates together refutes the claim."
    return f"; the claim allows at most {count(found.most)} of {count(found.n1)} on average, {end}.{both}"
