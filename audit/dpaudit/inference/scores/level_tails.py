"""Tail probabilities of the weighted sum K in the theorem of `levels`.

Given V_1 and V_2, K is a sum of independent weighted binomial variables.  Let G(z) = E[z^K], averaged over cells of V_1
and V_2.

**Lemma.**  For every radius 0 < rho < 1, every odd n, and z_k = rho e^{2 pi i k / n},

    P[K <= t] <= (1 / n) sum_k G(z_k) / (z_k^t (1 - z_k)).

*Proof.*  G(z) / (1 - z) is the sum over j of P[K <= j] z^j.  The right side is therefore the sum of P[K <= j] rho^{j-t}
over all j = t modulo n.  No term is negative, and the term j = t is the left side.  QED

The radius is near the saddle point of the integrand, and n is several standard deviations of K.  All terms but j = t
are then negligible.  The terms of conjugate z_k are conjugate, so half of them are computed.

**Nodes that are left out.**  A variable w Bernoulli(e) multiplies G by 1 - e + e z^w.  With p = e rho^w / (1 - e + e
rho^w), the absolute value is at most exp(-p (1 - p)(1 - cos(w s))) times the value at rho, for z = rho e^{i s}.  Since
p <= 1/2, the bound for the smallest e of a level holds for all cells.  Nodes with a negligible bound are left out, and
their bounds are added to the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, ndtr

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores.confident import wrong_bracket
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.caches import kept, read_only

_CELLS = 150  # number of cells of each of V_1 and V_2
_NEAR, _FAR = 7.0, 38.0  # range of integration in standard deviations; _FAR for tails < _TINY
_TINY = 1e-9
_DENSER = 3.0  # cells at the mean are sinh(3) / 3 = 3.3 times as narrow as on average
_CHORD = 0.9  # the slope e(V) is at least that of the chord from 0.9 V to V
_FINENESS = 0.005  # error rates of the second level are rounded down to a grid; standard deviations of K between points
_ALIASED = 20.0  # terms with j > t are smaller than the tail by about this logarithm
_LEAST_SHARE = 1e-13  # nodes whose bound is smaller than this are left out
_ROUNDING = 1e-15  # bound of the rounding error of 1 - f(a) + a
_SMALLEST = 1e-300  # smallest end of a cell and smallest tail

Complex = npt.NDArray[np.complex128]
Numbers = tuple[int, int]
Weights = tuple[int, int, int]


def chance(
    claim: TradeoffFunction, m: int, numbers: Numbers, weights: Weights, most: int, *, enough: float = 0.0
) -> float:
    """Return an upper bound of P[K <= most]."""

    def within(reach: float, least: float) -> float:
        cells = _cells(m, numbers, reach)
        return _tail(_rates(claim, m, numbers, reach), cells, m, numbers, weights, most, least)

    p = within(_NEAR, _TINY)
    return p if p > _TINY or p <= enough else min(p, within(_FAR, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Cells of V_2 and, given the lower end of the cell of V_2, of V_1.  The lowest cells are left out."""

    first: Array  # lower ends of the cells of V_1, ascending, > 0
    second: Array  # lower ends of the cells of V_2, ascending
    mass: Array  # probabilities, (cells of V_1, cells of V_2)
    lost: float  # probability of the lowest cells


