"""One-parameter families of claims, and the largest member that a test refutes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from dpaudit.claims import GaussianDP, TradeoffFunction
from dpaudit.inference.scores.text_families import text_family

Family = Callable[[float], TradeoffFunction]

_ALPHAS = np.concatenate([np.geomspace(1e-6, 0.5, 40), 1 - np.geomspace(0.5, 1e-6, 40)])
_MAX_TRIED = 60  # maximum number of members that one search computes
_COARSE = 0.1  # for smaller parameters, precision is absolute
_ROUNDING = 1e-3  # allowance for rounding when two computed curves are compared


def family_of(assuming: str | Family) -> Family:
    """Return the family of claims that `assuming` names."""
    if callable(assuming):
        return assuming
    if not isinstance(assuming, str):
        raise ValueError(f"assuming must be text or a function from a number to a claim, got {assuming!r}")
    if assuming.strip() == "gaussian":
        return GaussianDP
    if assuming.count("?") != 1:
        raise ValueError(
            f'assuming must be "gaussian" or a claim with one ? for its parameter, such as "laplace(epsilon=?)"; '
            f"got {assuming!r}, which has {assuming.count('?')}"
        )
    return text_family(assuming)


def epsilon_inside(family: Family, parameter: float, delta: float) -> float:
    """Convert a lower bound of the parameter to a lower bound of epsilon inside the family.

    The bound holds only if the mechanism's curve is that of some member of the family.  Always state this assumption
    together with the bound.  For a claim that is computed numerically, such as a composition, the bound refers to the
    computed curve.  Computed curves promise slightly less than exact ones, so their epsilon may be slightly too large.

    Returns:
        Epsilon in nats; 0 if the parameter is 0.
    """
    return float(family(parameter).epsilon(delta)) if parameter > 0 else 0.0


def check_nested(family: Family, low: float, high: float) -> None:
    """Check on two members that a family promises less as its parameter grows.

    The two members are compared at 80 points.  The caller must know that all members are nested.  Every claim of
    dpaudit promises less as one of `text_families.PARAMETERS` grows.
    """
    weaker, stronger = family(high).symmetrized().beta(_ALPHAS), family(low).symmetrized().beta(_ALPHAS)
    if np.any(weaker > stronger + _ROUNDING):
        raise ValueError(
            f"a family must promise less as its parameter grows, but its member at {high:g} promises more than its "
            f"member at {low:g}"
        )


def largest_refuted(
    family: Family,
    p_value: Callable[[TradeoffFunction], float],
    *,
    significance: float,
    precision: float = 1e-4,
    most: float = 64.0,
    guess: float = 1.0,
    step: float = 0.3,
) -> float:
    """Find the largest parameter whose member is refuted.

    **Lemma.**  Let the members be nested, and let `p_value` not fall as the parameter grows.  If the p-value of each
    member is valid when that member is true, the result exceeds the parameter of a true member with probability at most
    `significance`.
    *Proof.*  If the result is larger, the p-value of the true member is at most the p-value of a refuted member.

    The normal deviate of the p-value is nearly linear in the parameter, so the search computes few members.

    Args:
        family: Function from the parameter, > 0, to a claim.  The claims must be nested; see `check_nested`.
        p_value: Function from a claim to its p-value, which must not fall as claims weaken.
        significance: A member with a p-value of at most this is refuted.
        precision: Width of the final bracket, relative to the result or to 0.1, whichever is larger.
        most: The largest parameter that is tried.
        guess: The parameter at which the search starts.
        step: The relative size of the first step.

    Returns:
        A parameter whose member is refuted, at most `most`; 0 if none is refuted.
    """
    wanted = -float(ndtri(significance))

    def margin(t: float) -> float:
        p = p_value(family(t))
        straight = -float(ndtri(min(max(p, 1e-300), 1 - 1e-16))) - wanted
        return max(straight, 0.0) if p <= significance else min(straight, -1e-12)

    low, high, of_low, of_high = 0.0, most, math.inf, -math.inf
    t = min(guess, most)
    for tried in range(_MAX_TRIED):
        found = margin(t)
        if found >= 0:
            low, of_low = t, found
        else:
            high, of_high = t, found
        least = precision * max(low, _COARSE)
        if low >= most or high - low <= least:
            break
        if math.isinf(of_low) or math.isinf(of_high):  # all members so far are on one side
            t = min(t * (1 + step), most) if found >= 0 else t / (1 + step)
            step *= 2.5
            continue
        crossing = low + (high - low) * of_low / (of_low - of_high)
        nudge = min(least / 3, (high - low) / 3)
        t = crossing - nudge if of_low > -of_high else crossing + nudge
        t = min(max(t, low + nudge), high - nudge) if tried % 4 < 3 else (low + high) / 2
    return low
