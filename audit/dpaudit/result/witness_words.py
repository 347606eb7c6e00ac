"""Describes the witness of a result, and decides whether its counts may be compared with the claim."""

from __future__ import annotations

import math

from dpaudit.inference.fixed.clopper_pearson import clopper_pearson_upper
from dpaudit.result.own_forms import region_words
from dpaudit.result.stated import Stated
from dpaudit.result.values import Witness
from dpaudit.text.rounding import percent_at_most, rate_at_most

_MISSED = 0.025  # significance level of each end of a two-sided 95 % interval


def allowed_rate(result: Stated) -> float:
    """Return the largest rate under d1 that a report may state as allowed by the claim, in [0, 1].

    Reports and messages state an allowed rate only if this function returns one.  The claim allows this rate under d1
    if the rate under d0 is at most the upper end of its 95 % interval, rounded up as `percent_at_most` shows it.  So
    the statement holds for the condition that a reader sees.
    """
    found = result.witness
    if found is None or not result.bounds_valid or not _frozen(result, found):
        return math.nan
    allowed = _allowed(result, found)
    return allowed if result.violated or 1 - found.beta <= allowed else math.nan


def _frozen(result: Stated, found: Witness) -> bool:
    """Return whether the rejection region was fixed before its outputs were sampled.

    Files of fixed audits by older versions do not state this.
    """
    return found.counted in ("frozen", "later") or (found.counted == "" and result.evidence.frozen)


def _allowed(result: Stated, found: Witness) -> float:
    counts, end = found.counts, found.alpha_upper
    if math.isnan(found.allowed_upper):
        if found.counted == "later" or not (counts.n0 and counts.n1):
            return math.nan
        end = clopper_pearson_upper(counts.false_positives, counts.n0, significance=_MISSED)
    claim = result.claim.symmetrized()
    allowed = 1 - float(claim.beta(end)) if math.isnan(found.allowed_upper) else found.allowed_upper
    if math.isnan(end):
        return allowed  # a file that states no interval, so no condition is shown
    return allowed + max(0.0, float(claim.beta(end)) - float(claim.beta(min(1.0, rate_at_most(end)))))


def witness_words(result: Stated, found: Witness) -> str:
    """Describe a witness in a sentence of plain text, for example for an error message."""
    if not result.bounds_valid:
        return f"{region_words(found.region)}: the counts prove nothing ({found.pair})"
    if result.violated and found.counted == "moving":
        return (
            f"{region_words(found.region)}, an illustration of the proof, which rests on all runs (pair {found.pair}; "
            f"attack {found.attack}; the region changed while the attack learned, so its rates are not known)"
            + (f"; {found.query}" if found.query else "")
        )
    return found.describe(_allowance(result, found) + ("" if result.violated else "; not significant"))


def _allowance(result: Stated, found: Witness) -> str:
    allowed = allowed_rate(result)
    if result.violated and result.evidence.anytime and not 1 - found.beta > allowed:
        return ", an illustration of the proof, which rests on all runs"
    if math.isnan(allowed):
        return ""
    words = f"; the claim allows at most {percent_at_most(allowed)}"
    known = not math.isnan(found.alpha_upper)
    return f"{words}, even if d0's rate is {percent_at_most(found.alpha_upper)}" if known else words
