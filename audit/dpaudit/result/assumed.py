"""Computes lower bounds on epsilon under the assumption that the mechanism's curve lies in a given family of claims."""

from __future__ import annotations

from dpaudit.inference.scores.families import Family, check_nested, epsilon_inside, family_of
from dpaudit.inference.scores.text_families import TextFamily
from dpaudit.result.evidence import Evidence
from dpaudit.result.words import words_of
from dpaudit.text.rounding import lower, lower_as

# absolute precision of the family's parameter; coarse because one claim may take seconds, such as 2,500 steps of DP-SGD
_PRECISION = 1e-3
_APART = 1.05  # ratio of the two parameters whose claims are compared to check that the family is nested


class AssumedBound(float):
    """A lower bound on epsilon, in nats, that is valid if the stated assumption is true.

    `str(bound)`, `repr(bound)` and `f"{bound:.3f}"` state the assumption and round the number down.  Numbers that are
    computed from the bound, such as `float(bound)` or `round(bound, 3)`, do not state the assumption.
    """

    assumption: str  # assumption in words, such as "the mechanism's curve is gaussian(mu=?) for some ?"
    parameter: float  # parameter of the largest refuted claim of the family; 0 if no claim is refuted

    def __new__(cls, epsilon: float, assumption: str, parameter: float) -> AssumedBound:
        bound = super().__new__(cls, epsilon)
        bound.assumption, bound.parameter = assumption, parameter
        return bound

    def __getnewargs__(self) -> tuple[float, str, float]:  # type: ignore[override]  # for copies and pickles
        return float(self), self.assumption, self.parameter

    def __repr__(self) -> str:
        return f"{float(self)!r} {self._assuming}"

    def __str__(self) -> str:
        return f"{lower(self, 6)} {self._assuming}"

    def __format__(self, specification: str) -> str:
        return f"{lower_as(self, specification)} {self._assuming}" if specification else str(self)

    @property
    def _assuming(self) -> str:
        return f"(assuming that {self.assumption})"


def bound_outside(evidence: Evidence, epsilon: float) -> float:
    """Return a bound that states the untested assumption of the evidence; a plain number if there is none."""
    assumption = words_of(evidence).assumption
    return AssumedBound(epsilon, assumption, epsilon) if assumption else epsilon


def bound_inside(
    evidence: Evidence, delta: float, assuming: str | Family, *, confidence: float, valid: bool
) -> AssumedBound:
    """Find the largest claim of a family that the evidence refutes, and return the epsilon of this claim at `delta`.

    Theorem:
        Let the mechanism's curve be the claim with parameter t of a nested family, as dpaudit computes this claim.  The
        probability that the bound exceeds the epsilon of this claim is at most 1 - confidence.

    Proof:
        The bound exceeds the epsilon of the claim at t only if the bound of the parameter exceeds t.  Each kind of
        evidence states in `parameter_lower` why this has probability at most 1 - confidence.  For the parameters of a
        family that is written as text, also whole numbers, `text_families` completes the proof.

    Closed forms, such as those of Gaussian and Laplace claims, are exact.  Compositions are computed with the error
    that `claims.operations.accounting` states, so the epsilon of the exact claim may be slightly smaller.
    If the counts of the audit are not `valid`, the bound is 0.
    """
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must lie in [0, 1], got {delta}")
    family = family_of(assuming)
    text = family if isinstance(family, TextFamily) else None
    assumption = "; and ".join(filter(None, [_in_words(assuming), words_of(evidence).assumption]))
    if not valid:
        return AssumedBound(0.0, assumption, 0.0)
    precision = _PRECISION if text is None else text.precision(_PRECISION)
    place = evidence.parameter_lower(family, significance=1 - confidence, precision=precision)
    if place > 0:
        check_nested(family, place, _APART * place)
        check_nested(family, place / 2, place)
    else:
        check_nested(family, 1.0, _APART)
    parameter = text.parameter(place) if text is not None and place > 0 else place
    return AssumedBound(epsilon_inside(family, place, delta), assumption, parameter)


def _in_words(assuming: str | Family) -> str:
    if assuming == "gaussian":
        return "the mechanism's curve is gaussian(mu=?) for some ?"
    if isinstance(assuming, str):
        return f"the mechanism's curve is {assuming} for some ?"
    return f"the mechanism's curve lies in the family {getattr(assuming, '__name__', 'given as a function')}"
