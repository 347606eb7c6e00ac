"""Composition of any claims by privacy-loss distributions, with Google's dp-accounting (the extra `accounting`).

The loss log q/p of two independent outputs is the sum of their losses, so the law of the total loss is a convolution
(Koskela, Jaelkoe & Honkela 2020; dp-accounting's "Privacy Loss Distributions").  Each claim's loss is put on a
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
from typing import Any

import numpy as np
from scipy.special import logsumexp, xlogy

from dpaudit.claims.base import Array, Profile
from dpaudit.claims.lines import Half

_TAIL = 1e-22  # delta at which the grid ends: what is beyond counts as an infinite loss
_CUT = 1e-15  # probability that dp-accounting may move to infinity in a convolution
_FINEST = 2**19  # grid points of one mechanism
_LINES = 3000
_GOOD_ENOUGH = 2e-5  # change of delta when the grid is made twice as fine, below which it is fine enough


@dataclass(frozen=True)
class Part:
    """One mechanism, `count` times."""

    forward: Profile  # of (d0, d1)
    backward: Profile  # of (d1, d0)
    count: int
    largest_loss: float  # nats; inf if unknown

    def reversed(self) -> Part:
        return Part(self.backward, self.forward, self.count, self.largest_loss)


def composed(parts: Sequence[Part]) -> Half:
    """The guarantees of all parts together, in the order (d0, d1).

    The grid starts at a step that leaves the standard deviation of the total loss unchanged to 1e-4 and is halved
    until delta changes by less than 2e-5, or the grid has 2^19 points for one mechanism.  The largest loss of a
    mechanism, which often has a probability of its own, is put on the grid.
    """
    reach = max(_reach(part) for part in parts)
    times = sum(part.count for part in parts)
    spread = math.sqrt(sum(part.count * _variance(part, reach) for part in parts))
    step = max(min(spread * math.sqrt(8e-4 / times), reach / 64), reach / _FINEST)
    bounded = [part for part in parts if part.largest_loss < math.inf]
    if bounded:
        atom = max(bounded, key=lambda part: part.count * part.largest_loss).largest_loss
        step = atom / math.ceil(atom / step) if atom > step else step
    coarse = _total(parts, step)
    while step / 2 >= reach / _FINEST:
        step /= 2
        fine = _total(parts, step)
        gained = np.max(np.abs(coarse.at_half_steps()[: len(fine.delta)] - fine.delta[: 2 * len(coarse.delta) - 1]))
        coarse = fine
        if gained < _GOOD_ENOUGH:
            break
    slope, gap = coarse.slope, with_slack(coarse.delta)
    tail_slope, tail_gap = _chernoff([(_masses(part, step), part.count) for part in parts], step, spread)
    never = -math.expm1(sum(part.count * math.log1p(-_floor(part)) for part in parts))
    bound = sum(part.count * part.largest_loss for part in parts)
    if bound < math.inf:
        tail_slope, tail_gap = np.append(tail_slope, bound), np.append(tail_gap, never)
    main = Half.hull(slope, gap).thinned(_LINES)
    return Half.hull(np.concatenate([main.slope, tail_slope]), np.concatenate([main.gap, tail_gap]))


def half_of_pld(pld: Any) -> Half:
    """The guarantees of a dp-accounting PrivacyLossDistribution, in both orders of a pair; see `PrivacyLoss`."""
    try:
        mass_functions = [pld._pmf_remove] if pld._symmetric else [pld._pmf_remove, pld._pmf_add]
        dense = [pmf.to_dense_pmf() for pmf in mass_functions]
        pessimistic = all(pmf._pessimistic_estimate for pmf in dense)
    except AttributeError:
        raise ValueError(f"pld must be a PrivacyLossDistribution of dp-accounting, got {type(pld).__name__}") from None
    if not pessimistic:
        raise ValueError("pld must be a pessimistic estimate, got an optimistic one, which promises too much")
    totals = [_profile_of(pmf) for pmf in dense]
    longest = max(totals, key=lambda total: len(total.delta))
    delta = np.max([np.pad(t.delta, (0, len(longest.delta) - len(t.delta)), mode="edge") for t in totals], axis=0)
    return Half.hull(longest.slope, with_slack(delta))


def with_slack(delta: Array) -> Array:
    """delta, and what a mass function and its convolutions may be wrong by: 1e-7, and less in the tail.

    In the bulk, rounding of the masses adds up over the compositions (observed: 3e-10 over 10,000).  In the tail
    it is the rounding of the Fourier transform, relative to the largest mass (observed: 1e-13).
    """
    return np.minimum(delta + np.minimum(1e-7, 1e-10 + 1e-3 * delta), 1.0)


@dataclass(frozen=True)
class _Profile:
    """delta at slopes 0, step, 2 step, ..."""

    slope: Array
    delta: Array

    def at_half_steps(self) -> Array:
        """delta at slopes 0, step/2, step, ...: on the chords, which are straight in e^slope."""
        if len(self.slope) == 1:
            return self.delta
        step = float(self.slope[1])
        share = math.expm1(step / 2) / math.expm1(step) if step < 700 else 0.0
        halves = np.empty(2 * len(self.delta) - 1)
        halves[::2] = self.delta
        halves[1::2] = (1 - share) * self.delta[:-1] + share * self.delta[1:]
        return halves


def _total(parts: Sequence[Part], step: float) -> _Profile:
    pmf = None
    with np.errstate(all="ignore"):  # dp-accounting's Chernoff bounds overflow where they say nothing
        for part in parts:
            one = _pld_pmf().DensePLDPmf(step, *_masses(part, step), True)
            some = _self_composed(one, part.count)
            pmf = some if pmf is None else pmf.compose(some, _CUT)
    return _profile_of(pmf)


def _self_composed(pmf: Any, times: int) -> Any:
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


def _profile_of(pmf: Any) -> _Profile:
    """delta(s) = m_inf + sum over losses l > s of (1 - e^(s - l)) mass, at the grid's points s >= 0."""
    from scipy.signal import lfilter

    step, mass = pmf._discretization, np.maximum(pmf._probs, 0.0)
    start = pmf._lower_loss
    if start > 0:
        mass, start = np.concatenate([np.zeros(start), mass]), 0
    if start + len(mass) <= 0:  # no loss is positive
        return _Profile(np.zeros(1), np.full(1, pmf._infinity_mass))
    mass = mass[-start:]
    above = np.cumsum(mass[::-1])[::-1]
    discounted = lfilter([1.0], [1.0, -math.exp(-step)], mass[::-1])[::-1]
    return _Profile(step * np.arange(len(mass)), np.maximum(above - discounted, 0.0) + pmf._infinity_mass)


