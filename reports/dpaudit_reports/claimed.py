"""The claim in words, its certified and claimed bounds, and the smallest violation that would have been found."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpaudit.claims import (
    ApproxDP,
    GaussianDP,
    LaplaceDP,
    PureDP,
    Reported,
    TradeoffFunction,
    ZeroConcentratedDP,
    parse_claim,
    rounded,
)
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.numerics import Array
from dpaudit.result.model import AuditResult
from dpaudit.result.summary import ORDINARY_DELTA, weakness
from dpaudit.rounding import NOT_KNOWN, at_least, at_most, number, upper
from dpaudit_reports.blocks import Code, Math, Span, Text, bare

DELTAS = (0.0, 1e-9, 1e-6, 1e-3, 1e-2, 1e-1)  # values of delta at which a report shows bounds on epsilon


def certified_profile(result: AuditResult) -> list[tuple[float, float]]:
    """Return the corners of the certified staircase, a lower bound on the mechanism's privacy profile."""
    if not (result.bounded and result.evidence.trials):
        return []
    steps: list[tuple[float, float]] = []
    for delta in reversed(DELTAS):
        epsilon = result.epsilon_lower(delta)
        if epsilon > max(0.0, steps[-1][0] if steps else 0.0):
            steps.append((epsilon, delta))
    return steps


@lru_cache(maxsize=1024)
def allowed_epsilon(claim: TradeoffFunction, delta: float) -> float:
    """Return `claim.epsilon(delta)`, cached, because bisection is slow and audits often share a claim."""
    return claim.epsilon(delta)


def has_band(result: AuditResult) -> bool:
    """Return whether the result bounds the mechanism's whole curve."""
    curve = result.curve
    known = np.isfinite(curve.alpha) & np.isfinite(curve.beta_upper)
    if not (result.bounded and result.evidence.kind.of_pairs and known.any()):
        return False
    return bool(np.any(curve.beta_upper[known] < 1 - curve.alpha[known] - 1e-12))


def profile_points(claim: TradeoffFunction, reach: float, least: float) -> tuple[Array, Array]:
    """Return points of a claim's privacy profile, which are denser where the profile is steep."""
    steep = np.asarray(claim.epsilon(np.geomspace(least, 1.0, 240)))
    even = np.linspace(0.0, reach, 400)
    at = np.concatenate([even, steep[np.isfinite(steep) & (steep <= reach)], [min(reach, claim.epsilon(0.0))]])
    epsilon = np.unique(at)
    return epsilon, np.clip(claim.delta(epsilon), least, 1.0)


_REFUTED_DIGITS = 6  # digits of a claimed value that is refuted, although the bound itself does not exceed it
_EXACT_DIGITS, _ROUNDING_ERROR = 6, 1e-9  # as in the text of a claim, `dpaudit.claims.rounded`
_TELLING = 0.2  # maximum p-value that is shown without a violation; a larger p-value carries no evidence


def label(claim: TradeoffFunction) -> str:
    """Return the claim as text with short numbers; a number that is not exact has the sign "≈"."""
    return "no claim" if claim == NO_CLAIM else rounded(claim.label)


def claimed_number(value: float, digits: int = 4) -> str:
    """Return a parameter of a claim: exact, up to rounding errors, or rounded up to a number of digits."""
    for most in (digits, _EXACT_DIGITS):
        if math.isclose(float(f"{value:.{most}g}"), value, rel_tol=_ROUNDING_ERROR):
            return number(value, most)
    return bare(at_most(value, digits))


def enlarged(text: str) -> str:
    """Return the text of a detectable violation, with its numbers rounded up to four digits."""
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

    @property
    def digits(self) -> int:
        """Number of significant digits that distinguish the certified bound from a smaller claimed value."""
        if not self.certified > self.claimed:
            return _REFUTED_DIGITS if self.refuted else 4
        if math.isinf(self.certified):
            return 4
        return max(4, 2 - math.floor(math.log10((self.certified - self.claimed) / self.certified)))

    def certified_text(self) -> str:
        """Return the bound, rounded down, with enough digits to distinguish it from a smaller claimed value."""
        if self.refuted and not self.certified > self.claimed:
            return f">\u00a0{bare(at_least(self.claimed, _REFUTED_DIGITS))}"
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

    def shown_alone(self) -> tuple[Span, ...]:
        """Return the certified bound without its delta, such as "ε ≥ 1.003"."""
        return Math(self.symbol), f"\u00a0{self.certified_text()}"

    def claimed_shown(self) -> tuple[Span, ...]:
        """Return the claimed value, such as "ε ≤ 1"."""
        return (Math(self.symbol), f"\u00a0≤\u00a0{self.claimed_text()}", *(self._place() if self.delta else ()))

    def _place(self) -> tuple[Span, ...]:
        return () if self.delta is None else (" at ", Math(f"δ\u00a0=\u00a0{number(self.delta)}"))


