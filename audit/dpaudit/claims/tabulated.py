"""Claims that are given by tables: corners of a polygon, or (epsilon, delta)-DP guarantees of privacy accountants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpaudit.claims.envelope import Envelope, PolygonalClaim, SupportingLines
from dpaudit.numerics import Array, lower_hull


@dataclass(frozen=True, init=False, repr=False)
class PrivacyLoss(PolygonalClaim):
    """(epsilon_i, delta_i)-DP for every i simultaneously: a privacy profile known at finitely many epsilons.

    Privacy accountants compute such lists; `from_pld` reads one from a privacy-loss distribution.  The trade-off curve
    is the maximum of the curves f_{epsilon_i, delta_i}; see Dong, Roth & Su 2022, Prop. 6.

    Args:
        epsilon: Epsilon of each guarantee in nats, finite, >= 0, strictly increasing; shape (n,), n >= 1.
        delta: Delta of each guarantee in [0, 1], nonincreasing; shape (n,).

    Raises:
        ValueError: If the lists differ in length or do not have these properties.
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
        _check_order(epsilon=e, delta=d)
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
        from dpaudit.claims.accounting import supporting_lines_of_pld

        supporting = supporting_lines_of_pld(pld).thinned(points)
        return cls(epsilon=supporting.slope, delta=supporting.gap)

    symmetric = True

    @cached_property
    def _envelope(self) -> Envelope:
        supporting = SupportingLines.hull(np.array(self._epsilon), np.array(self._delta))
        return Envelope(supporting, supporting)


