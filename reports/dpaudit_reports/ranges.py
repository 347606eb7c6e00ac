"""Certified, unproven and blind ranges of the privacy loss, as multiples of the value that the claim allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.claims import GaussianDP, TradeoffFunction
from dpaudit.result.model import AuditResult
from dpaudit_reports.claim_words import detectable_claim
from dpaudit_reports.claimed import Bound, headline


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of the privacy loss after an audit.

    The loss is at least `certified`.  Between `certified` and `blind_until`, it could be anywhere.  A loss above 1 is a
    violation of the claim.
    """

    certified: float  # >= 0; a multiple of the claimed value, like all other fields
    blind_until: float  # >= 1: smallest violation that would have been found; inf if none, or after a violation


def ranges(result: AuditResult) -> Ranges | None:
    """Return the ranges of the claim's own parameter, which is also the parameter of the headline."""
    bound = headline(result)
    if result.measurement or bound is None or not 0 < bound.claimed < math.inf:
        return None
    if not result.bounds_valid:
        return Ranges(0.0, math.inf)
    certified = 0.0 if math.isnan(bound.certified) else max(0.0, bound.certified / bound.claimed)
    if result.violated:
        return Ranges(max(1.0, certified), math.inf)
    found = detectable_claim(result)
    return Ranges(certified, math.inf if found is None else max(1.0, _value(found, bound) / bound.claimed))


def _value(violation: TradeoffFunction, bound: Bound) -> float:
    """Return the bound's parameter of a violation."""
    if bound.delta is not None:
        return violation.epsilon(bound.delta)
    return violation.mu() if isinstance(violation, GaussianDP) else math.inf
