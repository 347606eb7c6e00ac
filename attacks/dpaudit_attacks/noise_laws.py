"""Laws of additive noise with maximum-likelihood estimates, for use by `known_noise`.  This file contains no attack.

A law is fitted to outputs x0 (n0,) of d0 and x1 (n1,) of d1: numbers of order one if `CONTINUOUS`, integers if
`DISCRETE`.  It has a location for each dataset, and one scale for both or one for each.  For vectors (`VECTORS`), each
difference of locations is replaced by its posterior mean: it is 0 with probability 1 - share, otherwise normal; share
and variance are averaged over a grid (empirical Bayes; George & Foster 2000, Biometrika 87, 731-747).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import chdtri, logsumexp, ndtr

from dpaudit.numerics import Array, linear
from dpaudit_attacks.ratios import LEVEL, FittedLaw, RowLaw, independent

_SMALLEST_SCALE = 1e-9  # smallest scale of continuous noise, for numbers of order one
_REACH = 40.0  # outputs further than this number of scales from a location count as this far away
_STEPS = np.linspace(0.05, 0.95, 10)  # shares of a step of the staircase that belong to its upper part
_LOSSES = np.geomspace(0.02, 8.0, 100)  # privacy losses of one step of the staircase, in nats
_SIGMAS = np.linspace(0.1, 1.5, 200)  # scales of discrete Gaussian noise whose variance differs from their square
_LATTICE = np.arange(-20.0, 21.0)
# nats by which noise whose scale depends on the dataset is less likely beforehand; a needless second scale bends ratios
# that are constant or linear, which costs bets on the largest ratios
_TWO_SCALES = 3.0
# Standard errors by which the corners of Laplace ratios are moved apart.  If the estimated corners are too close, bets
# on the largest ratios include outputs with smaller ratios, which costs more than to miss some outputs.
_APART = 0.5


@dataclass(frozen=True, slots=True)
class Fitted:
    """A law that was fitted to the outputs of both datasets."""

    log_likelihood: float  # as in `FittedLaw`, and minus a penalty for the law
    ratio: Callable[[Array], Array]  # maps finite numbers (n,) to log-likelihood ratios (n,) in nats
    cdf: tuple[Callable[[Array], Array], Callable[[Array], Array]]  # cumulative distribution functions for d0 and d1


Parts = tuple[
    Callable[[Array], float],  # location of outputs
    Callable[[Array], float],  # scale of outputs minus their location
    Callable[[Array, float], Array],  # log density of noise with a scale
    Callable[[Array, float], Array],  # cumulative distribution function of noise with a scale
    Callable[[Array, float, float, float], Array],  # ratios of outputs for two locations and one scale
    float,  # standard errors by which the locations are moved apart in these ratios
]


def _located(x0: Array, x1: Array, *, parts: Parts, one_scale: bool) -> Fitted | None:
    """Fit noise around a location for each dataset; return None if a scale is too small."""
    location, scale, density, cdf, of_one_scale, apart = parts
    m0, m1 = float(location(x0)), float(location(x1))
    if one_scale:
        s0 = s1 = scale(np.concatenate([x0 - m0, x1 - m1]))
    else:
        s0, s1 = scale(x0 - m0), scale(x1 - m1)
    if not (min(s0, s1) > _SMALLEST_SCALE and max(s0, s1) < math.inf):
        return None

    away = math.copysign(apart * s0, m1 - m0)

    def ratio(x: Array) -> Array:
        if one_scale:
            return of_one_scale(x, m0 - away / math.sqrt(len(x0)), m1 + away / math.sqrt(len(x1)), s0)
        inside = np.clip(x, min(m0 - _REACH * s0, m1 - _REACH * s1), max(m0 + _REACH * s0, m1 + _REACH * s1))
        return density(inside - m1, s1) - density(inside - m0, s0)

    found = float(density(x0 - m0, s0).sum() + density(x1 - m1, s1).sum())
    parameters = 3 if one_scale else 4
    return Fitted(
        found - parameters / 2 * math.log(len(x0) + len(x1)) - (0.0 if one_scale else _TWO_SCALES),
        ratio,
        (lambda x: cdf(x - m0, s0), lambda x: cdf(x - m1, s1)),
    )


def _linear(x: Array, m0: float, m1: float, s: float) -> Array:
    """Return the ratios of Gaussian noise, which are linear; at most those of outputs 40 scales beyond a location."""
    low, high = min(m0, m1) - _REACH * s, max(m0, m1) + _REACH * s
    ratios: Array = np.minimum(np.maximum(x, low), high)
    ratios -= m0 / 2 + m1 / 2
    ratios *= (m1 - m0) / s**2
    return ratios


def _clipped(x: Array, m0: float, m1: float, s: float) -> Array:
    """Return the ratios of Laplace noise, which are linear between the locations and constant outside."""
    ratios: Array = np.minimum(np.maximum(x, min(m0, m1)), max(m0, m1))
    ratios -= m0 / 2 + m1 / 2
    ratios *= math.copysign(2 / s, m1 - m0)
    return ratios


def _laplace_cdf(rest: Array, s: float) -> Array:
    tail = np.exp(-np.abs(rest) / s) / 2
    return np.where(rest > 0, 1 - tail, tail)


def _decay(rest: Array) -> float:
    """Return the scale -1 / log a of geometric noise, whose probabilities are proportional to a^|k|."""
    distance = float(np.mean(np.abs(rest)))  # equals 2 a / (1 - a^2) at the maximum of the likelihood
    return -1 / math.log((math.hypot(1, distance) - 1) / distance) if distance > 0 else 0.0


def _geometric_cdf(rest: Array, s: float) -> Array:
    tail = np.exp(-(np.floor(np.abs(rest)) + (rest > 0)) / s) / (1 + math.exp(-1 / s))
    return np.where(rest >= 0, 1 - np.exp(-(np.floor(rest) + 1) / s) / (1 + math.exp(-1 / s)), tail)


def _integer_mean(x: Array) -> float:
    """Return the mean, rounded to an integer if its standard error is small beside one."""
    mean = float(np.mean(x))
    return float(round(mean)) if float(np.std(x)) < 0.1 * math.sqrt(len(x)) else mean


_MASSES = np.exp(-0.5 * (_LATTICE / _SIGMAS[:, None]) ** 2)
_VARIANCES = (_MASSES * _LATTICE**2).sum(axis=1) / _MASSES.sum(axis=1)


def _sigma(rest: Array) -> float:
    variance = float(np.mean(rest**2))
    return float(np.interp(variance, _VARIANCES, _SIGMAS)) if 0 < variance < _VARIANCES[-1] else math.sqrt(variance)


def _discrete_gaussian(rest: Array, s: float) -> Array:
    total = float(np.exp(-0.5 * (_LATTICE / s) ** 2).sum()) if s < _SIGMAS[-1] else s * math.sqrt(2 * math.pi)
    return np.asarray(-0.5 * (rest / s) ** 2 - math.log(total))


def _discrete_gaussian_cdf(rest: Array, s: float) -> Array:
    if s >= _SIGMAS[-1]:
        return np.asarray(ndtr((rest + 0.5) / s))
    masses = np.exp(_discrete_gaussian(_LATTICE, s))
    place = np.searchsorted(_LATTICE, np.round(rest), side="right") - 1
    return np.asarray(np.cumsum(masses)[np.clip(place, 0, len(masses) - 1)])


def _uniform(x0: Array, x1: Array, *, gap: float) -> Fitted | None:
    """Fit uniform noise with rare outputs beyond its ends; None if one dataset's outputs include the other's range."""
    sides, signs = ((x0, x1), 1.0) if x0.max() <= x1.max() else ((x1, x0), -1.0)
    low, high = sides
    if not low.min() <= high.min() < low.max():
        return None
    width = max(float(np.ptp(x0)), float(np.ptp(x1))) + gap
    if width <= _SMALLEST_SCALE:
        return None
    left, right = float(high.min()), float(low.max())
    only_low = math.log((np.sum(low < left) + 0.5) / len(low) * (len(high) + 1))
    only_high = math.log((np.sum(high > right) + 0.5) / len(high) * (len(low) + 1))

    def ratio(x: Array) -> Array:
        return signs * np.where(x < left, -max(only_low, 0.0), np.where(x > right, max(only_high, 0.0), 0.0))

    def rising(x: Array) -> Callable[[Array], Array]:
        start = float(x.min())
        return lambda at: np.clip((np.floor(at) - start + 1 if gap else at - start) / width, 0.0, 1.0)

    n = len(x0) + len(x1)
    return Fitted(-n * math.log(width) - 3 * math.log(n), ratio, (rising(x0), rising(x1)))


def _staircase(x0: Array, x1: Array) -> Fitted | None:
    """Fit staircase noise whose steps are as wide as the distance of the medians (Geng & Viswanath 2014)."""
    m0, m1 = float(np.median(x0)), float(np.median(x1))
    width = abs(m1 - m0)
    if width <= 0.05:
        return None
    distances = np.concatenate([np.abs(x0 - m0), np.abs(x1 - m1)]) / width
    if not distances.max() < 1e6:
        return None
    n = len(distances)

    def log_height(share: Array | float, losses: Array | float) -> Array:
        return np.asarray(-np.log(2 * width * (share + 1 / np.expm1(losses))))

    steps = np.array([np.floor(distances - share + 1).sum() for share in _STEPS])
    found = n * log_height(_STEPS[:, None], _LOSSES) - steps[:, None] * _LOSSES
    at, of = np.unravel_index(np.argmax(found), found.shape)
    share, loss = float(_STEPS[at]), float(_LOSSES[of])
    height = float(log_height(share, loss))

    def step(x: Array, m: float) -> Array:
        return np.floor(np.minimum(np.abs(x - m) / width, 1e6) - share + 1)

    def cdf(x: Array, m: float) -> Array:
        distance = np.minimum(np.abs(x - m) / width, 1e6)
        k = np.floor(distance - share + 1)
        inside = np.where(k < 1, distance, share + (1 - np.exp(-loss * (k - 1))) / np.expm1(loss))
        inside = inside + np.where(k < 1, 0.0, (distance - share - k + 1) * np.exp(-loss * k))
        return 0.5 + np.sign(x - m) * inside * math.exp(height) * width

    return Fitted(
        float(found[at, of]) - 2 * math.log(n),
        lambda x: -loss * (step(x, m1) - step(x, m0)),
        (lambda x: cdf(x, m0), lambda x: cdf(x, m1)),
    )


_NORMAL: Parts = (
    lambda x: float(np.mean(x)),
    lambda rest: float(np.sqrt(np.mean(rest**2))),
    lambda rest, s: np.asarray(-0.5 * (rest / s) ** 2 - math.log(s) - 0.5 * math.log(2 * math.pi)),
    lambda rest, s: np.asarray(ndtr(rest / s)),
    _linear,
    0.0,
)
_DOUBLE_EXPONENTIAL: Parts = (
    lambda x: float(np.median(x)),
    lambda rest: float(np.mean(np.abs(rest))),
    lambda rest, s: -np.abs(rest) / s - math.log(2 * s),
    _laplace_cdf,
    _clipped,
    _APART,
)
_INTEGER_NORMAL: Parts = (_integer_mean, _sigma, _discrete_gaussian, _discrete_gaussian_cdf, _linear, 0.0)
_TWO_SIDED_GEOMETRIC: Parts = (
    lambda x: math.floor(np.median(x)),
    _decay,
    lambda rest, s: -np.abs(rest) / s + math.log(math.tanh(0.5 / s)),
    _geometric_cdf,
    _clipped,
    0.0,
)

Fit = Callable[[Array, Array], Fitted | None]

# laws of numbers, of integers and of vectors by name
CONTINUOUS: Mapping[str, Fit] = {
    "gaussian": partial(_located, parts=_NORMAL, one_scale=True),
    "gaussian, two scales": partial(_located, parts=_NORMAL, one_scale=False),
    "laplace": partial(_located, parts=_DOUBLE_EXPONENTIAL, one_scale=True),
    "laplace, two scales": partial(_located, parts=_DOUBLE_EXPONENTIAL, one_scale=False),
    "uniform": partial(_uniform, gap=0.0),
    "staircase": _staircase,
}
DISCRETE: Mapping[str, Fit] = {
    "gaussian": partial(_located, parts=_INTEGER_NORMAL, one_scale=True),
    "gaussian, two scales": partial(_located, parts=_INTEGER_NORMAL, one_scale=False),
    "laplace": partial(_located, parts=_TWO_SIDED_GEOMETRIC, one_scale=True),
    "laplace, two scales": partial(_located, parts=_TWO_SIDED_GEOMETRIC, one_scale=False),
    "uniform": partial(_uniform, gap=1.0),
}


_CELLS = 10  # number of cells of each column in the test of a law


@dataclass(frozen=True, slots=True)
class _Noise:
    location: Callable[[Array], Array]  # of each column of outputs (n, d)
    size: Callable[[Array], Array]  # of outputs minus their locations, elementwise; the scale is a power mean of it
    scale: Callable[[Array], Array]  # mean size -> scale
    lost: int  # degrees of freedom that the two locations of a column take from the mean size
    log_density: Callable[[Array, Array], Array]  # of outputs minus their locations, by scales
    cdf: Callable[[Array], Array]  # cumulative distribution function for scale 1
    ratio: Callable[[Array, Array], Array]  # of outputs minus middles, by differences of locations, for scale 1; (n,)


def _clipped_rows(rest: Array, differences: Array) -> Array:
    half = np.abs(differences) / 2
    return linear(np.clip(rest, -half, half), 2 * np.sign(differences))


_GAUSSIAN = _Noise(
    location=lambda x: np.asarray(x.mean(axis=0)),
    size=lambda rest: rest**2,
    scale=np.sqrt,
    lost=2,
    log_density=lambda rest, s: -0.5 * (rest / s) ** 2 - np.log(s) - 0.5 * math.log(2 * math.pi),
    cdf=ndtr,
    ratio=lambda rest, differences: linear(np.clip(rest, -_REACH, _REACH), differences),
)
_LAPLACE = _Noise(
    location=lambda x: np.asarray(np.median(x, axis=0)),
    size=np.abs,
    scale=lambda size: size,
    lost=1,
    log_density=lambda rest, s: -np.abs(rest) / s - np.log(2 * s),
    cdf=lambda x: _laplace_cdf(x, 1.0),
    ratio=_clipped_rows,
)


def shrunken(z: Array) -> tuple[Array, float]:
    """Return the factors that turn estimated differences into posterior means, and the log evidence for differences.

    Args:
        z: The estimated differences (d,), each with a normal error of variance 1.
    """
    d = len(z)
    shares = np.minimum(1.0, 2.0 ** np.arange(0, math.ceil(math.log2(d)) + 1) / d)
    variances = np.geomspace(0.25, max(4.0, 4 * float(np.max(z**2))), 24)[:, None]
    kept = variances / (1 + variances)
    ratios = 0.5 * z**2 * kept - 0.5 * np.log1p(variances)  # log-likelihoods, relative to no difference at all

    def either(share: float) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp(np.log1p(-share), np.log(share) + ratios))

    found = np.array([either(share).sum(axis=1) for share in shares])
    total = float(logsumexp(found))
    factors = np.zeros(d)
    for share, weights in zip(shares, np.exp(found - total), strict=True):
        if weights.max() > 1e-12:
            factors += weights @ (np.exp(math.log(share) + ratios - either(share)) * kept)
    return factors, total - math.log(found.size)


def _fit_rows(outputs0: Array, outputs1: Array, *, noise: _Noise, one_scale: bool) -> FittedLaw | None:
    """Fit noise to vectors (n0, d) and (n1, d), d >= 2; return None if a column does not vary."""
    n0, n1, d = len(outputs0), len(outputs1), outputs0.shape[1]
    if not 2 <= d <= 256:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        m0, m1 = noise.location(outputs0), noise.location(outputs1)
        rest0, rest1 = outputs0 - m0, outputs1 - m1
        sizes = (noise.size(rest0).sum(axis=0) + noise.size(rest1).sum(axis=0)) / (n0 + n1 - noise.lost)
        scales = noise.scale(np.full(d, sizes.mean()) if one_scale else sizes)
        differences, middles = m1 - m0, m0 / 2 + m1 / 2
        if not (np.isfinite(differences).all() and np.isfinite(scales).all() and np.all(sizes > 0)):
            return None
        found = float(noise.log_density(rest0, scales).sum() + noise.log_density(rest1, scales).sum())
        differences = differences / scales
        differences = differences * shrunken(differences / math.sqrt(1 / n0 + 1 / n1))[0]
    parameters = 2 * d + (1 if one_scale else d)

    def ratio(outputs: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            rest = (outputs - middles) / scales
        if np.isnan(rest).any():
            rest[np.isnan(rest)] = 0.0
        return noise.ratio(rest, differences)

    return FittedLaw(
        found - parameters / 2 * math.log(n0 + n1),
        ratio,
        lambda: _rows_agree((rest0 / scales, rest1 / scales), noise.cdf),
    )


def _rows_agree(sides: tuple[Array, Array], cdf: Callable[[Array], Array]) -> bool:
    """Test scaled noise (n0, d) and (n1, d) by the numbers of outputs in cells of equal probability."""
    statistic, d = 0.0, sides[0].shape[1]
    for rest in sides:
        cells = np.minimum((cdf(rest) * _CELLS).astype(np.intp), _CELLS - 1) + _CELLS * np.arange(d)
        counted, expected = np.bincount(cells.ravel(), minlength=_CELLS * d), len(rest) / _CELLS
        statistic += float(np.sum((counted - expected) ** 2) / expected)
    tail0, tail1 = (rest[-2_000:] for rest in sides)
    return statistic <= float(chdtri(2 * (_CELLS - 1) * d, LEVEL)) and independent(tail0, tail1)


VECTORS: Mapping[str, RowLaw] = {
    "gaussian": partial(_fit_rows, noise=_GAUSSIAN, one_scale=True),
    "gaussian, own scales": partial(_fit_rows, noise=_GAUSSIAN, one_scale=False),
    "laplace": partial(_fit_rows, noise=_LAPLACE, one_scale=True),
    "laplace, own scales": partial(_fit_rows, noise=_LAPLACE, one_scale=False),
}
