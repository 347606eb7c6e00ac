"""Composes arbitrary claims by privacy-loss distributions, with Google's dp-accounting (the extra `accounting`).

The total loss of independent outputs has the convolution of their losses' laws (Koskela, Jälkö & Honkela 2020).  Losses
are discretised on a common grid by "connect the dots" (Doroshenko et al. 2022, Algorithm 1): between grid points, the
profile as a function of e^epsilon is replaced by a chord above it.  Each grid point then gives a line of the trade-off
function.

**Direction of numerical errors.**  Chords lie above the profile, losses beyond the grid count as infinite, and omitting
lines lowers f.  `with_slack` adds more than the rounding errors, and Chernoff's bound replaces deltas that it would
dominate.

**Private attributes.**  dp-accounting may change them, and misread numbers could cause a false verdict, so those of a
small distribution are compared with known values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np
from scipy.special import logsumexp, xlogy

from dpaudit.claims.base import OneDirection
from dpaudit.claims.envelope import SupportingLines
from dpaudit.numerics import Array, bisect

_TAIL = 1e-22  # value of delta at which the grid ends; larger privacy losses are counted as infinite
_CUT = 1e-15  # probability that dp-accounting may move to infinity in each convolution
_NOTHING = 1e-13  # total variation below which a part is not convolved; its total variation is added to delta instead
_MAX_POINTS_OF_ONE = 2**19  # maximum number of grid points for the privacy loss of one mechanism
_MAX_POINTS = 2**23  # maximum number of grid points for the total privacy loss
_WIDTH = 20  # standard deviations of the total privacy loss that the grid must cover


KNOWN_VERSIONS = ">=0.4.3,<0.7"  # supported versions of dp-accounting, as in the extra `accounting` of pyproject.toml
_INSTALL = 'pip install "dpaudit[accounting]"'
_STEP, _START, _MASS = 0.5, -1, np.array([0.25, 0.5, 0.25])


def pld_pmf() -> Any:
    """Import `dp_accounting.pld.pld_pmf` and check that its distributions have the expected attributes."""
    try:
        import dp_accounting  # noqa: F401  # imported first, so that an error names the missing module
        from dp_accounting.pld import pld_pmf
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "dp_accounting":
            message = f"composing these claims needs dp-accounting, which is not installed: {_INSTALL}"
            raise ImportError(message) from None
        if (error.name or "").split(".")[0] == "dp_accounting":
            raise unknown_release(str(error)) from error
        raise ImportError(f"dp-accounting cannot be imported: {error}; {_INSTALL}") from error
    try:
        one = pld_pmf.DensePLDPmf(_STEP, _START, _MASS, 0.0, True)
        difference = (
            _misread(one, 1)
            or _misread(one.to_dense_pmf(), 1)
            or _misread(one.self_compose(2, 1e-15), 2)
            or _misread(one.compose(one, 1e-15).compose(one, 1e-15), 3)
        )
    except Exception as error:  # later releases of dp-accounting may raise exceptions of any type
        difference = f"{type(error).__name__}: {error}"
    if difference:
        raise unknown_release(difference)
    return pld_pmf


def unknown_release(difference: str) -> ImportError:
    try:
        version = metadata.version("dp-accounting")
    except metadata.PackageNotFoundError:
        version = "of an unknown version"
    return ImportError(
        f"dp-accounting {version} is not a release that dpaudit can read: {difference}; "
        f"install a release {KNOWN_VERSIONS}: {_INSTALL}"
    )


def _misread(pmf: Any, count: int) -> str:
    mass = _MASS
    for _ in range(count - 1):
        mass = np.convolve(mass, _MASS)
    expected = {"_discretization": _STEP, "_lower_loss": count * _START, "_pessimistic_estimate": True}
    for name, value in expected.items():
        if getattr(pmf, name) != value:
            return f"{name} is {getattr(pmf, name)!r}, expected {value!r}"
    # the negated comparison is also true for NaN
    if len(pmf._probs) != len(mass) or not np.abs(pmf._probs - mass).max() <= 1e-9:
        return "_probs is not the mass of each loss"
    return "" if abs(pmf._infinity_mass) <= 1e-9 else "_infinity_mass is not the mass of an infinite loss"


@dataclass(frozen=True)
class Part:
    """A mechanism that is run `count` times, described by its privacy profiles in both directions."""

    forward: OneDirection  # promise for the direction (d0, d1)
    backward: OneDirection  # promise for the direction (d1, d0)
    count: int

    def reversed(self) -> Part:
        return Part(self.backward, self.forward, self.count)

    @cached_property
    def reach(self) -> float:
        """The privacy loss in nats at which the grid of this mechanism ends."""

        def end(direction: OneDirection) -> float:
            level = _at(direction, math.inf) * (1 + 1e-9) + _TAIL / self.count
            low, high = 0.0, 2.0**-30
            while _at(direction, high) > level and high < 1e6:
                low, high = high, 2 * high
            found = bisect(lambda epsilon: _at(direction, epsilon) <= level, inside=high, outside=low, steps=30).inside
            return min(found, direction.max_privacy_loss)

        return max(end(self.forward), end(self.backward))

    @cached_property
    def variance(self) -> float:
        """An approximate variance of the total privacy loss of all `count` runs, given that the loss is finite."""
        step = self.reach / 2000
        start, mass, _ = _masses(self, step)
        loss = step * (start + np.arange(len(mass)))
        finite = max(float(mass.sum()), 1e-300)
        mean = float(mass @ loss) / finite
        return self.count * float(mass @ (loss - mean) ** 2) / finite


def composed(parts: Sequence[Part]) -> SupportingLines:
    """Return the guarantees of the composition of all mechanisms, in the direction (d0, d1)."""
    with np.errstate(divide="ignore"):
        never = -math.expm1(sum(part.count * np.log1p(-_at(part.forward, math.inf)) for part in parts))
    if never == 1:
        return SupportingLines(np.zeros(1), np.ones(1))
    bound = sum(part.count * part.forward.max_privacy_loss for part in parts)
    end_slope, end_gap = ([bound], [never]) if bound < math.inf else ([], [])
    # a mechanism of tiny total variation is not convolved, but adds this variation to delta
    tiny = [part.count * _at(part.forward, 0.0) < _NOTHING for part in parts]
    added = math.fsum(part.count * _at(part.forward, 0.0) for part, is_tiny in zip(parts, tiny, strict=True) if is_tiny)
    parts = [part for part, is_tiny in zip(parts, tiny, strict=True) if not is_tiny]
    if not parts:
        return SupportingLines.hull(np.array([*end_slope, 0.0]), np.array([*end_gap, added]))
    total, step = _fine_total(parts)
    main, tail = _tangents(total).thinned(3000), _chernoff(parts, step)
    return SupportingLines.hull(
        np.concatenate([main.slope, tail.slope, end_slope]),
        np.concatenate([main.gap + added, tail.gap + added, end_gap]),
    )


def _fine_total(parts: Sequence[Part]) -> tuple[SupportingLines, float]:
    """Return the profile of the composition, on a grid that hardly changes the total loss, and the step of the grid."""
    reach = max(part.reach for part in parts)
    times = sum(part.count for part in parts)
    spread = _spread(parts)
    step = min(reach / 64, 300.0)  # the step is bounded because e^step must be finite
    least = _WIDTH * spread / _MAX_POINTS
    if least > step:
        raise OverflowError(f"composing {float(times):.3g} mechanisms needs a grid of more than {_MAX_POINTS:,} points")
    # a smaller standard deviation means that the loss is constant apart from rounding errors
    if spread > 3e-6 * reach * math.sqrt(times):
        step = max(min(spread * math.sqrt(8e-4 / times), step), reach / _MAX_POINTS_OF_ONE)
    step = max(step, least)
    directions = [(part.count, side) for part in parts for side in (part.forward, part.backward)]
    losses = [(n * side.max_privacy_loss, side.max_privacy_loss) for n, side in directions]
    _, atom = max((loss for loss in losses if loss[0] < math.inf), default=(0.0, 0.0))
    if atom > step:
        step = atom / math.ceil(atom / step)
    coarse = _total(parts, step)
    while step / 2 >= max(reach / _MAX_POINTS_OF_ONE, least):
        step /= 2
        fine = _total(parts, step)
        gained = np.max(np.abs(coarse.delta(fine.slope) - fine.gap))
        coarse = fine
        # the change of delta on halving the grid step
        if gained < 5e-5:
            break
    return coarse, step


def supporting_lines_of_pld(pld: Any) -> SupportingLines:
    """Return the guarantees of a PrivacyLossDistribution of dp-accounting, which hold in both directions of a pair."""
    if type(pld).__module__.partition(".")[0] != "dp_accounting":
        raise ValueError(f"pld must be a PrivacyLossDistribution of dp-accounting, got {type(pld).__name__}")
    pld_pmf()  # raises ImportError for a release of dp-accounting that dpaudit would misread
    try:
        mass_functions = [pld._pmf_remove] if pld._symmetric else [pld._pmf_remove, pld._pmf_add]
        dense = [pmf.to_dense_pmf() for pmf in mass_functions]
        pessimistic = all(pmf._pessimistic_estimate for pmf in dense)
    except AttributeError as error:
        if type(pld).__name__ == "PrivacyLossDistribution":
            raise unknown_release(str(error)) from None
        raise ValueError(f"pld must be a PrivacyLossDistribution of dp-accounting, got {type(pld).__name__}") from None
    if not pessimistic:
        raise ValueError("pld must be a pessimistic estimate, got an optimistic estimate, which promises too much")
    totals = [_profile_of(pmf) for pmf in dense]
    slope = np.unique(np.concatenate([total.slope for total in totals]))
    return _tangents(SupportingLines(slope, np.max([total.delta(slope) for total in totals], axis=0)))


def _tangents(profile: SupportingLines) -> SupportingLines:
    """Add the slack to the lines of a profile.  Omit lines far in the tail, where the slack would dominate delta."""
    known = profile.gap > 1e-13
    known[0] = True
    slope, gap = profile.slope[known], profile.gap[known]
    every = -(-len(slope) // 2**17)
    keep = np.append(np.arange(0, len(slope) - 1, every), len(slope) - 1)
    return SupportingLines.hull(slope[keep], with_slack(gap[keep]))


def with_slack(delta: Array) -> Array:
    """Add a slack that exceeds the measured rounding errors of a mass function and of up to 10^6 convolutions."""
    return np.minimum(delta + np.minimum(1e-7, 1e-10 + 1e-3 * delta), 1.0)


def _total(parts: Sequence[Part], step: float) -> SupportingLines:
    """Return the profile of the sum of all privacy losses; the probability of an infinite loss is added last."""
    library = pld_pmf()
    pmf, log_finite = None, 0.0
    with np.errstate(all="ignore"):  # dp-accounting's Chernoff bounds overflow where they exceed 1
        for part in parts:
            start, mass, infinite = _masses(part, step)
            if infinite >= 1:
                return SupportingLines(np.zeros(1), np.ones(1))
            log_finite += part.count * math.log1p(-infinite)
            one = library.DensePLDPmf(step, start, mass / (1 - infinite), 0.0, True)
            some = _self_composed(one, part.count)
            pmf = some if pmf is None else pmf.compose(some, _CUT)
    profile = _profile_of(pmf)
    return SupportingLines(profile.slope, -math.expm1(log_finite) + math.exp(log_finite) * profile.gap)


def _self_composed(pmf: Any, times: int) -> Any:
    """Return the law of the sum of `times` independent privacy losses, in stages not much wider than a term."""
    # dp-accounting truncates a sum by 40 Chernoff bounds, which are poor if it has a much wider range than its terms
    if times == 1:
        return pmf
    mass = np.maximum(pmf._probs, 0.0)
    place = np.arange(len(mass))
    spread = math.sqrt(float(mass @ (place - mass @ place / mass.sum()) ** 2))
    at_once = max(2, int((2 * len(mass) / max(spread, 0.1)) ** 2))
    if times <= 16 * at_once:
        return pmf.self_compose(times, _CUT)
    stages, rest = divmod(times, at_once)
    total = _self_composed(pmf.self_compose(at_once, _CUT / stages), stages)
    return total.compose(pmf.self_compose(rest, _CUT), _CUT) if rest else total


def _profile_of(pmf: Any) -> SupportingLines:
    """Return delta(s) = P[infinite loss] + sum over losses l > s of (1 - e^(s - l)) mass(l), at 0 and the grid."""
    from scipy.signal import lfilter

    step, start, mass = pmf._discretization, pmf._lower_loss, np.maximum(pmf._probs, 0.0)
    mass, start = mass[max(-start, 0) :], max(start, 0)
    if len(mass) == 0:  # no privacy loss is positive
        return SupportingLines(np.zeros(1), np.full(1, pmf._infinity_mass))
    above = np.cumsum(mass[::-1])[::-1]
    discounted = lfilter([1.0], [1.0, -math.exp(-step)], mass[::-1])[::-1]
    slope, delta = step * (start + np.arange(len(mass))), np.maximum(above - discounted, 0.0)
    if start > 0:
        slope = np.append(0.0, slope)
        delta = np.append(above[0] - math.exp(-step * start) * discounted[0], delta)
    return SupportingLines(slope, delta + pmf._infinity_mass)


def _masses(part: Part, step: float) -> tuple[int, Array, float]:
    """Return the first grid point's index, and from there the masses under Q, and the mass at infinity."""
    points = max(1, math.ceil(part.reach / step))
    positive, delta, fall = _masses_of_direction(part.forward, step, points)
    reverse, _, reverse_fall = _masses_of_direction(part.backward, step, points)
    negative: Array = (reverse * np.exp(-step * np.arange(1, points + 1)))[::-1]
    zero = 1 - delta[0] - (fall[0] + reverse_fall[0]) / math.expm1(step)
    missing = 1 - math.fsum([zero, delta[-1], float(positive.sum()), float(negative.sum())])
    zero = max(0.0, zero + max(0.0, missing))
    return -points, np.concatenate([negative, [zero], positive]), float(delta[-1])


