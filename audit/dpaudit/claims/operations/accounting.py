"""Composition of any claims by privacy-loss distributions, with Google's dp-accounting (the extra `accounting`).

The loss log q/p of two independent outputs is the sum of their losses, so the law of the total loss is a convolution
(Koskela, Jälkö & Honkela 2020; dp-accounting's "Privacy Loss Distributions").  Each claim's loss is put on a
common grid by connecting the dots (Doroshenko et al. 2022, Algorithm 1): between grid points the profile delta, as
a function of e^epsilon, is replaced by the chord, which lies above it.  dp-accounting convolves the mass functions.
From the total, delta at every grid point gives the lines of f.

**Safe side.**  Chords lie above; losses that are off the grid count as infinite; convolutions of pessimistic
estimates are pessimistic; leaving out lines lowers f.  The rest is rounding, and `with_slack` is more than that.
Far in the tail, where the slack would dominate, Chernoff's bound on the same distributions takes over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, xlogy

from dpaudit.claims.base import OneDirection
from dpaudit.claims.envelope import SupportingLines
from dpaudit.claims.operations.pld_library import pld_pmf, unknown_release
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect
from dpaudit.values import Foreign

_TAIL = 1e-22  # delta at which the grid ends: what is beyond counts as an infinite loss
_CUT = 1e-15  # probability that dp-accounting may move to infinity in a convolution
_NOTHING = 1e-13  # total variation that is not worth a convolution
_MAX_POINTS_OF_ONE = 2**19  # grid points of one mechanism
_MAX_POINTS = 2**23  # grid points of the total
_MAX_LINES = 3000  # that are kept
_MAX_CHANGE = 5e-5  # change of delta when the grid is made twice as fine, below which it is fine enough


@dataclass(frozen=True)
class Part:
    """One mechanism, `count` times."""

    forward: OneDirection  # (d0, d1)
    backward: OneDirection  # (d1, d0)
    count: int

    def reversed(self) -> Part:
        """The same mechanism, d0 and d1 exchanged."""
        return Part(self.backward, self.forward, self.count)


def composed(parts: Sequence[Part]) -> SupportingLines:
    """The guarantees of all parts together, in the direction (d0, d1)."""
    with np.errstate(divide="ignore"):
        never = -math.expm1(sum(part.count * np.log1p(-_at(part.forward, math.inf)) for part in parts))
    if never == 1:
        return SupportingLines(np.zeros(1), np.ones(1))
    bound = sum(part.count * part.forward.max_privacy_loss for part in parts)
    ends = [(bound, never)] if bound < math.inf else []
    # What reveals next to nothing, in total variation, is simply added: delta <= delta of the others + that.
    tiny = [part.count * _at(part.forward, 0.0) < _NOTHING for part in parts]
    added = math.fsum(part.count * _at(part.forward, 0.0) for part, is_tiny in zip(parts, tiny, strict=True) if is_tiny)
    parts = [part for part, is_tiny in zip(parts, tiny, strict=True) if not is_tiny]
    if not parts:
        ends.append((0.0, added))
        return SupportingLines.hull(np.array([s for s, _ in ends]), np.array([gap for _, gap in ends]))
    total, step = _fine_total(parts)
    main, tail = _tangents(total).thinned(_MAX_LINES), _chernoff(parts, step)
    return SupportingLines.hull(
        np.concatenate([main.slope, tail.slope, [s for s, _ in ends]]),
        np.concatenate([main.gap + added, tail.gap + added, [gap for _, gap in ends]]),
    )


def _fine_total(parts: Sequence[Part]) -> tuple[SupportingLines, float]:
    """Profile of all parts together, and the step of the grid that it took.

    The grid starts at a step that leaves the standard deviation of the total loss unchanged to 1e-4, and is halved
    until delta changes by less than 5e-5 anywhere, or the grid has 2^19 points for one mechanism or 2^23 for all.
    The largest loss of a mechanism, which often has a probability of its own, is put on the grid.
    """
    reach = max(_reach(part) for part in parts)
    times = sum(part.count for part in parts)
    spread = _spread(parts)
    step = min(reach / 64, 300.0)  # e^step must be a number
    if spread > 3e-6 * reach * math.sqrt(times):  # else the loss is a constant, and its spread is rounding
        step = max(min(spread * math.sqrt(8e-4 / times), step), reach / _MAX_POINTS_OF_ONE)
    losses = [
        (part.count * o.max_privacy_loss, o.max_privacy_loss) for part in parts for o in (part.forward, part.backward)
    ]
    _, atom = max((loss for loss in losses if loss[0] < math.inf), default=(0.0, 0.0))
    if atom > step:
        step = atom / math.ceil(atom / step)
    coarse = _total(parts, step)
    while step / 2 >= max(reach / _MAX_POINTS_OF_ONE, 20 * spread / _MAX_POINTS):
        step /= 2
        fine = _total(parts, step)
        gained = np.max(np.abs(coarse.delta(fine.slope) - fine.gap))
        coarse = fine
        if gained < _MAX_CHANGE:
            break
    return coarse, step


def supporting_lines_of_pld(pld: Foreign) -> SupportingLines:
    """The guarantees of a dp-accounting PrivacyLossDistribution, in both directions of a pair; see `PrivacyLoss`."""
    if type(pld).__module__.partition(".")[0] != "dp_accounting":
        raise ValueError(f"pld must be a PrivacyLossDistribution of dp-accounting, got {type(pld).__name__}")
    pld_pmf()  # refuses a release that would be misread
    try:
        mass_functions = [pld._pmf_remove] if pld._symmetric else [pld._pmf_remove, pld._pmf_add]
        dense = [pmf.to_dense_pmf() for pmf in mass_functions]
        pessimistic = all(pmf._pessimistic_estimate for pmf in dense)
    except AttributeError as error:
        if type(pld).__name__ == "PrivacyLossDistribution":
            raise unknown_release(str(error)) from None
        raise ValueError(f"pld must be a PrivacyLossDistribution of dp-accounting, got {type(pld).__name__}") from None
    if not pessimistic:
        raise ValueError("pld must be a pessimistic estimate, got an optimistic one, which promises too much")
    totals = [_profile_of(pmf) for pmf in dense]
    slope = np.unique(np.concatenate([total.slope for total in totals]))
    return _tangents(SupportingLines(slope, np.max([total.delta(slope) for total in totals], axis=0)))


def _tangents(profile: SupportingLines) -> SupportingLines:
    """The lines of a profile, with slack; not those far in the tail, where the slack is all there is of delta."""
    known = profile.gap > 1e-13
    known[0] = True
    slope, gap = profile.slope[known], profile.gap[known]
    every = -(-len(slope) // 2**17)
    keep = np.append(np.arange(0, len(slope) - 1, every), len(slope) - 1)
    return SupportingLines.hull(slope[keep], with_slack(gap[keep]))


def with_slack(delta: Array) -> Array:
    """delta, and what a mass function and its convolutions may be wrong by: 1e-7, and less in the tail.

    Observed where the exact delta is known, with up to 10^6 compositions: 1e-13 in the tail, from the Fourier
    transform, and less than the grid's own excess in the bulk.  So the tail, where delta may be as small as that, gets
    1e-10 and a thousandth of delta.
    """
    return np.minimum(delta + np.minimum(1e-7, 1e-10 + 1e-3 * delta), 1.0)


def _total(parts: Sequence[Part], step: float) -> SupportingLines:
    """Profile of the sum of all losses.  Infinite ones are set apart, so that the finite ones are a law, too."""
    library = pld_pmf()
    pmf, log_finite = None, 0.0
    with np.errstate(all="ignore"):  # dp-accounting's Chernoff bounds overflow where they say nothing
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


def _self_composed(pmf: Foreign, times: int) -> Foreign:
    """The law of the sum of so many losses, in stages of which none spreads far beyond its input's range.

    dp-accounting chooses the range of the sum among 40 Chernoff bounds that suit sums not much wider than their terms;
    beyond that the range, and the Fourier transform with it, would be far too long.
    """
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


def _profile_of(pmf: Foreign) -> SupportingLines:
    """delta(s) = m_inf + sum over losses l > s of (1 - e^(s - l)) mass, at 0 and at the grid's points s > 0."""
    from scipy.signal import lfilter

    step, start, mass = pmf._discretization, pmf._lower_loss, np.maximum(pmf._probs, 0.0)
    mass, start = mass[max(-start, 0) :], max(start, 0)
    if len(mass) == 0:  # no loss is positive
        return SupportingLines(np.zeros(1), np.full(1, pmf._infinity_mass))
    above = np.cumsum(mass[::-1])[::-1]
    discounted = lfilter([1.0], [1.0, -math.exp(-step)], mass[::-1])[::-1]
    slope, delta = step * (start + np.arange(len(mass))), np.maximum(above - discounted, 0.0)
    if start > 0:
        slope = np.append(0.0, slope)
        delta = np.append(above[0] - math.exp(-step * start) * discounted[0], delta)
    return SupportingLines(slope, delta + pmf._infinity_mass)


