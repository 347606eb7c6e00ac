"""Observed trade-off curve of an attack, and an upper confidence band of the trade-off function."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from dpaudit.inference.fixed.binomial import clopper_pearson_upper
from dpaudit.inference.grid import EDGES
from dpaudit.numerics import Array, bisect, bisect_each, lower_hull, lowest

_STEPS = 60  # number of bisection steps in [0, 1], which give double precision


def anytime_interval(
    successes: int, trials: int, *, significance: float, prior: tuple[float, float] = (0.5, 0.5)
) -> tuple[float, float]:
    """Return a confidence interval of a proportion, valid at any stopping time.

    `prior` (a, b) affects the width only.  The interval is rounded outwards, and (0, 1) if there are no trials.

    **Theorem.**  Let X_1, X_2, ... be independent Bernoulli(p) variables, and let K_n = X_1 + ... + X_n.  Let a, b > 0
    be fixed before X_1 is observed.  Then P[p is not in anytime_interval(K_n, n, prior=(a, b)) for some
    n] <= significance.

    *Proof.*  Let M_n = B(a + K_n, b + n - K_n) / (B(a, b) p^K_n (1 - p)^(n - K_n)), where B is the beta function.  M_n
    is the likelihood of a Beta(a, b) mixture divided by the likelihood of p, so it is a nonnegative martingale with
    M_0 = 1.  The function returns the set of all p with M_n < 1/significance.  This set is an interval because the
    likelihood is log-concave in p.  Ville 1939; Robbins 1970, Ann. Math. Stat. 41.

    Raises:
        ValueError: If an argument is out of its range.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"a count must lie between 0 and the number of outputs, got {successes} of {trials}")
    if not 0 < significance < 1:
        raise ValueError(f"significance must lie in (0, 1), got {significance}")
    if trials == 0:
        return 0.0, 1.0
    failures = trials - successes
    mixture = betaln(prior[0] + successes, prior[1] + failures) - betaln(*prior)
    least = float(mixture) + math.log(significance)

    def likely(p: float) -> bool:
        hit = successes * math.log(p) if successes else 0.0
        return hit + (failures * math.log1p(-p) if failures else 0.0) > least

    def end(outside: float) -> float:
        """Find the end of the interval between the observed rate and `outside`, rounded outwards."""
        return bisect(likely, inside=successes / trials, outside=outside, steps=_STEPS).outside

    return (end(0.0) if successes else 0.0), (end(1.0) if failures else 1.0)


Counts = npt.NDArray[np.int64]
Band = tuple[Array, Array, Array]
"""Observed type I errors, observed type II errors and upper bounds of the trade-off function; shape (points,) each."""

_TILTS = -np.geomspace(0.002, 12.0, 24)  # exponents s of the martingales in `upper_rate`
# Absolute log-likelihood ratios, in nats, at which a band has its thresholds.
_LEVELS = np.array([0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0])
_THRESHOLDS = np.unique(np.searchsorted(EDGES, np.concatenate([-_LEVELS, _LEVELS])))


def upper_rate(successes: npt.ArrayLike, trials: int, *, significance: float) -> Array:
    """Compute an upper confidence bound of a mean success probability, valid at any stopping time.

    `successes`, from 0 to `trials`, may be an array; the bounds have its shape, and are 1 if there are no trials.

    **Theorem.**  Let trial t succeed with probability p_t given the past, where p_t is a function of the past.  Let K_n
    be the number of successes in trials 1, ..., n, and let pbar_n be the mean of p_1, ..., p_n.  Then P[upper_rate(K_n,
    n) < pbar_n for some n] <= significance.

    *Proof.*  For each s < 0, exp(s K_n - sum_t log(1 + p_t (e^s - 1))) is a martingale with mean 1.  The average of
    these martingales over several s is also a martingale with mean 1.  By concavity of the logarithm, each martingale
    is at least exp(s K_n - n log(1 + pbar_n (e^s - 1))), which rises with pbar_n.  Ville's inequality bounds the
    probability that the average of these lower bounds ever reaches 1/significance.  (Method of mixtures: Robbins 1970;
    Howard, Ramdas, McAuliffe & Sekhon 2021, Ann. Stat. 49.)
    """
    numbers = np.asarray(successes, dtype=np.float64)
    if trials == 0:
        return np.ones_like(numbers)
    counts, places = np.unique(numbers, return_inverse=True)
    limit, drop = -math.log(significance), -np.expm1(_TILTS)

    def exceeds(rate: Array) -> npt.NDArray[np.bool_]:
        # The logarithm is finite because `_TILTS` are finite.
        exponent = _TILTS * counts[..., None] - trials * np.log1p(-rate[..., None] * drop)
        largest = exponent.max(axis=-1)
        log_sum = largest + np.log(np.exp(exponent - largest[..., None]).sum(axis=-1))
        return np.asarray(log_sum - math.log(len(_TILTS)) >= limit)

    certain = np.ones_like(counts)
    rates = bisect_each(exceeds, inside=certain, outside=counts / trials, steps=50).inside
    return np.where(exceeds(certain), rates, 1.0)[places].reshape(numbers.shape)


