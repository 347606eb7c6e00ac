"""Fits of noise on vectors, against plain second versions and exact ratios."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dpaudit.numerics import Array
from dpaudit_attacks.known_noise import KnownNoise
from dpaudit_attacks.noise_laws import VECTORS, shrunken
from dpaudit_attacks.ratios import FittedLaw

Rng = np.random.Generator
ONE, ALL = np.r_[1.2, np.zeros(9)], np.full(10, 1.2 / np.sqrt(10))

Draw = Callable[[Rng, int], Array]
Ratio = Callable[[Array, Array], Array]

# name of the law -> noise of n vectors of ten numbers, and the log-likelihood ratio of given locations to 0
LAWS: dict[str, tuple[Draw, Ratio]] = {
    "gaussian": (lambda rng, n: rng.normal(0, 1, (n, 10)), lambda x, m: (x - m / 2) @ m),
    "laplace": (lambda rng, n: rng.laplace(0, 1, (n, 10)), lambda x, m: (np.abs(x) - np.abs(x - m)).sum(axis=1)),
}


def fitted(name: str, outputs0: Array, outputs1: Array) -> FittedLaw:
    law = VECTORS[name](outputs0, outputs1)
    assert law is not None
    return law


@pytest.mark.parametrize("own", [False, True])
def test_likelihoods_are_those_of_a_plain_second_version(own: bool) -> None:
    """scipy.stats at estimates from the textbook: unbiased variances, and mean distances from the medians."""
    rng = np.random.default_rng(1)
    x0, x1 = rng.normal(0, 1, (31, 3)), rng.normal(0.5, 1, (25, 3))
    plain0, plain1 = 0.0, 0.0
    squares = [((x0[:, j] - x0[:, j].mean()) ** 2).sum() + ((x1[:, j] - x1[:, j].mean()) ** 2).sum() for j in range(3)]
    sizes = [np.abs(x[:, j] - np.median(x[:, j])).sum() for j in range(3) for x in (x0, x1)]
    for j in range(3):
        s = np.sqrt((squares[j] if own else sum(squares) / 3) / 54)
        b = (sizes[2 * j] + sizes[2 * j + 1] if own else sum(sizes) / 3) / 55
        for x in (x0[:, j], x1[:, j]):
            plain0 += stats.norm(x.mean(), s).logpdf(x).sum()
            plain1 += stats.laplace(np.median(x), b).logpdf(x).sum()
    penalty = (9 if own else 7) / 2 * np.log(56)
    words = ", own scales" if own else ""
    assert fitted("gaussian" + words, x0, x1).log_likelihood == pytest.approx(plain0 - penalty)
    assert fitted("laplace" + words, x0, x1).log_likelihood == pytest.approx(plain1 - penalty)


def test_shrunken_differences_are_posterior_means() -> None:
    """Second version: the posterior mean by a sum over a fine grid of differences, for each prior in the grid."""
    z = np.array([0.3, -4.0, 1.0, 0.0])
    at = np.linspace(-30, 30, 6_001)
    total, means = 0.0, np.zeros(4)
    for share in (0.25, 0.5, 1.0):
        for variance in np.geomspace(0.25, 64.0, 24):
            slab = stats.norm(0, np.sqrt(variance)).pdf(at) * 0.01
            weight, found = 1.0, []
            for one in z:
                likelihood = stats.norm(at, 1).pdf(one)
                either = (1 - share) * stats.norm.pdf(one) + share * (slab @ likelihood)
                found.append(share * (slab @ (likelihood * at)) / either)
                weight *= either
            total += weight
            means += weight * np.array(found)
    assert shrunken(z) * z == pytest.approx(means / total, abs=1e-6)


@pytest.mark.parametrize("locations", [ONE, ALL], ids=["one", "all"])
@pytest.mark.parametrize("name", LAWS)
def test_ratios_are_exact_within_the_sampling_error(name: str, locations: Array) -> None:
    """Fails by chance < 1 in 10**6: six standard errors of the differences and of the middles.

    The error of a ratio is about sum_j (error of the difference j) times (distance of x_j from the middle j) plus
    sum_j (difference j) times (error of the middle j).
    """
    draw, ratio = LAWS[name]
    rng, n = np.random.default_rng(2), 20_000
    law = fitted(name, draw(rng, n), draw(rng, n) + locations)
    fresh = draw(rng, 200)
    error = np.sqrt(2 / n) * np.linalg.norm(fresh - locations / 2, axis=1) + np.linalg.norm(locations) / np.sqrt(2 * n)
    error += 2 * np.abs(ratio(fresh, locations)) / np.sqrt(20 * n)  # of the scale
    assert np.all(np.abs(law.ratio(fresh) - ratio(fresh, locations)) < 6 * error)
    assert law.agrees()


@pytest.mark.parametrize(("locations", "least"), [(ONE, 0.8), (ALL, 0.5)], ids=["one", "all"])
@pytest.mark.parametrize("name", LAWS)
def test_fifty_outputs_suffice(name: str, locations: Array, least: float) -> None:
    """Fails by chance < 1 in 10**6: a mean over 20 fits, and the margin is at least six standard errors.

    The share is that of the exact ratio's gain in log-loss over guessing.
    """
    draw, ratio = LAWS[name]
    shares = []
    for seed in range(20):
        rng = np.random.default_rng([3, seed])
        scorer = KnownNoise().fit(draw(rng, 50), draw(rng, 50) + locations, rng)
        fresh0, fresh1 = draw(rng, 2000), draw(rng, 2000) + locations
        got, best = (
            2 * np.log(2) - np.logaddexp(0, s0).mean() - np.logaddexp(0, -s1).mean()
            for s0, s1 in (
                (scorer(fresh0), scorer(fresh1)),
                (ratio(fresh0, locations), ratio(fresh1, locations)),
            )
        )
        shares.append(got / best)
    assert np.mean(shares) > least


@pytest.mark.parametrize("name", LAWS)
def test_scales_of_coordinates_may_differ(name: str) -> None:
    """The seed is fixed.  Units of one coordinate change no score, because its scale is estimated."""
    draw, _ = LAWS[name]
    rng, units = np.random.default_rng(4), np.geomspace(1e-6, 1e6, 10)
    x0, x1 = draw(rng, 300), draw(rng, 300) + ONE
    assert KnownNoise().suits(units * x0, units * x1)
    own = fitted(f"{name}, own scales", x0, x1).ratio(x0)
    assert KnownNoise().fit(units * x0, units * x1, rng)(units * x0) == pytest.approx(own, abs=1e-6)


@pytest.mark.parametrize("name", ["clamped", "correlated", "constant", "scale", "missing", "few outputs", "same noise"])
def test_outputs_that_no_law_fits_do_not_suit(name: str) -> None:
    """The seed is fixed."""
    rng = np.random.default_rng(5)
    x0, x1 = (rng.normal(0, 1, (500, 10)) + m for m in (0 * ONE, ONE))
    assert KnownNoise().suits(x0, x1)
    match name:
        case "clamped":
            x0, x1 = np.clip(x0, -1, 1), np.clip(x1, -1, 1)
        case "correlated":
            x0, x1 = (x + 0.5 * x[:, :1] for x in (x0, x1))
        case "constant":
            x0[:, 3] = x1[:, 3] = 0.5
        case "scale":
            x1[:, 3] *= 2
        case "missing":
            x0[7, 2] = np.nan
        case "same noise":  # twelve outputs suffice
            x0, x1 = (np.repeat(x[:12, :5], 2, axis=1) for x in (x0, x1))
        case "few outputs":
            x0, x1 = x0[:9], x1[:9]
    assert not KnownNoise().suits(x0, x1)


@pytest.mark.parametrize("name", LAWS)
def test_scores_of_any_output_are_numbers(name: str) -> None:
    """The seed is fixed."""
    draw, _ = LAWS[name]
    rng = np.random.default_rng(6)
    scorer = fitted(name, draw(rng, 60), draw(rng, 60) + ONE).ratio
    strange = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 5e-324])
    assert not np.isnan(scorer(np.repeat(strange[:, None], 10, axis=1))).any()
    assert scorer(np.full((1, 10), np.nan)) == pytest.approx([0.0])
