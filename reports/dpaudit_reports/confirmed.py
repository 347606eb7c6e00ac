"""What the fresh runs after a refutation say about a violation and its size."""

from __future__ import annotations

from dataclasses import replace

from dpaudit.inference.fixed.confirming import runs_to_confirm
from dpaudit.result.confirmation import Confirmation, confirmation_words, sizes_significance
from dpaudit.result.model import AuditResult
from dpaudit.result.own_forms import quotation
from dpaudit.text.rounding import upper
from dpaudit_reports.claimed import headline
from dpaudit_reports.numbers import at_most

_POWER = 0.9  # probability with which the suggested number of runs would show the size
_MOST = 10**9  # largest number of runs that is suggested


def fresh(result: AuditResult) -> Confirmation | None:
    """Return the fresh runs that counted the region of a violation; None if there are none."""
    found = result.confirmation
    return found if result.violated and found is not None and found.counts is not None else None


def outcome(result: AuditResult) -> str:
    """Return what the fresh runs say about a violation in a word, after a semicolon; "" if there is no violation."""
    found = result.confirmation
    return f"; {found.outcome}" if result.violated and found is not None else ""


def confirmation(result: AuditResult) -> str:
    """Return what the fresh runs say about a violation, as part of a sentence; "" if the result does not record it."""
    found = result.confirmation
    if not result.violated or found is None:
        return ""
    words = confirmation_words(replace(found, reason=quotation(found.reason)))
    return words.replace(f"p <= {upper(found.p_value)}", f"p\u00a0{at_most(found.p_value)}")


def shows_size(result: AuditResult) -> bool:
    """Return whether the bound of the headline comes from fresh runs and exceeds the claim."""
    bound = headline(result)
    return fresh(result) is not None and bound is not None and bound.certified > bound.claimed


def runs_for_size(result: AuditResult) -> float | None:
    """Estimate how many fresh runs per dataset would show how much more than claimed the loss is.

    Returns:
        The number, inf if it is not known; None if there are no fresh counts, or if the size is known.
    """
    found, bound = fresh(result), headline(result)
    if found is None or found.counts is None or bound is None or not result.evidence.anytime or shows_size(result):
        return None
    counts, level = found.counts, sizes_significance(1 - result.confidence)
    rates = counts.false_positives / max(1, counts.n0), counts.false_negatives / max(1, counts.n1)
    claim = result.evidence.tested(result.claim)
    return runs_to_confirm(claim, rates, counts.n0, level=level, power=_POWER, most=_MOST)
