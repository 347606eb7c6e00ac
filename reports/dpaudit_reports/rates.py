"""Rates of a rejection region, with exact intervals, and the rates that the claim allows."""

from __future__ import annotations

import math
from enum import Enum
from functools import lru_cache

from scipy.special import betaincinv

from dpaudit.claims import TradeoffFunction
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Witness
from dpaudit_reports.numbers import NOT_KNOWN, at_least, at_most, number, percent

_NEAR = 0.2  # maximum p-value of a region's counts at which the region came near a violation


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
    """Return whether the p-value of the region's counts is at most 0.2.

    Older results do not state this p-value.  For these results, True still implies that the p-value is at most 0.2.
    """
    if found.region.endswith("anywhere") or not (found.counts.n0 and found.counts.n1):
        return False
    p_value = float(getattr(found, "p_value", math.nan))  # older results do not state the p-value
    if not math.isnan(p_value):
        return bool(getattr(found, "near", p_value <= _NEAR))
    # If the two one-sided intervals together exclude the claim, its p-value is at most 0.2 by the union bound.
    counts = found.counts
    most0 = upper(counts.false_positives, counts.n0, _NEAR / 2)
    least1 = lower(counts.n1 - counts.false_negatives, counts.n1, _NEAR / 2)
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
    first = _bare(at_least(100 * low, _digits(low)))
    return f"{first} to {_bare(at_most(100 * high, _digits(high)))}\u00a0%"


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


def _bare(number: str) -> str:
    return number.split("\u00a0", 1)[1]
