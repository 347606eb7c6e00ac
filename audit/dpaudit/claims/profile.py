"""Privacy-loss distributions and other lists of (epsilon, delta) guarantees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpaudit.claims.base import PolygonalClaim
from dpaudit.claims.envelope import Envelope, SupportingLines
from dpaudit.numerics.arrays import Array


@dataclass(frozen=True, init=False, repr=False)
class PrivacyLoss(PolygonalClaim):
    """(epsilon_i, delta_i)-DP for every i, all at once: a privacy profile known at finitely many points.

    This is what an accountant knows.  `from_pld` reads it from a privacy-loss distribution, after which the
    accountant is no longer needed.  Curve: the largest of f_{epsilon_i, delta_i}; Dong, Roth & Su 2022, Prop. 6.
    """

    name: ClassVar[str] = "privacy_loss"
    _epsilon: tuple[float, ...]  # nats, >= 0, strictly increasing
    _delta: tuple[float, ...]  # probabilities, nonincreasing

    def __init__(self, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike) -> None:
        e, d = _column("epsilon", epsilon), _column("delta", delta)
        if len(e) != len(d) or len(e) == 0:
            raise ValueError(f"epsilon and delta must have the same length >= 1, got {len(e)} and {len(d)}")
        if np.any(bad := ~((e >= 0) & np.isfinite(e))):
            raise ValueError(f"epsilon must be finite and >= 0, got {e[bad][0]}")
        if np.any(bad := ~((d >= 0) & (d <= 1))):
            raise ValueError(f"delta must lie in [0, 1], got {d[bad][0]}")
        if np.any(bad := np.diff(e) <= 0):
            i = int(np.argmax(bad))
            raise ValueError(f"epsilon must be strictly increasing, got {e[i]:.17g} before {e[i + 1]:.17g}")
        if np.any(bad := np.diff(d) > 0):
            i = int(np.argmax(bad))
            raise ValueError(f"delta must be nonincreasing, got {d[i]:.17g} before {d[i + 1]:.17g}")
        object.__setattr__(self, "_epsilon", tuple(e.tolist()))
        object.__setattr__(self, "_delta", tuple(d.tolist()))

    @classmethod
    def from_pld(cls, pld: object, *, points: int = 1000) -> PrivacyLoss:
        """The promise of a `dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution`.

        If the distribution is not symmetric (adding a record differs from removing one), the larger delta of the
        two directions is taken at each epsilon, so that both directions of a pair keep the promise; compose and
        repeat such distributions before they come here.  At most `points` guarantees are kept.  A slack of up to
        1e-7 (see `accounting.with_slack`) covers the rounding of its mass function.  ValueError for an
        optimistic estimate, which promises too much.
        """
        from dpaudit.claims.operations.accounting import supporting_lines_of_pld

        supporting = supporting_lines_of_pld(pld).thinned(points)
        return cls(epsilon=supporting.slope, delta=supporting.gap)

    symmetric = True

    def _make_envelope(self) -> Envelope:
        supporting = SupportingLines.hull(np.array(self._epsilon), np.array(self._delta))
        return Envelope(supporting, supporting)


def _column(name: str, values: npt.ArrayLike) -> Array:
    try:
        column = np.atleast_1d(np.array(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a list of numbers, got {values!r}") from None
    if column.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, got an array of {column.ndim} dimensions")
    return column + 0.0  # no -0.0, which would be written differently