def headline(result: AuditResult) -> Bound | None:
    """Return the bound on the claim's own parameter, or for other claims on epsilon at one delta.

    If all bounds hold together and the claim is refuted, it is the delta at which the bound exceeds the claim most.
    """
    if isinstance(result.claim, Reported):
        return None
    own, stated = None, result.claim.parameters
    match result.claim:
        case GaussianDP():
            own = replace(mu_bound(result), refuted=result.violated)
        case PureDP() | ApproxDP():
            bound = epsilon_bound(result, stated.get("delta", 0.0))
            own = replace(bound, claimed=stated["epsilon"], refuted=result.violated)
        case LaplaceDP():  # claims more than epsilon-DP, so epsilon may be correct although the claim is refuted
            own = epsilon_bound(result, 0.0)
    if own is not None and (own.exceeds or not result.violated):
        return own
    if not result.violated:
        return epsilon_bound(result, ORDINARY_DELTA)
    if result.evidence.kind.anytime:
        found = [bound for delta in DELTAS if (bound := epsilon_bound(result, delta)).exceeds]
        return max(found, key=lambda bound: bound.certified - bound.claimed, default=None)
    bound = epsilon_bound(result, ORDINARY_DELTA)
    return bound if bound.exceeds else None


def certified_of_claimed(result: AuditResult) -> Text:
    """Return the cell of a table, such as "ε ≥ 1.003 at δ = 0 (claim 1)"."""
    if not result.bounds_valid:
        return "nothing"
    bound = headline(result)
    if not result.bounded:
        return "no bound follows"
    if bound is None:
        return "the curve, no single parameter"
    if math.isnan(bound.certified):
        return NOT_KNOWN
    return *bound.shown(bound.certified_text()), f" (claim\u00a0{bound.claimed_text()})"


def mu_bound(result: AuditResult) -> Bound:
    """Return the certified and the allowed value of mu."""
    return Bound("μ", None, result.mu_lower, result.claim.mu())


def epsilon_bound(result: AuditResult, delta: float) -> Bound:
    """Return the certified and the allowed value of epsilon at one delta."""
    certified = result.epsilon_lower(delta) if result.evidence.trials else math.nan
    return Bound("ε", delta, certified, allowed_epsilon(result.claim, delta))


_PLAIN = re.compile(r"(pure|approximate|laplace|gaussian)\([a-z0-9=., -]{1,80}\)")  # no compositions, which are slow


def claim_words(result: AuditResult) -> tuple[Span, ...]:
    """Return the claim of a result in words, with as many digits as the bound of the headline."""
    bound = headline(result)
    return claim_in_words(result.claim, 4 if bound is None else bound.digits)


def claim_in_words(claim: TradeoffFunction, digits: int = 4) -> tuple[Span, ...]:
    """Return the claim in words, such as "ε-differential privacy with ε = 1"."""
    numbers = {name: value for name, value in claim.parameters.items() if isinstance(value, int | float)}
    stated = {name: claimed_number(value, digits) for name, value in numbers.items()}
    match claim:
        case PureDP():
            return Math("ε"), "-differential privacy with ", Math(f"ε = {stated['epsilon']}")
        case ApproxDP():
            values = f"ε = {stated['epsilon']}, δ = {stated['delta']}"
            return Math("(ε, δ)"), "-differential privacy with ", Math(values)
        case GaussianDP():
            return "Gaussian differential privacy with ", Math(f"μ = {stated['mu']}")
        case ZeroConcentratedDP():
            return "zero-concentrated differential privacy with ", Math(f"ρ = {stated['rho']}")
        case Reported():
            return ("that sessions spend no more than they report",)
        case LaplaceDP():
            return "the privacy of Laplace noise with ", Math(f"ε = {stated['epsilon']}")
    return (Code(label(claim)),)


def least_found(result: AuditResult) -> Bound | None:
    """Return the smallest violation that would have been found, on the scale of the headline."""
    bound, violation = headline(result), detectable_claim(result)
    if bound is None or violation is None or (bound.delta is None and not isinstance(violation, GaussianDP)):
        return None
    value = violation.mu() if bound.delta is None else violation.epsilon(bound.delta)
    return Bound(bound.symbol, bound.delta, value, bound.claimed)


def detectable_claim(result: AuditResult) -> TradeoffFunction | None:
    """Return the trade-off curve of the smallest violation that would have been found; None if it is not known."""
    text = result.detectable.claim
    if not _PLAIN.fullmatch(text):
        return None
    try:
        return parse_claim(text)
    except ValueError:
        return None


def least_found_in_words(result: AuditResult) -> tuple[Span, ...]:
    """Return the smallest violation that would have been found, rounded up, such as "ε = 1.07 at δ = 0"."""
    bound = least_found(result)
    if bound is None:
        return (Code(enlarged(result.detectable.claim)),)
    return bound.shown(f"=\u00a0{found_from(bound)}")


def found_from(least: Bound) -> str:
    """Return the parameter of the smallest violation that would have been found, rounded up, such as "1.07"."""
    return bare(at_most(least.certified, 4))


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of the privacy loss after an audit: at least `certified`, and above 1 in a violation."""

    certified: float  # >= 0; a multiple of the claimed value, like all other fields
    blind_until: float  # >= 1: smallest violation that would have been found; inf if not known, or after a violation


def ranges(result: AuditResult) -> Ranges | None:
    """Return the ranges of the claim's own parameter, which is also the parameter of the headline."""
    bound = headline(result)
    if result.measurement or bound is None or not 0 < bound.claimed < math.inf:
        return None
    if not result.bounds_valid:
        return Ranges(0.0, math.inf)
    certified = 0.0 if math.isnan(bound.certified) else max(0.0, bound.certified / bound.claimed)
    if result.violated or weakness(result):
        return Ranges(max(1.0, certified) if result.violated else certified, math.inf)
    found = least_found(result)
    return Ranges(certified, max(1.0, math.inf if found is None else found.certified / bound.claimed))
