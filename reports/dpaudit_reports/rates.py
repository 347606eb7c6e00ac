"""Rates of a rejection region with exact intervals, and its counts in natural frequencies, such as "14 of 26 runs"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from scipy.special import betaincinv

from dpaudit.claims import TradeoffFunction
from dpaudit.result.model import AuditResult, allowed_rate
from dpaudit.result.values import NEAR, Witness
from dpaudit.result.words import quotation
from dpaudit.text.rounding import NOT_KNOWN, at_least, at_most, count, number, percent, percent_at_most
from dpaudit_reports.numbers import bare
from dpaudit_reports.sides import Sides, sides
from dpaudit_reports.verdicts import fresh


class RegionStatus(Enum):
    """The conclusions that a report may draw from the region of a result."""

    NONE = "no region"
    VOID = "counts that prove nothing"
    WITNESS = "a region that shows the violation"
    TESTED = "a region frozen beforehand, without a violation"
    CLOSEST = "a region chosen by its counts, without a violation"
    FAR = "no region near a violation"


def region_status(result: AuditResult) -> RegionStatus:
    """Return the conclusion that a report may draw from the region that the result names."""
    found = result.witness
    if found is None or not result.evidence.of_pairs:
        return RegionStatus.NONE
    if not result.bounds_valid:
        return RegionStatus.VOID
    if result.violated:
        return RegionStatus.WITNESS
    if frozen(result):
        return RegionStatus.TESTED
    return RegionStatus.CLOSEST if came_near(result, found) else RegionStatus.FAR


def came_near(result: AuditResult, found: Witness) -> bool:
    """Return whether the p-value of the region's counts is at most 0.2."""
    if found.region.endswith("anywhere") or not (found.counts.n0 and found.counts.n1):
        return False
    if not math.isnan(found.p_value):
        return found.near
    # Older results do not state it.  If both one-sided intervals exclude the claim, it is at most 0.2 by a union bound.
    counts = found.counts
    most0 = upper(counts.false_positives, counts.n0, NEAR / 2)
    least1 = lower(counts.n1 - counts.false_negatives, counts.n1, NEAR / 2)
    return least1 > 1 - _least_beta(result.claim, most0)


def region(found: Witness) -> str:
    """Return the region in words; a region that is called "anywhere" is described by the threshold of the score."""
    if not found.region.endswith("anywhere"):
        return found.region
    if math.isnan(found.threshold):
        return "estimated log-likelihood ratio above a threshold"
    return f"estimated log-likelihood ratio above {number(found.threshold)}"


def rate_text(k: int, n: int) -> str:
    """Return the rate k / n as text, such as "23.5 %"."""
    return percent(k / n) if n else NOT_KNOWN


def intervals(found: Witness) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return the 95 % intervals of alpha and beta, ((lower, upper), (lower, upper)); None if the witness has none."""
    if math.isnan(found.alpha_upper):
        return None
    return (found.alpha_lower, found.alpha_upper), (found.beta_lower, found.beta_upper)


def frozen(result: AuditResult) -> bool:
    """Return whether the region and the number of its outputs were fixed before these outputs came."""
    return result.evidence.frozen or (result.witness is not None and result.witness.counted == "frozen")


def accounted(found: Witness) -> bool:
    """Return whether the intervals account for the choice of the region and for the time at which the audit stopped."""
    return found.counted == "later"


def least_inside(found: Witness) -> float:
    """Return a lower bound on the rate on d1 if its interval allows for stopping, and else the observed rate."""
    if accounted(found) and (ends := intervals(found)) is not None:
        return 1 - ends[1][1]
    counts = found.counts
    return (counts.n1 - counts.false_negatives) / counts.n1 if counts.n1 else math.nan


def interval_text(interval: tuple[float, float] | None) -> str:
    """Return an interval of a rate as text, rounded outwards, such as "21.6 to 25.5 %"."""
    if interval is None:
        return NOT_KNOWN
    low, high = interval
    first = bare(at_least(100 * low, _digits(low)))
    return f"{first} to {bare(at_most(100 * high, _digits(high)))}\u00a0%"


def upper(k: int, n: int, significance: float) -> float:
    """Return the Clopper-Pearson upper bound on a proportion.

    Theorem:
        If K ~ Binomial(n, p), then P[upper(K, n, significance) < p] <= significance.  Clopper & Pearson 1934,
        Biometrika 26, 404-413.
    """
    return 1.0 if k >= n else 1.0 - float(betaincinv(n - k, k + 1, significance))


def lower(k: int, n: int, significance: float) -> float:
    """Return the Clopper-Pearson lower bound on a proportion: `upper` with successes and failures exchanged."""
    return 0.0 if k <= 0 else float(betaincinv(k, n - k + 1, significance))


@lru_cache(maxsize=1024)
def _least_beta(claim: TradeoffFunction, alpha: float) -> float:
    """Return the least type II error that the claim allows in both orders of a pair."""
    return float(claim.symmetrized().beta(alpha))


def _digits(rate: float) -> int:
    """Return three, or a larger number of digits if these are needed to distinguish the rate from 1."""
    rest = 100 - 100 * rate
    return max(3, 3 - math.floor(math.log10(rest))) if 0 < rest < 1 else 3


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
    limit = "" if found.most is None else f"The limit is an average, {if_rate(result, found)}. "
    if found.later and result.stopped_by == "evidence":
        return (
            f"{limit}{_ILLUSTRATION} They may exaggerate the difference, because the audit stopped as soon as it had a "
            "proof; the verdict allows for this."
        )
    if found.later:
        return f"{limit}{_ILLUSTRATION}"
    return limit.rstrip() if found.exceeded or not by_test(result) else f"{limit}{BY_TEST}"
