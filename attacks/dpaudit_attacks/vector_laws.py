"""Vectors with independent additive noise, for use by `known_noise`.  This file contains no attack.

The noise of all coordinates is Gaussian or Laplace, with one scale for all coordinates or one for each.  Coordinate j
has the location m0_j under d0 and m1_j under d1.  The ratio of an output is the sum of the ratios of its coordinates.

Often the locations differ in few coordinates.  So each difference is replaced by its posterior mean under a prior: it
is 0 with probability 1 - share, and otherwise normal around 0.  Share and variance are averaged over a grid, weighted
by the likelihood of all differences (empirical Bayes; George & Foster 2000, Biometrika 87, 731-747).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import chdtri, logsumexp, ndtr, ndtri

from dpaudit.numerics import Array, linear
from dpaudit_attacks.noise_laws import laplace_cdf


@dataclass(frozen=True, slots=True)
class FittedLaw:
    """A law that was fitted to the outputs of both datasets."""

    log_likelihood: float  # of all outputs, in nats, minus a penalty for what was estimated (Schwarz 1978)
    ratio: Callable[[Array], Array]  # maps outputs (n, d) to log-likelihood ratios (n,) in nats
    agrees: Callable[[], bool]  # tests the law by the outputs to which it was fitted


RowLaw = Callable[[Array, Array], FittedLaw | None]
"""A function that fits a law to outputs (n0, d) of d0 and (n1, d) of d1; None if they cannot come from such a law."""

_LEVEL = 1e-4  # probability that a test rejects a law that is right


def independent(rest0: Array, rest1: Array) -> bool:
    """Test by correlations whether the columns of outputs minus their locations, (n0, d) and (n1, d), are independent.

    One test uses the sum of the squared correlations of all pairs of columns (chi-square), and the other uses the
    largest correlation (Fisher 1915, with the correction of Bonferroni).
    """
    rest = np.concatenate([rest0[:, :_MAX_COLUMNS], rest1[:, :_MAX_COLUMNS]])
    n, d = rest.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = rest / np.sqrt(np.mean(rest**2, axis=0))
    correlations = np.nan_to_num(rest.T @ rest / n)[np.triu_indices(d, 1)]
    largest = math.atanh(min(float(np.max(np.abs(correlations), initial=0.0)), 1 - 1e-12))
    return bool(
        n * float(correlations @ correlations) <= chdtri(max(1, len(correlations)), _LEVEL)
        and largest * math.sqrt(max(n - 5, 1)) <= -ndtri(_LEVEL / 2 / max(1, len(correlations)))
    )


_MAX_COLUMNS = 256  # of vectors that are fitted, and that are tested for independence
_SAMPLE = 2_000  # number of outputs of each dataset in the test of independence
_CELLS = 10  # number of cells of each column in the test of a law
_REACH = 40.0  # outputs further than this number of scales from a location count as this far away
_VARIANCES = 24  # number of variances of the prior


@dataclass(frozen=True, slots=True)
class _Noise:
    location: Callable[[Array], Array]  # of each column of outputs (n, d)
    size: Callable[[Array], Array]  # of outputs minus their locations, elementwise; the scale is a power mean of it
    scale: Callable[[Array], Array]  # mean size -> scale
    lost: int  # degrees of freedom that the two locations of a column take from the mean size
    log_density: Callable[[Array, Array], Array]  # of outputs minus their locations, by scales
    cdf: Callable[[Array], Array]  # cumulative distribution function for scale 1
    ratio: Callable[[Array, Array], Array]  # of outputs minus middles, by differences of locations, for scale 1; (n,)


def _linear(rest: Array, differences: Array) -> Array:
    return linear(np.clip(rest, -_REACH, _REACH), differences)


def _clipped(rest: Array, differences: Array) -> Array:
    half = np.abs(differences) / 2
    return linear(np.clip(rest, -half, half), 2 * np.sign(differences))


_GAUSSIAN = _Noise(
    location=lambda x: np.asarray(x.mean(axis=0)),
    size=lambda rest: rest**2,
    scale=np.sqrt,
    lost=2,
    log_density=lambda rest, s: -0.5 * (rest / s) ** 2 - np.log(s) - 0.5 * math.log(2 * math.pi),
    cdf=ndtr,
    ratio=_linear,
)
_LAPLACE = _Noise(
    location=lambda x: np.asarray(np.median(x, axis=0)),
    size=np.abs,
    scale=lambda size: size,
    lost=1,
    log_density=lambda rest, s: -np.abs(rest) / s - np.log(2 * s),
    cdf=lambda x: laplace_cdf(x, 1.0),
    ratio=_clipped,
)


def shrunken(z: Array) -> Array:
    """Return the factors by which estimated differences are multiplied, so that they become posterior means."""
    d = len(z)
    shares = np.minimum(1.0, 2.0 ** np.arange(0, math.ceil(math.log2(d)) + 1) / d)[:, None, None]
    variances = np.geomspace(0.25, max(4.0, 4 * float(np.max(z**2))), _VARIANCES)[:, None]
    with np.errstate(divide="ignore"):
        differ = np.log(shares) - 0.5 * np.log1p(variances) + 0.5 * z**2 * variances / (1 + variances)
        either = np.logaddexp(np.log1p(-shares), differ)  # log-likelihoods, relative to no difference at all
    weights = either.sum(axis=2)
    weights = np.exp(weights - logsumexp(weights))
    factors = np.exp(differ - either) * variances / (1 + variances)
    return np.asarray(np.einsum("sv,svj->j", weights, factors))


def _fitted(outputs0: Array, outputs1: Array, *, noise: _Noise, one_scale: bool) -> FittedLaw | None:
    """Fit noise to vectors (n0, d) and (n1, d), d >= 2; return None if a column does not vary."""
    n0, n1, d = len(outputs0), len(outputs1), outputs0.shape[1]
    if not 2 <= d <= _MAX_COLUMNS:
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
        differences = differences * shrunken(differences / math.sqrt(1 / n0 + 1 / n1))
    parameters = 2 * d + (1 if one_scale else d)

    def ratio(outputs: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            rest = (outputs - middles) / scales
        if np.isnan(rest).any():
            rest[np.isnan(rest)] = 0.0
        return noise.ratio(rest, differences)

    def agrees() -> bool:
        return _agrees((rest0 / scales, rest1 / scales), noise.cdf)

    return FittedLaw(found - parameters / 2 * math.log(n0 + n1), ratio, agrees)


def _agrees(sides: tuple[Array, Array], cdf: Callable[[Array], Array]) -> bool:
    """Test scaled noise (n0, d) and (n1, d) by the numbers of outputs in cells of equal probability."""
    statistic, d = 0.0, sides[0].shape[1]
    for rest in sides:
        cells = np.minimum((cdf(rest) * _CELLS).astype(np.intp), _CELLS - 1) + _CELLS * np.arange(d)
        counted, expected = np.bincount(cells.ravel(), minlength=_CELLS * d), len(rest) / _CELLS
        statistic += float(np.sum((counted - expected) ** 2) / expected)
    return statistic <= float(chdtri(2 * (_CELLS - 1) * d, _LEVEL)) and independent(
        *(rest[-_SAMPLE:] for rest in sides)
    )


VECTORS: Mapping[str, RowLaw] = {
    "gaussian": partial(_fitted, noise=_GAUSSIAN, one_scale=True),
    "gaussian, own scales": partial(_fitted, noise=_GAUSSIAN, one_scale=False),
    "laplace": partial(_fitted, noise=_LAPLACE, one_scale=True),
    "laplace, own scales": partial(_fitted, noise=_LAPLACE, one_scale=False),
}
"""Laws of continuous noise on vectors by name."""
