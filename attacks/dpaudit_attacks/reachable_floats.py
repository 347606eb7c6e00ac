"""The floats that Laplace noise can reach if it is sampled by inverting its distribution function.

U in (0, 1] is sampled as a multiple of a small unit, such as 2^-53, so the outputs c -+ b log(U) are only a few of the
floats near the centre c, and other centres give other floats (Mironov 2012, "On significance of the least significant
bits for differential privacy", section 4).  Centres and scale usually have few digits, so the attack tries such numbers
near the medians and the spread of the outputs: with the right ones, all outputs are reachable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpaudit.numerics import Array

_SEARCHED = 24  # outputs of each dataset from which centres and scale are found
_FIRST = 8  # outputs of each dataset that rank all candidates, before the other outputs are used
_LIKELY = 8  # number of best noises, and of best centres for each noise, that are scored on all searched outputs
_CENTRES = 48  # number of centres that are tried
# Offsets, in units, from the multiple of the unit that is nearest to a computed U.  All offsets are tried, because the
# rounding of the output hides which multiple was sampled.
_STEPS = np.arange(-2.0, 3.0)
# Possible units of U: from 32 random bits, from 53 bits with one bit for the sign, and from 53 bits.
_UNITS = (2.0**-32, 2.0**-52, 2.0**-53)
# Errors of the logarithm in other libraries, in units of the last bit, with their measured frequencies.
_LOGARITHMS = ((0, 0.8), (-1, 0.1), (1, 0.1))
_ODD = 0.01  # assumed share of unreachable outputs
_TINY = 1e-300  # replaces zero in logarithms
_DENSE = 2.0  # if a float has on average at least this many values of U, every float counts as reachable
_SURE = 8.0  # nats of evidence, beyond log(number of candidates), that a candidate needs to be accepted


@dataclass(frozen=True, slots=True)
class _Noise:
    """Noise b log(U) for a scale b and a uniform U, computed as a product or as the quotient log(U) / (1/b)."""

    factor: Array  # b, or 1/b
    divides: bool  # whether the noise is computed as a quotient
    unit: float

    @property
    def scale(self) -> Array:
        return 1 / self.factor if self.divides else self.factor

    def ways(self, outputs: Array, centres: Array) -> tuple[Array, Array]:
        """Count the values of U that give each output, and their expected number for continuous U; arrays broadcast.

        The count is averaged over `_LOGARITHMS`; an expected number of at least `_DENSE` replaces it.
        """
        distance = outputs - centres
        with np.errstate(all="ignore"):
            uniform = np.exp(-np.abs(distance) / self.scale)
            expected = np.spacing(np.abs(outputs)) * uniform / (self.scale * self.unit)
            nearest, found = np.rint(uniform / self.unit), np.zeros(expected.shape)
            for step in _STEPS:
                multiple = nearest + step
                possible = (multiple >= 1) & (multiple * self.unit <= 1)
                logarithm = np.log(multiple * self.unit)
                last = np.spacing(logarithm)
                for off, share in _LOGARITHMS:
                    noise = logarithm + off * last
                    noise = noise / self.factor if self.divides else noise * self.factor
                    found += share * (possible & (centres - np.sign(distance) * noise == outputs))
        return np.where(expected < _DENSE, found, expected), expected

    def log_ratios(self, outputs: Array, centres: Array) -> Array:
        """Return the log-likelihood ratio of each output, in nats, for this noise against noise with continuous U."""
        ways, expected = self.ways(outputs, centres)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio: Array = np.log((1 - _ODD) * ways / expected + _ODD)
            # `expected` is tiny far from the centre, so that the quotient is too large for a float
            ratio = np.where(np.isposinf(ratio), np.log(ways) - np.log(expected), ratio)
        return np.where(np.isfinite(ratio), ratio, math.log(_ODD))


@dataclass(frozen=True, slots=True)
class _Found:
    """The noise and the centres that explain one number."""

    noise: _Noise
    centre0: float
    centre1: float

    def score(self, column: Array) -> Array:
        """Return log-likelihood ratios (n,) of numbers (n,); those of continuous noise if neither centre explains."""
        finite = np.isfinite(column)
        values = np.where(finite, column, 0.0)
        logs = []
        for centre in (self.centre0, self.centre1):
            ways, expected = self.noise.ways(values, np.array(centre))
            logs.append(np.log((1 - _ODD) * ways + _ODD * expected + _TINY))
        return np.where(finite, logs[1] - logs[0], 0.0)


@dataclass(frozen=True, slots=True)
class ReachableFloats:
    """Log-likelihood ratio of floating-point Laplace noise, with centres and scale found by search."""

    name: ClassVar[str] = "reachable_floats"
    automatic: ClassVar[str] = "released"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    from_trials: ClassVar[int] = 10  # > 0, so that the slow search is repeated only when the outputs have doubled

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return bool(_known(outputs0, outputs1))

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        found = _known(outputs0, outputs1)

        def score(outputs: Array) -> Array:
            return sum((known.score(outputs[:, j]) for j, known in found.items()), np.zeros(len(outputs)))

        return score


def _known(outputs0: Array, outputs1: Array) -> dict[int, _Found]:
    """Return the explained columns by index.  Only the first outputs are searched, so more trials have no effect."""
    # the first four numbers of an output are used
    first0, first1 = outputs0[:_SEARCHED, :4], outputs1[:_SEARCHED, :4]
    rows = np.concatenate([first0, first1])
    with np.errstate(invalid="ignore"):
        short = np.round(rows, 6) == rows
    fine = [j for j in range(rows.shape[1]) if np.all(np.isfinite(rows[:, j])) and short[:, j].mean() < 0.5]
    found = {j: _search(tuple(first0[:, j].tolist()), tuple(first1[:, j].tolist())) for j in fine}
    return {j: known for j, known in found.items() if known is not None}


@lru_cache(maxsize=256)
def _search(column0: tuple[float, ...], column1: tuple[float, ...]) -> _Found | None:
    """Return the centres and noise that best explain the first outputs; None if chance could explain them as well."""
    # The smallest outputs come first, because floats are densest near zero and the fewest of them are reachable there.
    sides = [np.array(sorted(column, key=abs)) for column in (column0, column1)]
    scale = float(np.concatenate([np.abs(side - np.median(side)) for side in sides]).mean())
    if not 0 < scale < math.inf:
        return None
    centres = [np.array(list(_short_near(float(np.median(side)), scale))) for side in sides]
    noises = list(_noises(scale))
    tried = sum(noise.factor.size for noise in noises) * len(centres[0]) * len(centres[1])
    best, most = None, math.log(tried) + _SURE
    for several in noises:
        firsts = [  # (noises, centres)
            several.log_ratios(side[:_FIRST], candidates[:, None]).sum(axis=2)
            for side, candidates in zip(sides, centres, strict=True)
        ]
        likely = np.argsort(-sum(first.max(axis=1) for first in firsts))[:_LIKELY]
        for factor, *sums in zip(several.factor[likely, 0, 0], *(first[likely] for first in firsts), strict=True):
            noise = _Noise(np.array(factor), several.divides, several.unit)
            total, chosen = 0.0, []
            for side, candidates, first in zip(sides, centres, sums, strict=True):
                some = candidates[np.argsort(-first)[:_LIKELY]]
                whole = noise.log_ratios(side, some[:, None]).sum(axis=1)
                total += float(whole.max())
                chosen.append(float(some[int(np.argmax(whole))]))
            if total > most:
                best, most = _Found(noise, *chosen), total
    return best


def _noises(scale: float) -> Iterator[_Noise]:
    """Yield noises of about this scale that have two digits in b or 1/b, with factors of shape (n, 1, 1)."""
    sides = []
    for size in (scale, 1 / scale):
        first = math.floor(math.log10(size)) - 2
        numbers = [float(f"{digits}e{power}") for power in range(first, first + 3) for digits in range(10, 100)]
        sides.append(np.array([number for number in numbers if size / 2 < number < size * 2]))
    scales, rates = sides
    for unit in _UNITS:
        yield _Noise(np.unique(np.concatenate([scales, 1 / rates]))[:, None, None], False, unit)
        yield _Noise(rates[:, None, None], True, unit)


def _short_near(middle: float, reach: float) -> Iterator[float]:
    """Yield numbers within `reach` of the middle, beginning with numbers that have the fewest digits."""
    seen: set[float] = set()
    power = math.ceil(math.log10(reach)) + 1
    while len(seen) < _CENTRES:
        for step in (10.0**power, 5 * 10.0 ** (power - 1)):
            nearby = np.arange(math.ceil((middle - reach) / step), math.floor((middle + reach) / step) + 1)
            for count in sorted(nearby, key=lambda count: abs(count * step - middle)):
                value = float(f"{count * step:.12g}")
                if value not in seen and len(seen) < _CENTRES:
                    seen.add(value)
                    yield value
        power -= 1
