"""Trade-off functions as upper envelopes of straight lines.  All claims that are computed numerically use envelopes.

If a mechanism is (s, gap)-DP in the direction (d0, d1), then f(alpha) >= 1 - gap - e^s alpha; in the direction (d1,
d0), f(alpha) >= e^-s (1 - gap - alpha).  The maximum of any such lines is a convex function <= f, and omitting a line
or increasing a gap only lowers it.

With s >= 0, lines of the direction (d0, d1) are called steep, and the others flat.  They are stored separately, which
preserves relative precision at both ends of the curve, where alpha or beta may be 1e-300.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri, ndtri_exp

from dpaudit.claims.base import TradeoffFunction
from dpaudit.numerics import Array, lower_hull, lowest

NEGLIGIBLE = 1e-280  # gap below which a computed gap may result from underflow, which begins at 1e-308


@dataclass(frozen=True, eq=False)
class SupportingLines:
    """The (slope, gap)-DP guarantees of one direction, with slope >= 0, on the lower convex hull of (e^slope, gap)."""

    slope: Array  # epsilon of each guarantee in nats, strictly increasing; shape (n,)
    gap: Array  # delta of each guarantee in [0, 1], strictly decreasing; shape (n,)

    @classmethod
    def hull(cls, slope: Array, gap: Array) -> SupportingLines:
        slope, gap = lowest(slope, np.clip(gap, 0.0, 1.0))
        falls = np.concatenate([[True], gap[1:] < np.minimum.accumulate(gap)[:-1]])
        if gap[-1] < 1:
            falls &= gap < 1  # a guarantee with a gap of 1 promises nothing
        return cls(*lower_hull(slope[falls], gap[falls], steepness=lambda slope, gap: -_log_meeting(slope, gap)))

    @cached_property
    def log_alpha(self) -> Array:
        """Logarithms of the alpha at which each line intersects the next steeper line, in decreasing order."""
        return _log_meeting(self.slope, self.gap)

    @cached_property
    def log_power(self) -> Array:
        """Logarithms of 1 - beta where each line intersects the next steeper line, in decreasing order."""
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log(self.gap[1:]), self.slope[1:] + self.log_alpha)

    @cached_property
    def power(self) -> Array:
        """Values of 1 - beta where each line intersects the next steeper line, with relative precision."""
        return np.exp(np.minimum(self.log_power, 0.0))

    def beta(self, alpha: Array) -> Array:
        """Return the height of the envelope at each alpha.  The height is negative where all lines are below 0."""
        with np.errstate(divide="ignore", over="ignore"):
            log_alpha = np.log(alpha)
            best = np.searchsorted(-self.log_alpha, -log_alpha)
            return 1 - self.gap[best] - np.exp(self.slope[best] + log_alpha)

    def delta(self, epsilon: Array) -> Array:
        """Return the height of the hull at e^epsilon >= the first slope; it is constant after the last slope."""
        if len(self.slope) == 1:
            return np.full_like(epsilon, self.gap[0])
        right = np.clip(np.searchsorted(self.slope, epsilon), 1, len(self.slope) - 1)
        near, far = self.slope[right - 1], self.slope[right]
        place = np.clip(epsilon, near, far)
        scale = -np.expm1(near - far)
        toward_far = np.exp(place - far) * -np.expm1(near - place) / scale
        toward_near = -np.expm1(place - far) / scale
        return toward_near * self.gap[right - 1] + toward_far * self.gap[right]

    def thinned(self, most: int) -> SupportingLines:
        """Select at most `most` of the guarantees.

        Two thirds have a density proportional to sqrt(mass * spacing): the change of 1 - beta along a line up to its
        neighbours, times the difference of successive slopes.  The slopes of the other third are evenly spaced.
        """
        if len(self.slope) <= most:
            return self
        mass = np.abs(np.diff(np.concatenate([self.power, self.gap[-1:]])))
        step = np.diff(self.slope)
        effort = np.cumsum(np.sqrt(mass * step))
        place = np.concatenate([[0.0], effort / max(effort[-1], NEGLIGIBLE)]) * (2 * most / 3)
        place += (self.slope - self.slope[0]) / (self.slope[-1] - self.slope[0]) * (most / 3 - 3)
        keep = np.unique(np.searchsorted(place, np.arange(math.floor(place[-1]) + 1)))
        return SupportingLines.hull(self.slope[np.append(keep, -1)], self.gap[np.append(keep, -1)])


def _log_meeting(slope: Array, gap: Array) -> Array:
    """Return log alpha where each line intersects the next: minus the slope of the chord of (e^slope, gap)."""
    with np.errstate(divide="ignore"):
        meeting: Array = np.log(-np.diff(gap)) - slope[1:] - np.log(-np.expm1(-np.diff(slope)))
    return meeting


class Envelope:
    """A trade-off function that is the maximum of steep lines and flat lines."""

    def __init__(self, steep: SupportingLines, flat: SupportingLines) -> None:
        if steep.slope[0] == flat.slope[0] == 0:  # a line of slope 0 is the same guarantee in both directions
            least = min(steep.gap[0], flat.gap[0])
            steep, flat = (SupportingLines.hull(h.slope, np.append(least, h.gap[1:])) for h in (steep, flat))
        i = j = 0
        while True:  # steep lines may imply the first flat line, and flat lines may imply the first steep line
            more_steep, more_flat = i + 1 < len(steep.slope), j + 1 < len(flat.slope)
            if steep.slope[i] + flat.slope[j] < 1e-12:  # the two lines are numerically equal
                if not (more_steep and more_flat and _implied(flat, j + 1, steep, i)):
                    break
                i, j = i + 1, j + 1
            elif more_steep and _implied(flat, j, steep, i):
                i += 1
            elif more_flat and _implied(steep, i, flat, j):
                j += 1
            else:
                break
        self.steep = SupportingLines(steep.slope[i:], steep.gap[i:])
        self.flat = SupportingLines(flat.slope[j:], flat.gap[j:])

    @classmethod
    def of(cls, claim: TradeoffFunction) -> Envelope:
        """Return the envelope of tangents of the curve of a `TradeoffFunction`, exact if the curve is a polygon."""
        steep = _tangents(claim)
        return cls(steep, steep if claim.symmetric else _tangents(claim.inverse()))

    @property
    def symmetric(self) -> bool:
        return np.array_equal(self.steep.slope, self.flat.slope) and np.array_equal(self.steep.gap, self.flat.gap)

    def inverse(self) -> Envelope:
        return Envelope(self.flat, self.steep)

    def beta(self, alpha: Array) -> Array:
        """Return the height of the envelope, in [0, 1], at each alpha in [0, 1]."""
        best = np.searchsorted(np.maximum.accumulate(1 - self.flat.power), alpha)
        flat = np.exp(-self.flat.slope[best]) * (1 - self.flat.gap[best] - alpha)
        return np.maximum(np.maximum(self.steep.beta(alpha), flat), 0.0)

    def delta(self, epsilon: Array) -> Array:
        """Return sup over alpha of 1 - f(alpha) - e^epsilon alpha, computed from the convex hull of (e^slope, gap)."""
        top, bottom = self.steep.slope[0], -self.flat.slope[0]
        right = self.steep.delta(np.maximum(epsilon, top))
        finite = np.minimum(epsilon, bottom)
        left = -np.expm1(finite) + np.exp(finite) * self.flat.delta(-finite)
        if bottom == top:
            return np.where(epsilon >= top, right, left)
        place = np.clip(epsilon, bottom, top)
        scale = -np.expm1(bottom - top)
        toward_top = np.exp(place - top) * -np.expm1(bottom - place) / scale
        start = -np.expm1(bottom) + np.exp(bottom) * self.flat.gap[0]
        middle = (-np.expm1(place - top) / scale) * start + toward_top * self.steep.gap[0]
        return np.where(epsilon >= top, right, np.where(epsilon <= bottom, left, middle))

    def mu(self) -> float:
        """Return the least mu with G_mu <= f; inf if there is no such mu.

        G_mu is convex, so only the vertices of f matter: mu = Phi^-1(1 - alpha) - Phi^-1(beta).  Gaps below 1e-280
        count as 0, and vertices of steep lines with beta, or of flat lines with alpha, below 1e-12 are ignored as
        points on the axes.
        """
        if max(self.steep.gap[-1], self.flat.gap[-1]) > NEGLIGIBLE:
            return math.inf
        alpha, beta = self.crossing()
        at = [np.zeros(1)] if min(alpha, beta) == 0 else [-ndtri(np.array([alpha])) - ndtri(np.array([beta]))]
        for supporting in (self.steep, self.flat):
            known = supporting.log_power < -1e-12
            at.append(ndtri_exp(supporting.log_power[known]) - ndtri_exp(supporting.log_alpha[known]))
        return max(0.0, float(np.concatenate(at).max()))

    def maximum(self, other: Envelope) -> Envelope:
        both = [
            SupportingLines.hull(np.concatenate([a.slope, b.slope]), np.concatenate([a.gap, b.gap]))
            for a, b in ((self.steep, other.steep), (self.flat, other.flat))
        ]
        return Envelope(*both)

    def iterated(self, k: int) -> Envelope:
        """Return the trade-off function 1 - (1 - f)^{o k} for k >= 1, where o is the composition of functions."""
        steep = _iterated(self, k)
        return Envelope(steep, steep if self.symmetric else _iterated(self.inverse(), k))

    def crossing(self) -> tuple[float, float]:
        """Return the point (alpha, beta) where the least steep line intersects the steepest flat line."""
        top, bottom = float(self.steep.slope[0]), float(self.flat.slope[0])
        # If both lines are equal, return the midpoint of the part of the line that is on the envelope.
        if top == bottom == 0:
            low = math.exp(self.steep.log_alpha[0]) if len(self.steep.log_alpha) else 0.0
            high = 1 - float(self.flat.power[0]) if len(self.flat.power) else 1 - float(self.flat.gap[0])
            alpha = (low + high) / 2
            return alpha, max(0.0, 1 - float(self.steep.gap[0]) - alpha)
        scale = -math.expm1(-top - bottom)
        gap0, gap1 = float(self.steep.gap[0]), float(self.flat.gap[0])
        alpha = math.exp(-top) * (-math.expm1(-bottom) * (1 - gap1) + (gap1 - gap0)) / scale
        beta = math.exp(-bottom) * (-math.expm1(-top) * (1 - gap0) + (gap0 - gap1)) / scale
        return min(max(alpha, 0.0), 1.0), min(max(beta, 0.0), 1.0)


def _tangents(claim: TradeoffFunction) -> SupportingLines:
    slopes, largest = claim.slopes(), claim.max_privacy_loss()
    gaps = claim.delta(slopes)
    if largest < math.inf:  # delta(largest) = delta(inf), apart from rounding errors
        slopes, gaps = np.append(slopes, largest), np.append(gaps, claim.delta(math.inf))
    return SupportingLines.hull(slopes, gaps)


def _implied(other: SupportingLines, i: int, supporting: SupportingLines, j: int) -> bool:
    """Return whether line i of `other` and line j + 1 of `supporting` together imply line j of `supporting`."""
    start = -float(other.slope[i])
    from_gap = -math.expm1(start) + math.exp(start) * float(other.gap[i])
    here, there = float(supporting.slope[j]), float(supporting.slope[j + 1])
    if here <= start:
        return bool(supporting.gap[j] > from_gap)
    scale = -math.expm1(start - there)
    near = -math.expm1(here - there) / scale
    far = math.exp(here - there) * -math.expm1(start - here) / scale
    return bool(supporting.gap[j] > near * from_gap + far * float(supporting.gap[j + 1]))


_MAX_LINES = 6000  # maximum number of lines of an iterated function; omitting lines lowers f and is therefore safe


@dataclass(frozen=True, eq=False)
class _Power:
    """The function g = 1 - f as the minimum of lines c + e^s alpha, where s decreases and c increases."""

    s: Array
    c: Array

    @cached_property
    def log_alpha(self) -> Array:
        """Logarithms of the alpha at which each line intersects the next line."""
        with np.errstate(divide="ignore"):
            rise = np.log(np.maximum(np.diff(self.c), 0.0))
        return np.maximum.accumulate(rise - self.s[:-1] - np.log(-np.expm1(np.diff(self.s))))

    def after(self, inner: _Power) -> _Power:
        """Return alpha -> g(inner(alpha)); the composition of any line with any line of `inner` is an upper bound."""
        with np.errstate(divide="ignore"):
            reached = np.maximum.accumulate(np.logaddexp(np.log(inner.c[:-1]), inner.s[:-1] + inner.log_alpha))
        changes = np.concatenate([reached, self.log_alpha])
        is_inner = np.arange(len(changes)) < len(inner.s) - 1
        is_inner = is_inner[np.argsort(changes, kind="stable")]
        i = np.concatenate([[0], np.cumsum(is_inner)])
        j = np.concatenate([[0], np.cumsum(~is_inner)])
        with np.errstate(divide="ignore", over="ignore"):
            c = self.c[j] + np.exp(self.s[j] + np.log(inner.c[i]))
        s = self.s[j] + inner.s[i]
        useful = c < 1
        return _Power(s[useful], c[useful])._tidy() if np.any(useful) else _Power(np.zeros(1), np.ones(1))

    def _tidy(self) -> _Power:
        falling, c = lowest(-self.s, self.c)
        s = -falling
        # A line is redundant if a less steep line has no larger constant term.
        keep = np.append(c[:-1] < np.minimum.accumulate(c[:0:-1])[::-1], True)
        s, c = s[keep], c[keep]
        if len(s) > _MAX_LINES:
            place = np.linspace(0, len(s) - 1, _MAX_LINES).round().astype(np.intp)
            s, c = s[place], c[place]
        return _Power(s, c)


def _iterated(envelope: Envelope, k: int) -> SupportingLines:
    """Return the steep lines of the k-fold iterate of an envelope, computed by repeated squaring."""
    flat = envelope.flat
    once = _Power(
        np.concatenate([envelope.steep.slope[::-1], -flat.slope]),
        np.concatenate([envelope.steep.gap[::-1], -np.expm1(-flat.slope) + np.exp(-flat.slope) * flat.gap]),
    )._tidy()
    result: _Power | None = None
    while True:
        if k & 1:
            result = once if result is None else once.after(result)
        k >>= 1
        if not k:
            break
        once = once.after(once)
    assert result is not None
    steep = result.s >= 0
    # If all slopes e^s are below 1, the line of slope 1 with the same constant term is an upper bound.
    if not np.any(steep):
        return SupportingLines(np.zeros(1), result.c[:1])
    return SupportingLines.hull(result.s[steep], result.c[steep])


class PolygonalClaim(TradeoffFunction):
    """A claim whose trade-off function is the polygon `_envelope`; the privacy profile is its exact dual."""

    @property
    @abstractmethod
    def _envelope(self) -> Envelope: ...

    def _curve(self, alpha: Array) -> Array:
        return self._envelope.beta(alpha)

    def _profile(self, epsilon: Array) -> Array:
        return self._envelope.delta(epsilon)

    def mu(self) -> float:
        """Return the least mu with G_mu <= f; inf if f(0) < 1, or f(alpha) = 0 for an alpha < 1."""
        return self._envelope.mu()

    def max_privacy_loss(self) -> float:
        return float(self._envelope.steep.slope[-1])

    def slopes(self) -> Array:
        return self._envelope.steep.slope