@lru_cache(maxsize=8)  # the cells do not depend on the claim
def _cells(m: int, numbers: Numbers, reach: float) -> _Cells:
    u = np.sinh(_DENSER * np.linspace(-1.0, 1.0, _CELLS)) / math.sinh(_DENSER)
    z = np.where(u < 0, u * reach, u * min(reach, _NEAR))

    def ends(r: int) -> Array:
        found = np.unique(betaincinv(r + 1.0, float(m - r), ndtr(z)))
        return found[(found > _SMALLEST) & (found < 1)]

    r1, r2 = numbers
    x, y = ends(r1), ends(r2)
    below = betainc(r2 + 1.0, float(m - r2), y)
    p = np.diff(below, append=0.0)
    p[-1] = betainc(float(m - r2), r2 + 1.0, 1 - y[-1])
    share = np.minimum(x[:, None] / y, 1.0)
    under = betainc(r1 + 1.0, float(r2 - r1), share)  # V_1 is the (r1 + 1)-th smallest of r2 numbers below V_2
    q = np.diff(under, axis=0, append=0.0)
    q[-1] = betainc(float(r2 - r1), r1 + 1.0, 1 - share[-1])
    return _Cells(read_only(x), read_only(y), read_only(q * p), float(below[0] + p @ under[0]))


@dataclass(frozen=True, slots=True, eq=False)
class _Rates:
    """Probabilities of the theorem of `levels`, rounded down; i and j are the cells of V_1 and V_2."""

    first: Array  # first level, (i,)
    at_first: Array  # the canary at V_1, (i,)
    second: Array  # second level, (i, j)
    at_second: Array  # the canary at V_2, (j,)
    third: Array  # third level, (j,)


@kept(8)  # the rates do not depend on the number of right guesses
def _rates(claim: TradeoffFunction, m: int, numbers: Numbers, reach: float) -> _Rates:
    cells = _cells(m, numbers, reach)
    x, y = cells.first, cells.second
    at = np.concatenate([x, y, _CHORD * x, _CHORD * y, [1.0]])
    found = wrong_bracket(claim, at)
    parts = np.cumsum([len(x), len(y), len(x), len(y)])
    low_x, low_y, _, _, (whole,) = np.split(np.maximum(found.inside - _ROUNDING, 0.0), parts)
    high_x, high_y, before_x, before_y, _ = np.split(found.outside + _ROUNDING, parts)
    first = _down(low_x / x)
    at_first = np.maximum(_down((low_x - before_x) / ((1 - _CHORD) * x)), first)
    at_second = _down((low_y - before_y) / ((1 - _CHORD) * y))
    gap = y - x[:, None]
    chord = (low_y - high_x[:, None]) / np.where(gap > 0, gap, np.inf)
    second = np.maximum(_down(chord), at_first[:, None])
    third = np.maximum(_down((whole - high_y) / (1 - y)), at_second)
    return _Rates(*map(read_only, (first, at_first, second, at_second, third)))


def _down(rate: Array) -> Array:
    return np.clip(rate * (1 - 1e-9), 0.0, 0.5)


def _tail(rates: _Rates, cells: _Cells, m: int, numbers: Numbers, weights: Weights, most: int, least: float) -> float:
    """Return the bound of the lemma for given rates, which need not be sharp below `least`."""
    sizes = np.array([numbers[0], numbers[1] - numbers[0] - 1, m - numbers[1] - 1], dtype=np.float64)
    w = np.array(weights, dtype=np.float64)
    i, j = int(cells.mass.sum(axis=1).argmax()), int(cells.mass.sum(axis=0).argmax())
    usual = np.array([rates.first[i], rates.second[i, j], rates.third[j]])
    slope = _radius(usual, sizes, w, most)
    if slope is None:
        return 1.0
    spread = _spread(_tilted(usual, w, slope), sizes, w) + 1
    usual_size = float(sizes @ np.log1p(usual * np.expm1(-w * slope))) + slope * most
    size = min(max(0.0, -usual_size), -math.log(max(least, _SMALLEST)))  # -log of the tail, roughly
    n = int(max((_ALIASED + size) / slope, 10 * spread)) | 1
    lowest = np.array([rates.first[0], rates.second.min(), rates.third[0]])
    angles, omitted = _nodes(_tilted(lowest, w, slope), sizes, w, n)
    z = np.exp(-slope + 1j * angles)
    value, size = _generating(rates, cells, sizes, w, z)
    terms = value / (1 - z) * np.where(angles > 0, 2.0, 1.0)
    margin = (1e-9 + 4e-16 * m) * np.abs(terms).sum() / n  # bounds rounding errors
    total = float((terms * np.exp(-1j * angles * most)).real.sum()) / n + margin
    total += float(abs(value[0])) * omitted / -math.expm1(-slope)
    log_tail = math.log(total) + size + slope * most
    return min(1.0, max(math.exp(min(log_tail, 0.0)), _SMALLEST) + cells.lost)


