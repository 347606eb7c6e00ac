"""Curves as a few numbers: polygons below or through a trade-off function, and some of its guarantees."""

from __future__ import annotations

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.envelope import Envelope
from dpaudit.claims.operations.pair_curves import Curve
from dpaudit.numerics import Array, kept, read_only

_LINES = 36  # of a polygon in each direction
_GUARANTEES = 24  # (epsilon, delta) that stand for a claim


@kept(256)
def guarantees(claim: TradeoffFunction) -> list[tuple[float, float]]:
    """Return epsilons and deltas of a claim."""
    steep = Envelope.of(claim).steep.thinned(_GUARANTEES)
    return list(zip(steep.slope.tolist(), steep.gap.tolist(), strict=True))


@kept(256)
def chords(curve: Curve) -> tuple[Array, Array]:
    """Return the probabilities of the segments of a polygon through points of a curve, which reveals a little less."""
    small = np.geomspace(1e-8, 0.5, 36)
    alpha = np.concatenate([[0.0], small, 1 - small[-2::-1], [1.0]])
    power = np.concatenate([[0.0], np.maximum.accumulate(1 - np.asarray(curve.beta(alpha)))])
    of_d0, of_d1 = np.diff(np.concatenate([[0.0], alpha])), np.diff(power)
    return read_only(of_d0 / of_d0.sum()), read_only(of_d1 / of_d1.sum())


@kept(256)
def levels(claim: TradeoffFunction) -> tuple[Array, Array]:
    """Return the probabilities of the segments of a polygon below a symmetric f, from the largest ratio on."""
    whole = Envelope.of(claim)
    envelope = Envelope(whole.steep.thinned(_LINES), whole.flat.thinned(_LINES))
    steep, flat = envelope.steep, envelope.flat
    alpha, beta = envelope.crossing()
    start, end = np.array([0.0, steep.gap[-1]]), np.array([1 - flat.gap[-1], 1.0])
    a = np.concatenate([[0.0, 0.0], np.exp(steep.log_alpha[::-1]), [alpha], 1 - flat.power, end])
    b = np.concatenate([start, steep.power[::-1], [1 - beta], 1 - np.exp(flat.log_alpha), [1.0, 1.0]])
    of_d0, of_d1 = np.diff(a).clip(0), np.diff(b).clip(0)
    some = (of_d0 > 0) | (of_d1 > 0)
    return read_only(of_d0[some] / of_d0.sum()), read_only(of_d1[some] / of_d1.sum())