def _masses(part: Part, step: float) -> tuple[int, Array, float]:
    """First grid point, masses under Q from there on, mass at infinity, of the part's connected dots.

    The mass at a grid point is the change of slope there of the chords of delta(e^epsilon), times e^epsilon.
    Masses at negative losses come from the profile of the reverse direction, which knows them precisely.
    """
    points = max(1, math.ceil(_reach(part) / step))
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
    rounding = 2.0**-50 * delta[1:] / math.expm1(step)  # of differences of delta; a polygon has no more than that here
    return np.where(mass > rounding, mass, 0.0), delta, fall


def _reach(part: Part) -> float:
    """Where the grid of this part ends."""
    return max(_reach_of(direction, _TAIL / part.count) for direction in (part.forward, part.backward))


def _reach_of(direction: OneDirection, tail: float) -> float:
    level = _at(direction, math.inf) * (1 + 1e-9) + tail
    low, high = 0.0, 2.0**-30
    while _at(direction, high) > level and high < 1e6:
        low, high = high, 2 * high
    end = bisect(lambda epsilon: _at(direction, epsilon) <= level, inside=high, outside=low, steps=30).inside
    return min(end, direction.max_privacy_loss)


def _spread(parts: Sequence[Part]) -> float:
    """Standard deviation of the total loss, where it is finite; roughly."""
    total = 0.0
    for part in parts:
        step = _reach(part) / 2000
        start, mass, _ = _masses(part, step)
        loss = step * (start + np.arange(len(mass)))
        finite = max(float(mass.sum()), 1e-300)
        mean = float(mass @ loss) / finite
        total += part.count * float(mass @ (loss - mean) ** 2) / finite
    return math.sqrt(total)


def _at(direction: OneDirection, epsilon: float) -> float:
    return float(direction.delta(np.array([epsilon]))[0])


def _chernoff(parts: Sequence[Part], step: float) -> SupportingLines:
    """delta(s) <= m_inf + E e^(u L) e^(-u s) u^u / (1 + u)^(1 + u) for every u > 0.

    Since (1 - e^-x)_+ <= e^(ux) u^u / (1 + u)^(1 + u).  Only the profile below 1e-7 is of interest here, where the
    slack of the convolution becomes visible.
    """
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
