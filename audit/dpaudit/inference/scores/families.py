"""One-parameter families of claims, and the largest member that a test refutes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from dpaudit.claims import GaussianDP, TradeoffFunction, parse_claim

Family = Callable[[float], TradeoffFunction]

_ALPHAS = np.concatenate([np.geomspace(1e-6, 0.5, 40), 1 - np.geomspace(0.5, 1e-6, 40)])
_MAX_TRIED = 60  # members
_COARSE = 0.1  # below this, precision is absolute
_ROUNDING = 1e-3  # by which two computed curves may be out of order


def family_of(assuming: str | Family) -> Family:
    """The family that `assuming` names.

    Args:
        assuming: "gaussian"; a claim's text with one `?` in place of a number, such as
            "repeated(subsampled(gaussian(mu=?), rate=0.082, relation='add_remove'), n=2500)"; or a function from the
            parameter to a claim.

    Returns:
        A function from the parameter to the claim.

    Raises:
        ValueError: If the text has no `?`, or more than one, or is no claim with a number in its place.
    """
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
    if not re.search(r"[=(,]\s*\?\s*[,)]", assuming):
        raise ValueError(f"the ? in {assuming!r} must stand where a number would")
    before, after = assuming.split("?")

    def member(parameter: float) -> TradeoffFunction:
        return parse_claim(f"{before}{parameter!r}{after}")

    return member


def epsilon_inside(family: Family, parameter: float, delta: float) -> float:
    """Epsilon at `delta` of the member at a lower bound of the parameter: a lower bound of epsilon inside the family.

    It holds if the mechanism is as private as some member of the family, no more and no less; always say so beside it.
    Of a claim that is computed numerically, such as a composition, the computed curve is meant.  Such curves promise
    slightly too little: for 2,500 steps of DP-SGD epsilon was 0.0006 too large (dp-accounting on a finer grid).

    Args:
        family: From the parameter to the claim.
        parameter: A lower confidence bound, >= 0.
        delta: In [0, 1].

    Returns:
        Epsilon in nats; 0 if the parameter is 0.
    """
    return float(family(parameter).epsilon(delta)) if parameter > 0 else 0.0


def check_nested(family: Family, low: float, high: float) -> None:
    """Test on two members that a family promises less as its parameter grows.

    Two members are compared at 80 points.  That all members are nested is assumed, and has to be known of the family:
    every claim of dpaudit promises less as its mu, epsilon, delta, rho, rate or n grows.

    Raises:
        ValueError: If the member at `high` promises more than the one at `low` anywhere.
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
    """The largest parameter whose member is refuted, rounded down; 0 if none is, at most `most`.

    **Lemma.**  Let the members be nested, and `p_value` not fall along them.  If each p-value is valid under its own
    member, the result exceeds the parameter of a true member with probability at most `significance`.
    *Proof.*  If it does, the true member has a p-value of at most that of a refuted one.

    The p-value's normal deviate is nearly straight in the parameter, so that few members are computed.

    Args:
        family: From the parameter, > 0, to a claim; nested, see `check_nested`.
        p_value: Of a claim; must not fall as claims promise less.
        significance: At or below which a member is refuted.
        precision: Relative to the result, or to 0.1 if that is larger.
        most: The largest parameter that is tried.
        guess: Where the search begins.
        step: By how much the search moves at first, relatively.

    Returns:
        A parameter whose member is refuted, or 0.
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
        if math.isinf(of_low) or math.isinf(of_high):  # all so far on one side
            t = min(t * (1 + step), most) if found >= 0 else t / (1 + step)
            step *= 2.5
            continue
        crossing = low + (high - low) * of_low / (of_low - of_high)
        nudge = min(least / 3, (high - low) / 3)
        t = crossing - nudge if of_low > -of_high else crossing + nudge
        t = min(max(t, low + nudge), high - nudge) if tried % 4 < 3 else (low + high) / 2
    return low