def _column(name: str, values: npt.ArrayLike) -> Array:
    try:
        column = np.atleast_1d(np.array(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a list of numbers, got {values!r}") from None
    if column.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, got an array of {column.ndim} dimensions")
    if name != "epsilon" and np.any(bad := ~((column >= 0) & (column <= 1))):
        raise ValueError(f"{name} must lie in [0, 1], got {column[bad][0]}")
    return column + 0.0  # adding 0.0 converts -0.0 to 0.0, so that equal claims have equal texts


def _check_order(**columns: Array) -> None:
    """Check that the first column is strictly increasing, and that the second column does not increase."""
    for (name, values), word in zip(columns.items(), ("strictly increasing", "nonincreasing"), strict=True):
        if np.any(bad := np.diff(values) > 0 if word == "nonincreasing" else np.diff(values) <= 0):
            i = int(np.argmax(bad))
            raise ValueError(f"{name} must be {word}, got {values[i]:.17g} before {values[i + 1]:.17g}")


# maximum height of a corner above the line between its neighbours that is attributed to rounding errors
_ROUNDING = 1e-12


@dataclass(frozen=True, init=False, repr=False)
class TabulatedTradeoff(PolygonalClaim):
    """A piecewise linear trade-off function through the points (alpha_i, beta_i), in both directions of each pair.

    Every mechanism with finitely many outputs has such a function, which need not be symmetric.  Corners that rounding
    puts above the line between their neighbours, by at most 1e-12, are removed, which lowers f.

    Args:
        alpha: Type I errors, strictly increasing from 0 to 1; shape (n,), n >= 2.
        beta: Least type II error for each alpha, nonincreasing, convex, <= 1 - alpha; shape (n,).

    Raises:
        ValueError: If the lists differ in length or do not have these properties.
    """

    name: ClassVar[str] = "tabulated"
    _alpha: tuple[float, ...]  # type I errors, strictly increasing from 0 to 1
    _beta: tuple[float, ...]  # least type II errors, nonincreasing, convex and <= 1 - alpha

    def __init__(self, *, alpha: npt.ArrayLike, beta: npt.ArrayLike) -> None:
        a, b = _column("alpha", alpha), _column("beta", beta)
        if len(a) != len(b) or len(a) < 2:
            raise ValueError(f"alpha and beta must have the same length >= 2, got {len(a)} and {len(b)}")
        if a[0] != 0 or a[-1] != 1:
            raise ValueError(f"alpha must run from 0 to 1, got {a[0]:.17g} to {a[-1]:.17g}")
        _check_order(alpha=a, beta=b)
        if np.any(bad := b > 1 - a + _ROUNDING):
            i = int(np.argmax(bad))
            raise ValueError(f"beta must lie in [0, 1 - alpha], got {b[i]:.17g} at alpha = {a[i]:.17g}")
        chord = b[:-2] + (b[2:] - b[:-2]) * (a[1:-1] - a[:-2]) / (a[2:] - a[:-2])
        if np.any(bad := b[1:-1] > chord + _ROUNDING):
            i = int(np.argmax(bad)) + 1
            raise ValueError(
                f"beta must be convex in alpha, got {b[i]:.17g} at alpha = {a[i]:.17g}, above the line between its "
                f"neighbours ({chord[i - 1]:.17g})"
            )
        object.__setattr__(self, "_alpha", tuple(a.tolist()))
        object.__setattr__(self, "_beta", tuple(np.minimum(b, 1 - a).tolist()))

    @cached_property
    def _is_symmetric(self) -> bool:
        alpha, beta = self._corners
        return bool(np.all(np.abs(np.interp(alpha, *_mirrored(alpha, beta)) - beta) <= _ROUNDING))

    @property
    def symmetric(self) -> bool:
        """Whether exchanging alpha and beta at all corners gives the same curve, with a tolerance of 1e-12."""
        return self._is_symmetric

    def inverse(self) -> TabulatedTradeoff:
        """Return f inverse, whose value at beta is the least alpha with f(alpha) <= beta."""
        if self.symmetric:
            return self
        alpha, beta = _mirrored(*self._corners)
        return TabulatedTradeoff(alpha=alpha, beta=beta)

    def symmetrized(self) -> TabulatedTradeoff:
        """Return max(f, f inverse), whose corners are those of f and f inverse, and points where they cross."""
        if self.symmetric:
            return self
        inverse = _mirrored(*self._corners)
        alpha = np.unique(np.concatenate([self._corners[0], inverse[0]]))
        ahead = np.interp(alpha, *self._corners) - np.interp(alpha, *inverse)
        crossed = np.flatnonzero(ahead[:-1] * ahead[1:] < 0)
        share = ahead[crossed] / (ahead[crossed] - ahead[crossed + 1])
        alpha = np.unique(np.concatenate([alpha, alpha[crossed] + share * np.diff(alpha)[crossed]]))
        return TabulatedTradeoff(
            alpha=alpha, beta=np.maximum(np.interp(alpha, *self._corners), np.interp(alpha, *inverse))
        )

    @cached_property
    def _corners(self) -> tuple[Array, Array]:
        """The corners of the lower convex hull of the table, as (alpha, beta)."""
        return lower_hull(np.array(self._alpha), np.array(self._beta), straight=True)

    @cached_property
    def _envelope(self) -> Envelope:
        return Envelope(_steep(*self._corners), _steep(*_mirrored(*self._corners)))

    def _curve(self, alpha: Array) -> Array:
        return np.interp(alpha, *self._corners)

    def mu(self) -> float:
        """Return the least mu with G_mu <= f; only the corners of f matter, because G_mu is convex."""
        alpha, beta = self._corners
        if beta[0] < 1 or (len(alpha) > 2 and beta[-2] == 0):
            return math.inf
        return float(max(0.0, *(-ndtri(alpha[1:-1]) - ndtri(beta[1:-1])), 0.0))


def _steep(alpha: Array, beta: Array) -> SupportingLines:
    """Return the lines through the sides of f with slope below -1, and the line of slope -1 that touches f."""
    with np.errstate(divide="ignore"):
        log_slope = np.log(-np.diff(beta)) - np.log(np.diff(alpha))
        log_alpha = np.log(alpha[1:])
    steep = np.append(log_slope[log_slope > 0], 0.0)
    corner = log_alpha[: len(steep) - 1]  # log of the alpha at which each line intersects the next line
    gap = 1 - beta[0] + np.append(0.0, np.cumsum(np.exp(steep[:-1] + corner) - np.exp(steep[1:] + corner)))
    return SupportingLines.hull(steep, gap)


def _mirrored(alpha: Array, beta: Array) -> tuple[Array, Array]:
    last = int(np.argmax(beta == 0)) + 1  # the part of f after its first zero does not affect the inverse of f
    inverse_alpha, inverse_beta = beta[:last][::-1], alpha[:last][::-1]
    if inverse_alpha[-1] < 1:  # if f(0) < 1, the inverse of f is 0 from f(0) on
        inverse_alpha, inverse_beta = np.append(inverse_alpha, 1.0), np.append(inverse_beta, 0.0)
    return inverse_alpha, inverse_beta


NO_CLAIM = TabulatedTradeoff(alpha=(0.0, 1.0), beta=(0.0, 0.0))
"""f = 0: every mechanism satisfies this claim, so no test refutes it."""