def _masses(part: Part, step: float) -> tuple[int, Array, float]:
    """First grid point, masses under Q from there on, mass at infinity, of the part's connected dots.

    The mass at a grid point is the change of slope there of the chords of delta(e^epsilon), times e^epsilon.
    Masses at negative losses come from the profile of the reverse order, which knows them precisely.
    """
    points = max(1, math.ceil(_reach(part) / step))
    positive, delta, fall = _half_masses(part.forward, step, points)
    reverse, _, reverse_fall = _half_masses(part.backward, step, points)
    negative = (reverse * np.exp(-step * np.arange(1, points + 1)))[::-1]
    zero = 1 - delta[0] - (fall[0] + reverse_fall[0]) / math.expm1(step)
    missing = 1 - math.fsum([zero, delta[-1], float(positive.sum()), float(negative.sum())])
    zero = max(0.0, zero + max(0.0, missing))
    return -points, np.concatenate([negative, [zero], positive]), float(delta[-1])


def _half_masses(profile: Profile, step: float, points: int) -> tuple[Array, Array, Array]:
    delta = np.minimum.accumulate(profile(step * np.arange(points + 1)))
    fall = -np.diff(delta)
    mass = fall / -math.expm1(-step)
    mass[:-1] -= fall[1:] / math.expm1(step)
    return np.maximum(mass, 0.0), delta, fall


def _reach(part: Part) -> float:
    """Where the grid of this part ends."""
    reach = 0.0
    for profile in (part.forward, part.backward):
        level = float(profile(np.array([math.inf]))[0]) * (1 + 1e-9) + _TAIL / part.count
        low, high = 0.0, 2.0**-30
        while float(profile(np.array([high]))[0]) > level and high < 1e6:
            low, high = high, 2 * high
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if float(profile(np.array([middle]))[0]) > level else (low, middle)
        reach = max(reach, high)
    return min(reach, part.largest_loss)


def _variance(part: Part, reach: float) -> float:
    """Of the finite losses of one mechanism, roughly."""
    step = min(reach, _reach(part)) / 2000
    start, mass, _ = _masses(part, step)
    loss = step * (start + np.arange(len(mass)))
    mean = float(mass @ loss)
    return float(mass @ (loss - mean) ** 2)


def _floor(part: Part) -> float:
    return float(part.forward(np.array([math.inf]))[0])


def _chernoff(parts: list[tuple[tuple[int, Array, float], int]], step: float, spread: float) -> tuple[Array, Array]:
    """delta(s) <= m_inf + E e^(u L) e^(-u s) u^u / (1 + u)^(1 + u) for every u > 0: (1 - e^-x)_+ <= e^(ux) u^u/(1+u)^(1+u).

    Only the profile below 1e-8 is of interest here, where the slack of the convolution becomes visible.
    """
    u = np.geomspace(0.05, 1e4, 90) / spread
    log_moment = np.zeros_like(u)
    never = 0.0
    for (start, mass, infinite), count in parts:
        loss = step * (start + np.arange(len(mass)))
        seen = mass > 0
        log_mass = np.log(mass[seen])
        log_moment += count * np.array([logsumexp(log_mass + x * loss[seen]) for x in u])
        never += count * math.log1p(-infinite)
    constant = log_moment + xlogy(u, u) - xlogy(1 + u, 1 + u)
    first, last = (float(np.min((constant - math.log(level)) / u)) for level in (1e-7, 1e-290))
    slope = np.linspace(max(first, 0.0), max(last, step), 400)
    bound = np.min(constant[:, None] - u[:, None] * slope, axis=0)
    return slope, np.minimum(-math.expm1(never) + np.exp(np.minimum(bound, 0.0)), 1.0)


def _pld_pmf() -> Any:
    try:
        from dp_accounting.pld import pld_pmf
    except ImportError:
        raise ImportError(
            'composing these claims needs dp-accounting, which is not installed: pip install "dpaudit[accounting]"'
        ) from None
    return pld_pmf