def _masses_of_direction(direction: OneDirection, step: float, points: int) -> tuple[Array, Array, Array]:
    delta: Array = np.minimum.accumulate(direction.delta(step * np.arange(points + 1, dtype=np.float64)))
    fall = -np.diff(delta)
    mass: Array = fall / -math.expm1(-step)
    mass[:-1] -= fall[1:] / math.expm1(step)
    # Between corners of a polygon, the exact mass is 0.  The computed mass is then a rounding error of a difference.
    rounding = 2.0**-50 * delta[1:] / math.expm1(step)
    return np.where(mass > rounding, mass, 0.0), delta, fall


def _spread(parts: Sequence[Part]) -> float:
    total = 0.0
    for part in parts:
        total += part.variance
    return math.sqrt(total)


def _at(direction: OneDirection, epsilon: float) -> float:
    return float(direction.delta(np.array([epsilon]))[0])


def _chernoff(parts: Sequence[Part], step: float) -> SupportingLines:
    """Bound the total profile by Chernoff: (1 - e^-x)_+ <= e^(ux) u^u / (1 + u)^(1 + u), minimised over u > 0."""
    u = np.geomspace(0.05, 1e4, 90) / max(_spread(parts), step)
    log_moment, log_finite = np.zeros_like(u), 0.0
    for part in parts:
        start, mass, infinite = _masses(part, step)
        if infinite >= 1:
            return SupportingLines(np.zeros(1), np.ones(1))
        loss = step * (start + np.arange(len(mass)))[mass > 0]
        log_mass = np.log(mass[mass > 0])
        log_moment += part.count * np.array([logsumexp(log_mass + x * loss) for x in u])
        log_finite += part.count * math.log1p(-infinite)
    constant = log_moment + xlogy(u, u) - xlogy(1 + u, 1 + u)
    first, last = (float(np.min((constant - math.log(level)) / u)) for level in (1e-7, 1e-290))
    slope = np.linspace(max(first, 0.0), max(first, last, step), 400)
    log_tail = np.min(constant[:, None] - u[:, None] * slope, axis=0)
    return SupportingLines(slope, np.minimum(-math.expm1(log_finite) + np.exp(np.minimum(log_tail, 0.0)), 1.0))