def _tilted(rate: Array, weights: Array, slope: float) -> Array:
    """Return the probabilities of ones after each total K has been weighted with exp(-slope K)."""
    tilted = rate * np.exp(-weights * slope)
    return np.asarray(tilted / (1 - rate + tilted))


def _spread(rate: Array, sizes: Array, weights: Array) -> float:
    return math.sqrt(float(sizes * weights**2 @ (rate * (1 - rate))))


def _radius(rate: Array, sizes: Array, weights: Array, most: int) -> float | None:
    """Return -log of the radius; None if K is usually so small that the bound is 1."""
    spread = _spread(rate, sizes, weights) + 1
    if most > sizes * weights @ rate + spread:
        return None
    low, high = 1 / spread, 60.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        if sizes * weights @ _tilted(rate, weights, middle) > most:
            low = middle
        else:
            high = middle
    return low


def _nodes(rate: Array, sizes: Array, weights: Array, n: int) -> tuple[Array, float]:
    """Return the angles of the nodes that are computed, and a bound of the mean weight of the others."""
    speed = sizes * rate * (1 - rate)
    half = n // 2
    # the third level, whose weight is 1, bounds all nodes beyond this one
    cosine = 1 + math.log(_LEAST_SHARE / n) / speed[2] if speed[2] > 0 else -2.0
    last = min(half, int(math.acos(cosine) * n / (2 * math.pi)) + 1) if cosine > -1 else half
    angles = 2 * math.pi / n * np.arange(last + 1)
    share = np.exp(-(speed @ (1 - np.cos(weights[:, None] * angles))))
    wanted = share > _LEAST_SHARE
    wanted[0] = True
    return angles[wanted], (2 * float(share[~wanted].sum()) + 2 * (half - last) * _LEAST_SHARE / n) / n


def _generating(rates: _Rates, cells: _Cells, sizes: Array, w: Array, z: Complex) -> tuple[Complex, float]:
    """Return G at z, divided by a factor that prevents overflow, and the logarithm of this factor.

    z[0] is the radius.
    """

    def one(rate: Array, level: int) -> Complex:
        """Return the factor of one guess with the weight of a level, (rates, z)."""
        return np.asarray(1 + rate[:, None] * (z ** w[level] - 1))

    def power(rate: Array, level: int) -> tuple[Array, Complex]:
        """Return the logarithm of the factor of all guesses of a level at the radius, and its ratios elsewhere."""
        logs = sizes[level] * np.log(one(rate, level))
        return logs[:, 0].real, np.asarray(np.exp(logs - logs[:, :1]))

    log_first, first = power(rates.first, 0)
    log_third, third = power(rates.third, 2)
    step = _FINENESS / math.sqrt(max(sizes[1], 1.0))  # a binomial variable has this spread in units of asin(sqrt(rate))
    place = np.floor(np.arcsin(np.sqrt(rates.second)) / step)
    on_grid, index = np.unique(place, return_inverse=True)
    index = index.reshape(place.shape)
    log_second, second = power(np.sin(on_grid * step) ** 2 * (1 - 1e-12), 1)
    with np.errstate(divide="ignore"):
        logs = np.log(cells.mass) + log_first[:, None] + log_second[index] + log_third
    size = float(logs.max())
    each = second[index]
    each *= np.exp(logs - size)[:, :, None]
    inner = np.einsum("ijs,js->is", each, third * one(rates.at_second, 2))
    return np.asarray(np.einsum("is,is->s", first * one(rates.at_first, 1), inner)), size
