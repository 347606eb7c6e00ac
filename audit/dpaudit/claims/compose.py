"""Composes mechanisms on the same data: if f = T(P, Q) and g = T(P', Q'), then f (x) g = T(P x P', Q x Q').

The claim of n epsilon-DP mechanisms is that of n randomised responses (Kairouz, Oh & Viswanath 2015, "The composition
theorem for differential privacy", Thm 3.3; for different epsilons: Murtagh & Vadhan 2016), a polygon whose log-slopes
are all sums of the terms +-epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpaudit.claims.accounting import Part, composed
from dpaudit.claims.base import TradeoffFunction, count, operation
from dpaudit.claims.envelope import Envelope, SupportingLines
from dpaudit.claims.standard import ApproxDP, PureDP
from dpaudit.claims.subsample import Subsampled
from dpaudit.numerics import Array, log_choose

# maximum number of distinct outcomes of an exact composition; larger compositions use privacy-loss distributions
MAX_OUTCOMES = 2**17
_ROUNDING = 1e-9  # relative error bound of the binomial probabilities for n <= MAX_OUTCOMES, with a safety factor of 3


def composed_responses(epsilons: Sequence[float], counts: Sequence[int]) -> Envelope:
    """Compose counts[i] randomised responses with epsilons[i], for all i, and return the exact trade-off function."""
    # privacy losses log q/p of the outcomes, and logarithms of their probabilities under Q
    loss, log_mass = np.zeros(1), np.zeros(1)
    for epsilon, n in zip(epsilons, counts, strict=True):
        right = np.arange(n + 1.0)
        log_binomial = log_choose(n, right)
        one = log_binomial - right * np.logaddexp(0, -epsilon) - (n - right) * np.logaddexp(0, epsilon)
        loss = np.add.outer(loss, (2 * right - n) * epsilon).ravel()
        log_mass = np.add.outer(log_mass, one).ravel()
    order = np.argsort(loss)[::-1]
    loss, log_mass = loss[order], log_mass[order]
    # The profile delta(s) is the sum over losses l > s of (1 - e^(s - l)) mass(l); losses and slopes s decrease.
    slopes = loss[loss >= 0]
    above = np.cumsum(np.exp(log_mass))[: len(slopes)]
    # The sum of e^(-l) mass(l) is accumulated in logarithms, because e^(-l) may overflow.
    below = np.logaddexp.accumulate(log_mass - loss)[: len(slopes)]
    # The rounding error of a difference is bounded relative to its first term.
    gap = np.maximum(above - np.exp(slopes + below), 0.0) + _ROUNDING * above
    gap[0] = 0.0  # delta is 0 at the largest privacy loss
    supporting = SupportingLines.hull(slopes, gap)
    return Envelope(supporting, supporting)


def compose(*claims: TradeoffFunction) -> TradeoffFunction:
    """Compose mechanisms on the same data.  Each mechanism may depend on the outputs of earlier mechanisms.

    The composition of the curves T(P, Q) and T(P', Q') is T(P x P', Q x Q'); see Dong, Roth & Su 2022, Def. 5 and Thm
    4.

    Compositions of Gaussian claims have a closed form, and so do compositions of zCDP claims and of Renyi claims with
    the same orders.  Compositions of pure and approximate DP claims are exact if they have at most 2^17 distinct
    outcomes.  Other compositions are computed by privacy-loss distributions (`claims.accounting`).  Methods
    of such compositions raise ImportError if dp-accounting is not installed.

    Args:
        *claims: At least one claim; one claim for each mechanism.

    Returns:
        The claim of the composed mechanism.

    Raises:
        ValueError: If no claim is given, if an argument is not a claim, or if the claims have different neighbouring
            relations.
    """
    for claim in claims:
        if not isinstance(claim, TradeoffFunction):
            raise ValueError(f"compose takes claims such as GaussianDP(1), got {claim!r}")
    if not claims:
        raise ValueError("compose needs at least one claim, got none")
    return _simplified((claim, 1) for claim in claims)


@operation
def repeated(claim: TradeoffFunction, n: int) -> TradeoffFunction:
    """Compose n mechanisms that all satisfy the same claim; see `compose`."""
    return _simplified([(claim, count("n", n))])


@dataclass(frozen=True, init=False, repr=False)
class Composition(TradeoffFunction):
    """A composition of claims with multiplicities, sorted, so that equal compositions are equal objects."""

    name: ClassVar[str] = "compose"
    _parts: tuple[tuple[TradeoffFunction, int], ...]
    _mass: float  # probability m of an output that identifies the dataset, so that f_{0,m} is one of the factors

    def __init__(self, parts: tuple[tuple[TradeoffFunction, int], ...], mass: float) -> None:
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_mass", mass)

    @property
    def symmetric(self) -> bool:
        return self._ordered or all(claim.symmetric for claim, _ in self._parts)

    def inverse(self) -> TradeoffFunction:
        """Return T(Q x Q', P x P'), which is the composition of the inverse claims."""
        if self.symmetric:
            return self
        revealing = ApproxDP(epsilon=0.0, delta=self._mass)
        return _simplified([*((claim.inverse(), n) for claim, n in self._parts), (revealing, 1)])

    @property
    def _ordered(self) -> bool:
        """Whether the two directions of a pair must be composed separately."""
        return any(isinstance(claim, Subsampled) and claim.relation == "add_remove" for claim, _ in self._parts)

    @cached_property
    def _core(self) -> TradeoffFunction | Envelope:
        """The composition of all claims, without the factor f_{0,m} for m = `_mass`."""
        claims = [claim for claim, _ in self._parts]
        counts = [n for _, n in self._parts]
        if counts == [1]:
            return claims[0]
        if all(isinstance(claim, PureDP) for claim in claims) and math.prod(n + 1 for n in counts) <= MAX_OUTCOMES:
            return composed_responses([claim.max_privacy_loss() for claim in claims], counts)
        if self._ordered:
            claims = [claim.symmetrized() for claim in claims]
        parts = [Part(*c._directions(), n) for c, n in zip(claims, counts, strict=True)]
        forward = composed(parts)
        if not self._ordered and self.symmetric:
            return Envelope(forward, forward)
        backward = composed([part.reversed() for part in parts])
        if not self._ordered:
            return Envelope(forward, backward)
        # Either d0 or d1 may be the dataset with the additional record.  So the promise for both directions is the
        # convex hull of the minimum of the two curves, and its profile is the maximum of the two profiles.
        slope = np.union1d(forward.slope, backward.slope)
        # the profiles at all slopes; below its first slope, a profile has the trivial bound 1
        profiles = [np.where(slope >= side.slope[0], side.delta(slope), 1.0) for side in (forward, backward)]
        both = SupportingLines.hull(slope, np.maximum(*profiles))
        return Envelope(both, both)

    def _curve(self, alpha: Array) -> Array:
        scaled = np.minimum(alpha / (1 - self._mass), 1.0)
        return (1 - self._mass) * self._core.beta(scaled)

    def _profile(self, epsilon: Array) -> Array:
        return self._mass + (1 - self._mass) * self._core.delta(epsilon)

    def mu(self) -> float:
        """Return an upper bound: at most sqrt(sum of the squared mus), as G_mu (x) G_mu' = G_{sqrt(mu^2 + mu'^2)}."""
        if self._mass > 0:
            return math.inf
        bound = math.sqrt(sum(n * claim.mu() ** 2 for claim, n in self._parts))
        # If privacy losses are unbounded, underflow removes vertices far in the tail, so the mu of the envelope may be
        # too small.
        return min(self._core.mu(), bound) if self.max_privacy_loss() < math.inf else bound

    def max_privacy_loss(self) -> float:
        return math.fsum(n * claim.max_privacy_loss() for claim, n in self._parts)

    def slopes(self) -> Array:
        return self._core.slopes() if isinstance(self._core, TradeoffFunction) else self._core.steep.slope

    def _split(self) -> tuple[TradeoffFunction, float]:
        return (Composition(self._parts, 0.0), self._mass) if self._mass else (self, 0.0)

    def __repr__(self) -> str:
        return str(self)

    def _text(self, *, brief: bool) -> str:
        texts = [
            f"repeated({claim._text(brief=brief)}, n={n})" if n > 1 else claim._text(brief=brief)
            for claim, n in self._parts
        ]
        if self._mass:
            texts.append(ApproxDP(epsilon=0.0, delta=self._mass)._text(brief=brief))
        return texts[0] if len(texts) == 1 else f"compose({', '.join(texts)})"


def _simplified(counted: Iterable[tuple[TradeoffFunction, int]]) -> TradeoffFunction:
    """Compose claims with multiplicities, in closed form where a closed form exists."""
    counts: dict[TradeoffFunction, int] = {}
    masses: list[tuple[float, int]] = []  # pairs (probability that the output identifies the dataset, multiplicity)
    for claim, times in counted:
        core, mass = claim._split()
        if mass:
            masses.append((mass, times))
        for part, n in core._parts if isinstance(core, Composition) else [(core, 1)]:
            # parts that fail this condition are omitted, because their outputs do not depend on the data
            if float(part.delta(0.0)) > 0 or part.mu() > 0:
                counts[part] = counts.get(part, 0) + n * times
    relations = {claim.relation for claim in counts if isinstance(claim, Subsampled)} - {"unspecified"}
    if len(relations) > 1:
        raise ValueError(f"claims about different relations cannot be composed, got {' and '.join(sorted(relations))}")
    singles = [((closed, 1) if n > 1 and (closed := c._repeated(n)) else (c, n)) for c, n in counts.items()]
    parts: list[tuple[TradeoffFunction, int]] = []
    for claim, n in sorted(singles, key=lambda part: str(part[0])):
        for i, (other, m) in enumerate(parts):
            if n == m == 1 and (both := other._composed_with(claim)):
                parts[i] = both, 1
                break
        else:
            parts.append((claim, n))
    # the probability that at least one output identifies the dataset; that of one output is unchanged, so that
    # `parse_claim(str(claim)) == claim`
    log_hidden = math.fsum(times * math.log1p(-mass) for mass, times in masses)
    single = len(masses) == 1 and masses[0][1] == 1
    mass = masses[0][0] if single else min(-math.expm1(log_hidden), math.nextafter(1.0, 0.0))
    if not parts:
        return ApproxDP(epsilon=0.0, delta=mass) if mass else PureDP(0.0)
    claim, n = parts[0]
    if len(parts) == 1 and n == 1:
        if not mass:
            return claim
        if isinstance(claim, PureDP):
            return ApproxDP(epsilon=claim.max_privacy_loss(), delta=mass)
    return Composition(tuple(parts), mass)
