"""The same promise for both orders of a pair, in one curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.envelope import Half, Lines
from dpaudit.claims.polygonal import PolygonalClaim
from dpaudit.numerics.arrays import Array


@dataclass(frozen=True, init=False, repr=False)
class Symmetrized(PolygonalClaim):
    """max(f, f inverse); Dong, Roth & Su 2022, Prop. 2.  The lines of both are lines of the maximum."""

    name: ClassVar[str] = "symmetrized"
    _claim: TradeoffFunction

    def __init__(self, claim: TradeoffFunction) -> None:
        object.__setattr__(self, "_claim", claim)

    symmetric = True

    def _make_lines(self) -> Lines:
        ours, theirs = Lines.of(self._claim), Lines.of(self._claim.inverse())
        both = Half.hull(
            np.concatenate([ours.steep.slope, theirs.steep.slope]), np.concatenate([ours.steep.gap, theirs.steep.gap])
        )
        return Lines(both, both)

    def _curve(self, alpha: Array) -> Array:
        return np.maximum(self._claim.beta(alpha), self._claim.inverse().beta(alpha))
