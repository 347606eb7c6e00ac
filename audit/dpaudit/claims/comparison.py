"""Decides whether a mechanism with a given trade-off function violates a claim."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.envelope import NEGLIGIBLE, Envelope
from dpaudit.numerics import Array, kept

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
