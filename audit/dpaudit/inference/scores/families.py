"""One-parameter families of claims, and the largest member that a test refutes.

A family may be written as text, such as "laplace(epsilon=?)".  The searches of `largest_refuted` and of the kinds of
evidence take parameters from 0 to 64.  But a delta is below 1, a rate is at most 1, and a number of compositions is
whole.  So each member has a place t in [0, 64], and its parameter is a function of t that does not fall:

| parameter          | at the place t                         |
|--------------------|----------------------------------------|
| mu, epsilon, rho   | t                                      |
| delta, rate        | 1 / (1 + e^(20 - t))                   |
| n, k               | e^t - 1, rounded up, from 1 to 1e6     |

**Theorem.**  Let the parameter x of a nested family be p(t), where p does not fall, and let the members be those of p.
Suppose that a lower bound T of t satisfies P[T > t] <= s whenever the member at t is true.  Then P[p(T) > x] <= s if
the member x is true and is p(t) for some t.

*Proof.*  Let t be the largest place with p(t) = x, or the supremum of these places.  p(T) > x implies that T is not
below any of these places.  p is continuous from the left in all rows of the table, so p(t) = x also at the supremum t,
and T > t.  This event has probability at most s.  QED

So the bound of a whole number is itself a whole number, and its guarantee is that of any other bound.  If x is below
p(0), the member at the place 0 is also true, because the family is nested, so P[T > 0] <= s; and if T = 0, the bound
is 0.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dpaudit.claims import CLAIMS, OPERATIONS, GaussianDP, TradeoffFunction, parse_claim
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.claims.text import ALSO, written_out

Family = Callable[[float], TradeoffFunction]

_ALPHAS = np.concatenate([np.geomspace(1e-6, 0.5, 40), 1 - np.geomspace(0.5, 1e-6, 40)])
_TRIED = 60  # maximum number of members that one search computes
_LARGEST = 64.0  # parameter that is tried
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
    """Convert a lower bound of the parameter to a lower bound of epsilon, in nats, inside the family.

    It holds only if the mechanism's curve is that of a member, so state this assumption together with the bound.  For a
    claim that is computed numerically, it refers to the computed curve, which promises slightly less than the exact
    one.
    """
    return float(family(parameter).epsilon(delta)) if parameter > 0 else 0.0


def check_nested(family: Family, low: float, high: float) -> None:
    """Check on two members, at 80 points, that a family promises less as its parameter grows."""
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
    guess: float = 1.0,
    step: float = 0.3,
) -> float:
    """Find the largest parameter whose member is refuted.

    `family` maps a parameter > 0 to a claim, and the p-value must not fall as claims weaken.  The search starts at
    `guess` with relative steps `step`, and ends with a bracket of relative `precision`.  The result is at most 64; 0 if
    no member is refuted.

    **Lemma.**  Let the members be nested, and let `p_value` not fall as the parameter grows.  If the p-value of each
    member is valid when that member is true, the result exceeds the parameter of a true member with probability at most
    `significance`.
    *Proof.*  If the result is larger, the p-value of the true member is at most the p-value of a refuted member.

    The normal deviate of the p-value is nearly linear in the parameter, so the search computes few members.
    """
    wanted = -float(ndtri(significance))

    def margin(t: float) -> float:
        p = p_value(family(t))
        straight = -float(ndtri(min(max(p, 1e-300), 1 - 1e-16))) - wanted
        return max(straight, 0.0) if p <= significance else min(straight, -1e-12)

    low, high, of_low, of_high = 0.0, _LARGEST, math.inf, -math.inf
    t = min(guess, _LARGEST)
    for tried in range(_TRIED):
        of_t = margin(t)
        if of_t >= 0:
            low, of_low = t, of_t
        else:
            high, of_high = t, of_t
        least = precision * max(low, _COARSE)
        if low >= _LARGEST or high - low <= least:
            break
        if math.isinf(of_low) or math.isinf(of_high):  # all members so far are on one side
            t = min(t * (1 + step), _LARGEST) if of_t >= 0 else t / (1 + step)
            step *= 2.5
            continue
        crossing = low + (high - low) * of_low / (of_low - of_high)
        nudge = min(least / 3, (high - low) / 3)
        t = crossing - nudge if of_low > -of_high else crossing + nudge
        t = min(max(t, low + nudge), high - nudge) if tried % 4 < 3 else (low + high) / 2
    return low


MAX_WHOLE = 1_000_000
"""The largest n and k that is tried; rounding errors of compositions are measured up to this number."""

PARAMETERS = ("mu", "epsilon", "rho", "delta", "rate", "n", "k")
"""Parameters in whose place a ? may be; every claim promises less as one of these grows."""

_MIDDLE = 20.0  # place of delta = 1/2; the smallest delta is e^-20 = 2e-9
_FREE = "FREE_PARAMETER"
_STANDS_FOR = "0.12345678987654321"  # a number that is allowed for every parameter of a short form
_LONGEST = 10_000  # maximum number of characters of a family's text
_WHOLE = ("n", "k")
_SHARES = ("delta", "rate")
_FINE = 1e-4  # precision of places whose parameter grows exponentially with the place


@dataclass(frozen=True)
class TextFamily:
    """The claims that a text with one ? describes, as a function of the place t >= 0."""

    text: str  # the text as the user wrote it
    name: str  # name of the free parameter, one of `PARAMETERS`
    before: str  # the complete text of a claim before its free parameter
    after: str

    @property
    def whole(self) -> bool:
        """Whether the parameter is a whole number."""
        return self.name in _WHOLE

    def parameter(self, place: float) -> float:
        """Return the parameter at a place; see the module's table."""
        if self.whole:
            return float(min(max(math.ceil(math.expm1(min(place, 50.0))), 1), MAX_WHOLE))
        if self.name in _SHARES:
            share = 1 / (1 + math.exp(_MIDDLE - place))
            return min(share, math.nextafter(1.0, 0.0)) if self.name == "delta" else share
        return place

    def precision(self, usual: float) -> float:
        """Return the precision of the place for a usual relative precision of the parameter."""
        return min(usual, _FINE) if self.whole or self.name in _SHARES else usual

    def __call__(self, place: float) -> TradeoffFunction:
        """Return the claim at a place; one that promises nothing replaces compositions too large to be computed."""
        value = self.parameter(place)
        number = str(int(value)) if self.whole else repr(value)
        try:
            claim = parse_claim(f"{self.before}{number}{self.after}")
            if self.whole:
                claim.beta(0.5)
        except ValueError as error:
            raise ValueError(f"the family {self.text!r} has no member at {self.name} = {number}: {error}") from None
        except ArithmeticError:
            return NO_CLAIM
        return claim


