"""Describes the claim and the smallest detectable violation in words and in the claim's own parameter."""

from __future__ import annotations

import re

from dpaudit.claims import (
    ApproxDP,
    GaussianDP,
    LaplaceDP,
    PureDP,
    TradeoffFunction,
    ZeroConcentratedDP,
    parse_claim,
)
from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Code, Math, Span
from dpaudit_reports.claimed import Bound, claimed_number, enlarged, headline, label
from dpaudit_reports.numbers import at_most

_PLAIN = re.compile(r"(pure|approximate|laplace|gaussian)\([a-z0-9=., -]{1,80}\)")  # no compositions, which are slow


def claim_words(result: AuditResult) -> tuple[Span, ...]:
    """Return the claim of a result in words, with as many digits as the bound of the headline."""
    bound = headline(result)
    return claim_in_words(result.claim, 4 if bound is None else bound.digits)


def claim_of(result: AuditResult) -> tuple[Span, ...]:
    """Return the claim of a result as it follows the noun "claim"."""
    words = claim_words(result)
    scope = (result.scope,) if result.scope else ()
    return (*words, *scope) if isinstance(words[0], Code) else ("of ", *words, *scope)


def claim_in_words(claim: TradeoffFunction, digits: int = 4) -> tuple[Span, ...]:
    """Return the claim in words, such as "ε-differential privacy with ε = 1".

    A claim without a common name is returned as the code that a config would contain.
    """
    stated = {name: claimed_number(value, digits) for name, value in claim.parameters.items() if _is_number(value)}
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
        case LaplaceDP():
            return "the privacy of Laplace noise with ", Math(f"ε = {stated['epsilon']}")
    return (Code(label(claim)),)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def least_found(result: AuditResult) -> Bound | None:
    """Return the smallest violation that would have been found, as a value of the claim's own parameter."""
    bound, violation = headline(result), detectable_claim(result)
    if bound is None or type(violation) is not type(result.claim):
        return None
    value = violation.parameters["mu" if isinstance(violation, GaussianDP) else "epsilon"]
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
    return at_most(least.certified, 4).removeprefix("≤\u00a0")
