"""Bounds that hold if a mechanism's curve lies in a family of claims."""

from __future__ import annotations

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores.families import Family, check_nested, epsilon_inside, family_of, largest_refuted
from dpaudit.result.evidence import Evidence

_PRECISION = 1e-3  # of the parameter; members such as 2,500 steps of DP-SGD take a while to compute
_APART = 1.05  # members that are compared, to see that the family is nested


class AssumedBound(float):
    """A lower bound of epsilon, nats, that holds if an assumption does.  It prints the assumption with the number."""

    assumption: str  # "the mechanism's curve is gaussian(mu=?) for some ?"
    parameter: float  # the largest member that is refuted; 0 if none is

    def __new__(cls, epsilon: float, assumption: str, parameter: float) -> AssumedBound:
        bound = super().__new__(cls, epsilon)
        bound.assumption, bound.parameter = assumption, parameter
        return bound

    def __getnewargs__(self) -> tuple[float, str, float]:  # type: ignore[override]  # for copies and pickles
        return float(self), self.assumption, self.parameter

    def __repr__(self) -> str:
        return f"{float(self)!r} (assuming that {self.assumption})"

    def __str__(self) -> str:
        return f"{float(self):.6g} (assuming that {self.assumption})"


def bound_inside(evidence: Evidence | None, delta: float, assuming: str | Family, *, confidence: float) -> AssumedBound:
    """Epsilon at `delta` of the largest member of a family that the evidence refutes.

    Theorem:
        Let the mechanism's curve be the member at t of a nested family.  The bound exceeds that member's epsilon with
        probability at most 1 - confidence.

    Proof:
        It does only if the evidence refutes a member at t or above, whose promise is at most that of the true one.
        The p-values of all kinds of evidence do not fall along nested families, so it then refutes the true one.

    Args:
        evidence: What was counted; None if nothing that was counted is valid.
        delta: In [0, 1].
        assuming: The family, see `families.family_of`.
        confidence: Of the bound.

    Raises:
        ValueError: If the family cannot be read, or its members are not nested.
    """
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must lie in [0, 1], got {delta}")
    family, assumption = family_of(assuming), _in_words(assuming)
    if evidence is None:
        return AssumedBound(0.0, assumption, 0.0)

    def p_value(claim: TradeoffFunction) -> float:
        return evidence.p_value(evidence.tested(claim))

    parameter = largest_refuted(family, p_value, significance=1 - confidence, precision=_PRECISION)
    if parameter > 0:
        check_nested(family, parameter, _APART * parameter)
        check_nested(family, parameter / 2, parameter)
    else:
        check_nested(family, 1.0, _APART)
    return AssumedBound(epsilon_inside(family, parameter, delta), assumption, parameter)


def _in_words(assuming: str | Family) -> str:
    if assuming == "gaussian":
        return "the mechanism's curve is gaussian(mu=?) for some ?"
    if isinstance(assuming, str):
        return f"the mechanism's curve is {assuming} for some ?"
    return f"the mechanism's curve lies in the family {getattr(assuming, '__name__', 'given as a function')}"
