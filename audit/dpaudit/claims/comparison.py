"""What a mechanism with a known trade-off function shows: whether it violates a claim, and its curve on one pair.

**The pair of `pair_curves`.**  A claim about subsampling covers adding and removing a record, so no single pair attains
its curve.  Let d1 be d0 with an additional record, which is in the sample with probability p.  If T(P, Q) = f on
samples without and with the record, the outputs have the curve f_p(alpha) = p f(alpha) + (1 - p)(1 - alpha), because
the law on d1 is a mixture; with d0 and d1 exchanged, its inverse.  Compositions have the composition of these curves.
Subsets of a fixed size attain f_p as well: let all records be equal, and replace one.  Without subsampling, some pair
attains the claim's curve (Dong, Roth & Su 2022, Prop. 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np
import numpy.typing as npt

from dpaudit.claims.accounting import Part, composed
from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.compose import Composition
from dpaudit.claims.envelope import NEGLIGIBLE, Envelope
from dpaudit.claims.subsample import Subsampled, subsamplings
from dpaudit.numerics import Array, bisect_each, kept

_EQUAL = 1e-9  # relative differences of delta, beta or the maximum privacy loss up to this are rounding errors
_NEAR = 1e-12  # nats, for epsilons near 1; the same for differences of epsilon
_TINY = 1e-15  # the same for absolute differences of beta


@kept(256)
def violates(truth: TradeoffFunction, claim: TradeoffFunction) -> bool:
    """Return whether a mechanism with a given trade-off function violates a claim in some direction of a pair.

    **Theorem.**  Let g be the curve of the truth and f that of the claim, both symmetrized.  By convex duality, g < f
    somewhere if and only if the profile of g exceeds that of f at some epsilon >= 0.

    1.  If f is a polygon, the slopes of its sides are sufficient epsilons: between them, its profile is linear in
        e^epsilon, and the profile of g is convex.
    2.  If g is a polygon, its corners decide: on each side, g is linear and f is convex.
    3.  If delta_f(inf) = 0, a larger maximum privacy loss is a violation, even if its delta underflows.

    If both curves are smooth, they are compared at the slopes and the corners of polygons with many sides.  Rounding
    errors are no violation: differences up to 1e-9 of each delta and type II error, and up to 1e-12 of each epsilon.
    """
    truth, claim = truth.symmetrized(), claim.symmetrized()
    most, allowed = truth.max_privacy_loss(), claim.max_privacy_loss()
    if claim.delta(math.inf) == 0 and most > allowed * (1 + _EQUAL) + _NEAR:
        return True
    sides, corners = _polygon(truth)
    slopes = np.concatenate([sides, _polygon(claim)[0], [most, allowed]])
    if np.any(truth.delta(slopes + _NEAR * (1 + slopes)) > claim.delta(slopes) * (1 + _EQUAL) + NEGLIGIBLE):
        return True
    beta = claim.beta(corners)
    return bool(np.any(truth.beta(corners) < beta - _EQUAL * np.minimum(beta, 1 - beta) - _TINY * beta))


@kept(64)
def _polygon(claim: TradeoffFunction) -> tuple[Array, Array]:
    """Return the log-slopes of the steep sides of a polygon that approximates a symmetric curve, and its corners."""
    polygon = Envelope.of(claim)
    return polygon.steep.slope, np.append(np.exp(polygon.steep.log_alpha), polygon.crossing()[0])


@dataclass(frozen=True)
class PairCurve:
    """The curve of the pair of datasets in this module's second paragraph, or of this pair in reverse order."""

    truth: TradeoffFunction
    backward: bool

    @overload
    def beta(self, alpha: float) -> float: ...
    @overload
    def beta(self, alpha: npt.ArrayLike) -> Array: ...
    def beta(self, alpha: npt.ArrayLike) -> Array | float:
        values = np.asarray(alpha, dtype=np.float64)
        flat = values.ravel()
        if self.backward:  # the inverse of the curve, rounded up, so that the stated power is rounded down
            ends = np.zeros_like(flat), np.ones_like(flat)
            beta = bisect_each(lambda t: _forward(self.truth, t) > flat, *ends, steps=60).outside
        else:
            beta = _forward(self.truth, flat)
        beta = np.clip(beta.reshape(values.shape), 0.0, 1.0 - values)
        return float(beta) if np.ndim(alpha) == 0 else beta


Curve = TradeoffFunction | PairCurve  # the trade-off function of one pair of datasets (d0, d1)


@kept(256)
def pair_curves(truth: TradeoffFunction) -> tuple[Curve, ...]:
    """Return the curves of pairs to audit a mechanism on, one for each direction; ValueError if none is known."""
    if not subsamplings(truth):
        return (truth.symmetrized(),)
    base, _ = _once(truth)
    parts = base._parts if isinstance(base, Composition) else ((base, 1),)
    if any(subsamplings(_once(claim)[0]) for claim, _ in parts):
        raise ValueError(
            f"no pair of datasets is known that attains {base.label}, so no number of runs can be stated for it; give "
            "a claim with subsampling only as the outermost operation, or directly inside a composition"
        )
    return PairCurve(truth, False), PairCurve(truth, True)


def _forward(truth: TradeoffFunction, alpha: Array) -> Array:
    if isinstance(truth, Subsampled):
        return truth._rate * _forward(truth._claim, alpha) + (1 - truth._rate) * (1 - alpha)
    if isinstance(truth, Composition) and subsamplings(truth):
        scaled = np.minimum(alpha / (1 - truth._mass), 1.0)
        return (1 - truth._mass) * _core(truth._parts).beta(scaled)
    return truth.symmetrized().beta(alpha)


@lru_cache(maxsize=64)
def _core(counted: tuple[tuple[TradeoffFunction, int], ...]) -> Envelope:
    """Return the composition of claims, in which all additional records are in d1."""
    parts = []
    for claim, n in counted:
        sampled = isinstance(claim, Subsampled)
        one = Subsampled(*_once(claim), "add_remove") if sampled else claim.symmetrized()
        parts.append(Part(*one._directions(), n))
    return Envelope(composed(parts), composed([part.reversed() for part in parts]))


def _once(claim: TradeoffFunction) -> tuple[TradeoffFunction, float]:
    """Return a claim without its outermost subsamplings, and the product of their rates."""
    if not isinstance(claim, Subsampled):
        return claim, 1.0
    base, rate = _once(claim._claim)
    return base, claim._rate * rate
