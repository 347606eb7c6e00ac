"""The attack's trade-off curve with an upper confidence band."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpaudit.inference.fixed.clopper_pearson import clopper_pearson_upper
from dpaudit.inference.grid import EDGES
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect_each
from dpaudit.numerics.hulls import lower_hull, lowest

Counts = npt.NDArray[np.int64]
Band = tuple[Array, Array, Array]
"""Observed alpha and beta, and the upper bound of T at these alphas."""

_TILTS = -np.geomspace(0.002, 12.0, 24)
_LEVELS = np.array([0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0])  # nats, both signs
_THRESHOLDS = np.unique(np.searchsorted(EDGES, np.concatenate([-_LEVELS, _LEVELS])))


def upper_rate(successes: npt.ArrayLike, trials: int, *, significance: float) -> Array:
    """Upper confidence bound of an average success probability, valid at any stopping time; elementwise.

    Let K_n = sum of Bernoulli(p_t), t <= n, with each p_t fixed by the past, and pbar_n the mean of the p_t.  Then
    P[there is n: upper_rate(K_n, n) < pbar_n] <= significance.

    *Proof.*  For each tilt s < 0, exp(s K_n - sum_t log(1 + p_t (e^s - 1))) is a martingale with mean 1, and so is an
    average over tilts; by concavity of the logarithm it is at least exp(s K_n - n log(1 + pbar_n (e^s - 1))).  Ville's
    inequality bounds the chance that the average of these ever reaches 1/significance; each rises with pbar_n.
    (Method of mixtures: Robbins 1970; Howard, Ramdas, McAuliffe & Sekhon 2021, Ann. Stat. 49.)
    """
    given = np.asarray(successes, dtype=np.float64)
    if trials == 0:
        return np.ones_like(given)
    counts, places = np.unique(given, return_inverse=True)
    limit, drop = -math.log(significance), -np.expm1(_TILTS)

    def exceeds(rate: Array) -> npt.NDArray[np.bool_]:
        exponent = _TILTS * counts[..., None] - trials * np.log1p(
            -rate[..., None] * drop
        )  # no tilt is infinite: > log 0
        largest = exponent.max(axis=-1)
        log_sum = largest + np.log(np.exp(exponent - largest[..., None]).sum(axis=-1))
        reached: npt.NDArray[np.bool_] = log_sum - math.log(len(_TILTS)) >= limit
        return reached

    found = bisect_each(exceeds, inside=np.ones_like(counts), outside=counts / trials, steps=50).inside
    rates = np.where(exceeds(np.ones_like(counts)), found, 1.0)
    return rates[places].reshape(given.shape)


def anytime_band(counts0: Counts, counts1: Counts, *, significance: float) -> Band:
    """Observed (alpha, beta) at every threshold, and an upper band on T(P, Q) at the same alphas.

    `counts0`, `counts1`: (BINS,), as in `strategy.Strategy.log_e`.  Arrays run from alpha = 1 to alpha = 0.

    **Theorem.**  With probability 1 - significance, at any stopping time, T(P, Q)(a) <= band(a) for all a in [0, 1].

    With several pairs T is the largest trade-off function that lies below the curves of all of them.

    *Proof.*  The scores change with time, but by the past only: with abar, bbar the mean errors at a threshold, the
    point (abar, bbar) is an average of points on or above T, and T is convex.  `upper_rate` bounds both means at
    each of the fixed thresholds, significance split evenly; T is nonincreasing, so (a_U, b_U) lies above T; (0, 1)
    and (1, 0) do too, and hence the lower convex hull of them all.
    """
    return _band(counts0, counts1, upper_rate, significance)


def fixed_band(counts0: Counts, counts1: Counts, *, significance: float) -> Band:
    """As `anytime_band`, for one frozen score and a number of trials that was fixed beforehand, and tighter.

    **Theorem.**  With probability 1 - significance, T(P, Q)(a) <= band(a) for all a in [0, 1].

    *Proof.*  As there, with the bounds of Clopper & Pearson 1934 at each of the fixed thresholds.
    """
    return _band(counts0, counts1, _clopper_pearson, significance)


def _clopper_pearson(successes: Counts, trials: int, *, significance: float) -> Array:
    return np.array([clopper_pearson_upper(int(k), trials, significance=significance) for k in successes])


def _band(counts0: Counts, counts1: Counts, upper: Callable[..., Array], significance: float) -> Band:
    trials0, trials1 = int(counts0.sum()), int(counts1.sum())
    accepted0, accepted1 = np.cumsum(counts0)[:-1], np.cumsum(counts1)[:-1]
    alpha = 1 - accepted0 / max(trials0, 1)
    beta = accepted1 / max(trials1, 1)
    share = significance / (2 * len(_THRESHOLDS))
    alpha_upper = upper(trials0 - accepted0[_THRESHOLDS], trials0, significance=share)
    beta_upper = upper(accepted1[_THRESHOLDS], trials1, significance=share)
    # whatever points are kept: the chords between points above T, which is convex, lie above it
    hull = lower_hull(*lowest(np.concatenate([[0.0], alpha_upper, [1.0]]), np.concatenate([[1.0], beta_upper, [0.0]])))
    # one point per distinct threshold
    moved = np.concatenate([[True], (np.diff(accepted0) > 0) | (np.diff(accepted1) > 0)])
    alpha, beta = np.concatenate([[1.0], alpha[moved], [0.0]]), np.concatenate([[0.0], beta[moved], [1.0]])
    return alpha, beta, np.interp(alpha, *hull)
