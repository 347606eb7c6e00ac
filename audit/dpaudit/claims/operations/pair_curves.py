"""The trade-off functions of a single pair of datasets, for planning how many runs refute a claim.

A claim about subsampling, such as C_p(f) of `operations.subsample`, covers adding and removing a record.  Its curve is
the largest convex function below both directions, and no single pair of datasets attains this curve.  A test of one
pair therefore has less power than the curve of the claim suggests.

**A pair that exists.**  Let d1 be d0 with an additional record, and let the mechanism run on a random sample that
contains this record with probability p.  If T(P, Q) = f for the mechanism on samples without and with the record, the
outputs have the curve f_p(alpha) = p f(alpha) + (1 - p)(1 - alpha), because the law on d1 is a mixture.  With d0 and d1
exchanged, the curve is the inverse of f_p.  Compositions of such mechanisms have the composition of these curves.
Subsets of a fixed size attain f_p as well: let all records be equal, and replace one of them.

A claim without subsampling has a curve that some pair attains, because every trade-off function is that of a pair
(Dong, Roth & Su 2022, Prop. 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np
import numpy.typing as npt

from dpaudit.claims.base import OneDirection, TradeoffFunction
from dpaudit.claims.envelope import Envelope
from dpaudit.claims.operations.accounting import Part, composed
from dpaudit.claims.operations.compose import Composition
from dpaudit.claims.operations.subsample import Subsampled, subsamplings
from dpaudit.numerics import Array, bisect_each, kept

_STEPS = 60  # bisection steps for the inverse; the error is below 1e-18


@dataclass(frozen=True)
class PairCurve:
    """The curve of the pair of datasets in this module's second paragraph."""

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
            found = bisect_each(lambda t: _forward(self.truth, t) > flat, *ends, steps=_STEPS).outside
        else:
            found = _forward(self.truth, flat)
        beta = np.clip(found.reshape(values.shape), 0.0, 1.0 - values)
        return float(beta) if np.ndim(alpha) == 0 else beta


Curve = TradeoffFunction | PairCurve  # the trade-off function of one pair of datasets (d0, d1)


@kept(256)
def pair_curves(truth: TradeoffFunction) -> tuple[Curve, ...]:
    """Return the curves of pairs of datasets on which a mechanism may be audited, one for each direction."""
    if not subsamplings(truth):
        return (truth.symmetrized(),)
    _check(truth)
    return PairCurve(truth, False), PairCurve(truth, True)


def _check(truth: TradeoffFunction) -> None:
    """Raise ValueError if no pair of datasets is known that attains a claim with a subsampling."""
    if isinstance(truth, Subsampled):
        if subsamplings(truth._claim):
            _check(truth._claim)
        return
    if isinstance(truth, Composition) and all(
        not subsamplings(claim) or (isinstance(claim, Subsampled) and not subsamplings(_once(claim)[0]))
        for claim, _ in truth._parts
    ):
        return
    raise ValueError(
        f"no pair of datasets is known that attains {truth.label}, so no number of runs can be stated for it; give a "
        "claim with subsampling only as the outermost operation, or directly inside a composition"
    )


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
    parts = [Part(*_directions(claim), n) for claim, n in counted]
    return Envelope(composed(parts), composed([part.reversed() for part in parts]))


def _directions(claim: TradeoffFunction) -> tuple[OneDirection, OneDirection]:
    if not isinstance(claim, Subsampled):
        return claim.symmetrized()._directions()
    return Subsampled(*_once(claim), "add_remove")._directions()


def _once(claim: Subsampled) -> tuple[TradeoffFunction, float]:
    """Return the claim on the sample and the rate, if subsamplings directly inside each other are one subsampling."""
    base, rate = claim._claim, claim._rate
    if isinstance(base, Subsampled):
        inner, share = _once(base)
        return inner, rate * share
    return base, rate
