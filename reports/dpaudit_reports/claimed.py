"""The claim in the words of a reader, and what is certified about the parameter that it states."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction, rounded
from dpaudit.claims.nothing import NO_CLAIM
from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Math, Span, Text
from dpaudit_reports.bounds import DELTAS, allowed_epsilon
from dpaudit_reports.numbers import NOT_KNOWN, at_least, at_most, number

_ORDINARY_DELTA = 1e-6  # for claims that state neither an epsilon nor a mu
_TELLING = 0.2


def label(claim: TradeoffFunction) -> str:
    """The claim as text, its numbers to four digits."""
    return "no claim" if claim == NO_CLAIM else rounded(claim.label)


def enlarged(text: str) -> str:
    """A claim's text with its numbers to four digits, rounded up: for a violation that is large enough to be seen."""
    return re.sub(r"\d+\.\d{4,}(e-?\d+)?", lambda found: _up(float(found[0])), text)


def _up(value: float) -> str:
    if not 1e-4 <= value < 1e6:
        return f"{value:.4g}"
    return at_most(value, 4).removeprefix("≤\u00a0").replace(",", "")


def tells(result: AuditResult) -> bool:
    """Whether the p-value says something: a large one is no evidence for the claim."""
    return result.bounds_valid and (result.violated or result.p_value <= _TELLING)


@dataclass(frozen=True, slots=True)
class Bound:
    """A certified lower bound beside the value that the claim allows."""

    symbol: str  # "ε" or "μ"
    delta: float | None  # at which epsilon is meant; None for mu
    certified: float  # nan: not known
    claimed: float
    refuted: bool = False  # the claim that was refuted says that the parameter is at most `claimed`

    @property
    def exceeds(self) -> bool:
        """Whether the claim's value is too small."""
        return self.refuted or self.certified > self.claimed

    def certified_text(self) -> str:
        """Rounded down, with enough digits to be above the claim where it is."""
        if self.refuted and not self.certified > self.claimed:
            return f">\u00a0{number(self.claimed, 4)}"
        return at_least(self.certified, self._digits())

    def claimed_text(self) -> str:
        """With as many digits as the certified value."""
        return number(self.claimed, self._digits())

    def name(self) -> tuple[Span, ...]:
        """The parameter; an epsilon never without its delta."""
        return (Math(self.symbol), *self._place())

    def shown(self, value: str) -> tuple[Span, ...]:
        """The parameter with a value: "ε ≥ 1.003 at δ = 0"."""
        return (Math(self.symbol), f"\u00a0{value}", *self._place())

    def _place(self) -> tuple[Span, ...]:
        return () if self.delta is None else (" at ", Math(f"δ\u00a0=\u00a0{number(self.delta)}"))

    def _digits(self) -> int:
        if not self.certified > self.claimed or math.isinf(self.certified):
            return 4
        margin = (self.certified - self.claimed) / self.certified
        return max(4, 2 - math.floor(math.log10(margin)))


def headline(result: AuditResult) -> Bound | None:
    """The bound on the claim's own parameter; None if the claim is refuted, but no single parameter of it is.

    Of claims that state neither an epsilon nor a mu: epsilon at one delta.  Where all bounds
    hold together, the delta whose bound exceeds the claim most may be chosen; otherwise it is always the same delta.
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
    """For a table: "ε ≥ 1.003 / 1 at δ = 0"."""
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
        case LaplaceDP():  # more than its epsilon: refuted, the epsilon may still be true
            return _epsilon(result, 0.0, result.claim.parameters["epsilon"])
    return None


def _epsilon(result: AuditResult, delta: float, claimed: float | None = None, *, refuted: bool = False) -> Bound:
    allowed = allowed_epsilon(result.claim, delta) if claimed is None else claimed
    certified = result.epsilon_lower(delta) if result.evidence.trials else math.nan
    return Bound("ε", delta, certified, allowed, refuted)