def anytime_band(counts0: Counts, counts1: Counts, *, significance: float) -> Band:
    """Compute the observed trade-off curve and an upper confidence band, valid at any stopping time.

    The counts are (BINS,).  The result is the observed type I errors, falling from 1 to 0, the type II errors, and the
    bounds.

    **Theorem.**  Let T be the trade-off function of the output laws on d0 and d1.  With probability at least
    1 - significance, T(a) <= band(a) for all a in [0, 1], at any stopping time.  For several pairs of datasets, T is
    the largest trade-off function that lies below the curves of all pairs.

    *Proof.*  The score may change over time, but each score depends only on the past.  For a fixed threshold, let abar
    and bbar be the means over time of the type I error and the type II error.  The point (abar, bbar) is an average of
    points on or above T.  Since T is convex, (abar, bbar) also lies on or above T.  The function `upper_rate` bounds
    abar and bbar at each of the fixed thresholds; each bound receives an equal share of the significance.  T is
    nonincreasing, so the point with the two bounds as coordinates lies on or above T.  The points (0, 1) and (1, 0)
    also lie on or above T.  Since T is convex, so does the lower convex hull of all these points.
    """
    return _band(counts0, counts1, upper_rate, significance)


def fixed_band(counts0: Counts, counts1: Counts, *, significance: float) -> Band:
    """Compute a confidence band for a fixed score and number of trials; it is tighter than that of `anytime_band`.

    **Theorem.**  Let T be the trade-off function of the output laws on d0 and d1.  With probability at least 1 -
    significance, T(a) <= band(a) for all a in [0, 1].

    *Proof.*  In the proof for `anytime_band`, replace the bounds of `upper_rate` by the bounds of Clopper & Pearson
    1934.

    The arguments and the result are those of `anytime_band`.
    """

    def upper(successes: Counts, trials: int, *, significance: float) -> Array:
        return np.array([clopper_pearson_upper(int(k), trials, significance=significance) for k in successes])

    return _band(counts0, counts1, upper, significance)


def uncertified_band(counts0: Counts, counts1: Counts) -> Band:
    """Return the observed trade-off curve with the trivial bound 1 - alpha, for audits that certify no band.

    No band is valid if runs depend on each other or times drift, or if a fixed audit did not make all its trials.
    """
    alpha, beta, _ = anytime_band(counts0, counts1, significance=0.5)
    return alpha, beta, 1 - alpha


def _band(counts0: Counts, counts1: Counts, upper: Callable[..., Array], significance: float) -> Band:
    trials0, trials1 = int(counts0.sum()), int(counts1.sum())
    accepted0, accepted1 = np.cumsum(counts0)[:-1], np.cumsum(counts1)[:-1]
    alpha = 1 - accepted0 / max(trials0, 1)
    beta = accepted1 / max(trials1, 1)
    share = significance / (2 * len(_THRESHOLDS))
    alpha_upper = upper(trials0 - accepted0[_THRESHOLDS], trials0, significance=share)
    beta_upper = upper(accepted1[_THRESHOLDS], trials1, significance=share)
    # T is convex, so line segments between points above T lie above T.
    hull = lower_hull(*lowest(np.concatenate([[0.0], alpha_upper, [1.0]]), np.concatenate([[1.0], beta_upper, [0.0]])))
    # Keep one point for each threshold at which a count changes.
    moved = np.concatenate([[True], (np.diff(accepted0) > 0) | (np.diff(accepted1) > 0)])
    alpha, beta = np.concatenate([[1.0], alpha[moved], [0.0]]), np.concatenate([[0.0], beta[moved], [1.0]])
    return alpha, beta, np.interp(alpha, *hull)
