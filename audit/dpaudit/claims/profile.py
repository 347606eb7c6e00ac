"""Claims that are lists of (epsilon, delta)-DP guarantees, such as the results of privacy-loss distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpaudit.claims.envelope import Envelope, SupportingLines
from dpaudit.claims.ranges import PolygonalClaim
from dpaudit.numerics.arrays import Array


@dataclass(frozen=True, init=False, repr=False)
class PrivacyLoss(PolygonalClaim):
    """(epsilon_i, delta_i)-DP for every i simultaneously: a privacy profile known at finitely many epsilons.

    Privacy accountants compute such lists.  `from_pld` computes the list from a privacy-loss distribution.  The
    trade-off curve is the maximum of the curves f_{epsilon_i, delta_i}; see Dong, Roth & Su 2022, Prop. 6.

    Args:
        epsilon: Epsilon of each guarantee in nats, finite, >= 0, strictly increasing; shape (n,), n >= 1.
        delta: Delta of each guarantee in [0, 1], nonincreasing; shape (n,).

    Raises:
        ValueError: If the lists have different lengths or are empty, unordered or out of range.
    """

    name: ClassVar[str] = "privacy_loss"
    _epsilon: tuple[float, ...]  # epsilon of each guarantee in nats, >= 0, strictly increasing
    _delta: tuple[float, ...]  # delta of each guarantee, nonincreasing

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
        """Convert a privacy-loss distribution of dp-accounting to a claim.

        A privacy-loss distribution is asymmetric if adding a record differs from removing a record.  The claim then
        takes, for each epsilon, the larger delta of the two directions.  Compose asymmetric distributions before
        converting them, because the claim does not distinguish the directions.  A slack of at most 1e-7 (see
        `accounting.with_slack`) covers rounding errors of the probability mass function.

        Args:
            pld: A `dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution`.
            points: Maximum number of (epsilon, delta)-DP guarantees in the claim.

        Raises:
            ImportError: If dp-accounting is not installed, or dpaudit cannot read the installed release.
            ValueError: If `pld` is not a privacy-loss distribution, or if it is an optimistic estimate, whose delta is
                too small.
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
    return column + 0.0  # adding 0.0 converts -0.0 to 0.0, so that equal claims have equal texts
