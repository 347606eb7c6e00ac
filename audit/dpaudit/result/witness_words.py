"""Describes the witness of a result, and decides whether its counts may be compared with the claim."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpaudit.result.values import Witness
from dpaudit.text.rounding import percent_at_most, rate_at_most

if TYPE_CHECKING:
    from dpaudit.result.model import AuditResult


def allowed_rate(result: AuditResult) -> float:
    """Return the largest rate under d1 that a report may state as allowed by the claim, in [0, 1].

    Reports and messages state an allowed rate only if this function returns one.  The claim allows this rate under d1
    if the rate under d0 is at most the upper end of its 95 % interval, rounded up as `percent_at_most` shows it.  So
    the statement holds for the condition that a reader sees.
    """
    found = result.witness
    if found is None or not result.bounds_valid or found.counted not in ("frozen", "later"):
        return math.nan
    if math.isnan(end := found.alpha_upper):
        return math.nan
    claim = result.claim.symmetrized()
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
            + (f"; {found.query}" if found.query else "")
        )
    return found.describe(_allowance(result, found) + ("" if result.violated else "; not significant"))


def _allowance(result: AuditResult, found: Witness) -> str:
    allowed = allowed_rate(result)
    if result.violated and result.evidence.anytime and not 1 - found.beta > allowed:
        return ", an illustration of the proof, which rests on all runs"
    if math.isnan(allowed):
        return ""
    end = percent_at_most(found.alpha_upper)
    return f"; the claim allows at most {percent_at_most(allowed)}, even if d0's rate is {end}"
