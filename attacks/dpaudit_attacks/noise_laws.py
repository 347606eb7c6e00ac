"""Laws of additive noise with maximum-likelihood estimates, for use by `known_noise`.  This file contains no attack.

A law is fitted to outputs x0 of d0, (n0,), and x1 of d1, (n1,).  `CONTINUOUS` laws expect numbers of order one, and
`DISCRETE` laws expect integers.  A law has one location for each dataset, and one scale for both or one for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtr

from dpaudit.numerics import Array

Function = Callable[[Array], Array]
_LEAST = 1e-9  # smallest scale of continuous noise, for numbers of order one
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

    # of all outputs, in nats, minus half of log n for each parameter (Schwarz 1978), minus a penalty for the law
    log_likelihood: float
    ratio: Function  # maps finite numbers (n,) to log-likelihood ratios (n,) in nats
    cdf: tuple[Function, Function]  # cumulative distribution functions under d0 and under d1


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
    if not (min(s0, s1) > _LEAST and max(s0, s1) < math.inf):
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


def _gaussian(rest: Array, s: float) -> Array:
    return np.asarray(-0.5 * (rest / s) ** 2 - math.log(s) - 0.5 * math.log(2 * math.pi))


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


def _laplace(rest: Array, s: float) -> Array:
    return -np.abs(rest) / s - math.log(2 * s)


def laplace_cdf(rest: Array, s: float) -> Array:
    tail = np.exp(-np.abs(rest) / s) / 2
    return np.where(rest > 0, 1 - tail, tail)


def _decay(rest: Array) -> float:
    """Return the scale -1 / log a of geometric noise, whose probabilities are proportional to a^|k|."""
    distance = float(np.mean(np.abs(rest)))  # equals 2 a / (1 - a^2) at the maximum of the likelihood
    if distance <= 0:
        return 0.0
    return -1 / math.log((math.hypot(1, distance) - 1) / distance)


def _geometric(rest: Array, s: float) -> Array:
    return -np.abs(rest) / s + math.log(math.tanh(0.5 / s))


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
    if variance <= 0:
        return 0.0
    return float(np.interp(variance, _VARIANCES, _SIGMAS)) if variance < _VARIANCES[-1] else math.sqrt(variance)


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
    """Fit uniform noise; return None if the outputs of one dataset include the range of the other.

    Outputs beyond the range of a dataset are not impossible under this dataset: one more output lies beyond a given end
    of n outputs with probability 1 / (n + 1).
    """
    sides, signs = ((x0, x1), 1.0) if x0.max() <= x1.max() else ((x1, x0), -1.0)
    low, high = sides
    if not low.min() <= high.min() < low.max():
        return None
    width = max(float(np.ptp(x0)), float(np.ptp(x1))) + gap
    if width <= _LEAST:
        return None
    left, right = float(high.min()), float(low.max())
    only_low = math.log((np.sum(low < left) + 0.5) / len(low) * (len(high) + 1))
    only_high = math.log((np.sum(high > right) + 0.5) / len(high) * (len(low) + 1))

    def ratio(x: Array) -> Array:
        return signs * np.where(x < left, -max(only_low, 0.0), np.where(x > right, max(only_high, 0.0), 0.0))

    def rising(x: Array) -> Function:
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
    _gaussian,
    lambda rest, s: np.asarray(ndtr(rest / s)),
    _linear,
    0.0,
)
_DOUBLE_EXPONENTIAL: Parts = (
    lambda x: float(np.median(x)),
    lambda rest: float(np.mean(np.abs(rest))),
    _laplace,
    laplace_cdf,
    _clipped,
    _APART,
)
_INTEGER_NORMAL: Parts = (_integer_mean, _sigma, _discrete_gaussian, _discrete_gaussian_cdf, _linear, 0.0)
_TWO_SIDED_GEOMETRIC: Parts = (lambda x: math.floor(np.median(x)), _decay, _geometric, _geometric_cdf, _clipped, 0.0)

Fit = Callable[[Array, Array], Fitted | None]

CONTINUOUS: Mapping[str, Fit] = {
    "gaussian": partial(_located, parts=_NORMAL, one_scale=True),
    "gaussian, two scales": partial(_located, parts=_NORMAL, one_scale=False),
    "laplace": partial(_located, parts=_DOUBLE_EXPONENTIAL, one_scale=True),
    "laplace, two scales": partial(_located, parts=_DOUBLE_EXPONENTIAL, one_scale=False),
    "uniform": partial(_uniform, gap=0.0),
    "staircase": _staircase,
}
"""Laws of continuous noise by name."""

DISCRETE: Mapping[str, Fit] = {
    "gaussian": partial(_located, parts=_INTEGER_NORMAL, one_scale=True),
    "gaussian, two scales": partial(_located, parts=_INTEGER_NORMAL, one_scale=False),
    "laplace": partial(_located, parts=_TWO_SIDED_GEOMETRIC, one_scale=True),
    "laplace, two scales": partial(_located, parts=_TWO_SIDED_GEOMETRIC, one_scale=False),
    "uniform": partial(_uniform, gap=1.0),
}
"""Laws of noise on the integers by name."""