def text_family(text: str) -> TextFamily:
    """Read a family of claims."""
    if len(text) > _LONGEST:
        raise ValueError(f"the text of a family has {len(text):,} characters; the maximum is {_LONGEST:,}")
    full = written_out(text.replace("?", _STANDS_FOR)).replace(_STANDS_FOR, "?") or text.strip()
    before, after = full.split("?")
    name = _name_of(before, after)
    if name is None:
        raise ValueError(
            f'the ? in {text!r} must take the place of a number, as in "gaussian(mu=?)" or '
            '"repeated(gaussian(mu=0.1), n=?)"'
        )
    if name not in PARAMETERS:
        raise ValueError(
            f"the ? in {text!r} takes the place of {name}; allowed are {', '.join(PARAMETERS)}, because every claim "
            "promises less as one of these grows"
        )
    return TextFamily(text, name, before, after)


def _name_of(before: str, after: str) -> str | None:
    """Return the name of the parameter between two parts of a claim's text; None if there is no parameter."""
    try:
        tree = ast.parse(f"{before}{_FREE}{after}", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if _free(keyword.value):
                return ALSO.get(keyword.arg or "", keyword.arg or "")
        for place, argument in enumerate(node.args):
            if _free(argument) and isinstance(node.func, ast.Name):
                kind: Callable[..., TradeoffFunction] | None = CLAIMS.get(node.func.id) or OPERATIONS.get(node.func.id)
                names = [] if kind is None else list(inspect.signature(kind).parameters)
                return names[place] if place < len(names) else None
    return None


def _free(node: ast.expr) -> bool:
    """Return whether a syntax node is the free parameter, alone or in a list of numbers."""
    if isinstance(node, ast.Tuple | ast.List):
        return any(map(_free, node.elts))
    return isinstance(node, ast.Name) and node.id == _FREE
