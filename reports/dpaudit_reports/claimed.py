"""Formats the claim for readers, and the certified bound on the parameter that the claim states."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction, rounded
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.result.model import AuditResult
from dpaudit.text.rounding import upper
from dpaudit_reports.blocks import Math, Span, Text
from dpaudit_reports.bounds import DELTAS, allowed_epsilon
from dpaudit_reports.numbers import NOT_KNOWN, at_least, at_most, number

_AT_LEAST, _AT_MOST = "≥\u00a0", "≤\u00a0"
_REFUTED_DIGITS = 6  # digits of a claimed value that is refuted, although the bound itself does not exceed it
_EXACT_DIGITS, _ROUNDING_ERROR = 6, 1e-9  # as in the text of a claim, `dpaudit.claims.rounded`
_ORDINARY_DELTA = 1e-6  # delta of the headline for claims that state neither an epsilon nor a mu
ABOVE_ALONE = "A bound above the claim comes from a separate test; the test of the verdict did not refute the claim."
"""Note on a valid bound that exceeds the claim although no violation is reported.

This can happen, for example, at a confidence very close to 1.
"""
_TELLING = 0.2  # maximum p-value that is shown without a violation; a larger p-value carries no evidence


def label(claim: TradeoffFunction) -> str:
    """Return the claim as text with short numbers; a number that is not exact has the sign "≈"."""
    return "no claim" if claim == NO_CLAIM else rounded(claim.label)


def claimed_number(value: float, digits: int = 4) -> str:
    """Return a parameter of a claim: exact, up to rounding errors, or rounded up to a number of digits."""
    for most in (digits, _EXACT_DIGITS):
        if math.isclose(float(f"{value:.{most}g}"), value, rel_tol=_ROUNDING_ERROR):
            return number(value, most)
    return at_most(value, digits).removeprefix(_AT_MOST)


def enlarged(text: str) -> str:
    """Return the text of a detectable violation, with its numbers rounded up to four digits.

    If numbers were rounded down, the stated violation might be too small to be detected.
    """
    return re.sub(r"\d+\.\d{4,}(e-?\d+)?", lambda found: upper(float(found[0]), 4), text)


def tells(result: AuditResult) -> bool:
    """Return whether to show the p-value; a large p-value might be mistaken for evidence in favour of the claim."""
    return result.bounds_valid and (result.violated or result.p_value <= _TELLING)


@dataclass(frozen=True, slots=True)
class Bound:
    """A certified lower bound on a parameter, and the value that the claim allows."""

    symbol: str  # "ε" or "μ"
    delta: float | None  # the delta of an epsilon; None for mu
    certified: float  # nan if the bound is not known
    claimed: float
    refuted: bool = False  # whether the audit refuted the claimed value

    @property
    def exceeds(self) -> bool:
        """Whether the claimed value is proven to be too small."""
        return self.refuted or self.certified > self.claimed

    def certified_text(self) -> str:
        """Return the bound, rounded down, with enough digits to distinguish it from a smaller claimed value."""
        if self.refuted and not self.certified > self.claimed:
            return f">\u00a0{at_least(self.claimed, _REFUTED_DIGITS).removeprefix(_AT_LEAST)}"
        return at_least(self.certified, self.digits)

    def claimed_text(self) -> str:
        """Return the claimed value with as many digits as the certified bound, as `claimed_number` shows it."""
        return claimed_number(self.claimed, self.digits)

    def name(self) -> tuple[Span, ...]:
        """Return the parameter's name; the name of an epsilon includes its delta."""
        return (Math(self.symbol), *self._place())

    def shown(self, value: str) -> tuple[Span, ...]:
        """Return the parameter with a value, such as "ε ≥ 1.003 at δ = 0"."""
        return (Math(self.symbol), f"\u00a0{value}", *self._place())

    def _place(self) -> tuple[Span, ...]:
        return () if self.delta is None else (" at ", Math(f"δ\u00a0=\u00a0{number(self.delta)}"))

    @property
    def digits(self) -> int:
        """Number of significant digits that distinguish the certified bound from a smaller claimed value."""
        if self.refuted and not self.certified > self.claimed:
            return _REFUTED_DIGITS
        if not self.certified > self.claimed or math.isinf(self.certified):
            return 4
        margin = (self.certified - self.claimed) / self.certified
        return max(4, 2 - math.floor(math.log10(margin)))


def headline(result: AuditResult) -> Bound | None:
    """Return the bound on the claim's own parameter.

    For claims that state neither an epsilon nor a mu, the result is the bound on epsilon at one delta.  If all bounds
    hold together and the claim is refuted, this is the delta whose bound exceeds the claim most.  Otherwise the delta
    is fixed.
    """
    own = _own(result)
    if own is not None and (own.exceeds or not result.violated):
        return own
    if not result.violated:
        return _epsilon(result, _ORDINARY_DELTA)
    if result.evidence.joint:
        found = [bound for delta in DELTAS if (bound := _epsilon(result, delta)).exceeds]
        return max(found, key=lambda bound: bound.certified - bound.claimed, default=None)
    bound = _epsilon(result, _ORDINARY_DELTA)
    return bound if bound.exceeds else None


def certified_of_claimed(result: AuditResult) -> Text:
    """Return the cell of a table, such as "ε ≥ 1.003 / 1 at δ = 0"."""
    if not result.bounds_valid:
        return "nothing"
    bound = headline(result)
    if bound is None:
        return "the curve, no single parameter"
    if math.isnan(bound.certified):
        return NOT_KNOWN
    return bound.shown(f"{bound.certified_text()}\u00a0/\u00a0{bound.claimed_text()}")


def _own(result: AuditResult) -> Bound | None:
    match result.claim:
        case GaussianDP():
            return Bound("μ", None, result.mu_lower, result.claim.mu(), result.violated)
        case PureDP() | ApproxDP():
            stated = result.claim.parameters
            return _epsilon(result, stated.get("delta", 0.0), stated["epsilon"], refuted=result.violated)
        case LaplaceDP():  # claims more than epsilon-DP, so epsilon may be correct although the claim is refuted
            return _epsilon(result, 0.0, result.claim.parameters["epsilon"])
    return None


def _epsilon(result: AuditResult, delta: float, claimed: float | None = None, *, refuted: bool = False) -> Bound:
    allowed = allowed_epsilon(result.claim, delta) if claimed is None else claimed
    certified = result.epsilon_lower(delta) if result.evidence.trials else math.nan
    return Bound("ε", delta, certified, allowed, refuted)
