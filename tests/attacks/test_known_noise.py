"""The attack that fits known laws of noise, against plain second versions and exact ratios."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.numerics import Array
from dpaudit_attacks.known_noise import KnownNoise
from dpaudit_attacks.noise_laws import CONTINUOUS, DISCRETE, VECTORS, Fitted, shrunken
from dpaudit_attacks.ratios import FittedLaw

Draw = Callable[[np.random.Generator, int, float], Array]


def staircase(rng: np.random.Generator, n: int, location: float) -> Array:
    """Staircase noise with loss 1, steps of width 1 and share 0.4 (Geng & Viswanath 2014, Algorithm 1)."""
    first = 0.4 / (0.4 + 0.6 * np.exp(-1))
    step, sign, place = rng.geometric(1 - np.exp(-1), n) - 1, rng.choice([-1, 1], n), rng.random(n)
    inside = np.where(rng.random(n) < first, 0.4 * place, 0.4 + 0.6 * place)
    return np.asarray(location + sign * (step + inside), dtype=np.float64)


def discrete_gaussian(rng: np.random.Generator, n: int, location: float) -> Array:
    values = np.arange(-60, 61)
    masses = np.exp(-0.5 * (values / 0.7) ** 2)
    return location + rng.choice(values, n, p=masses / masses.sum()).astype(float)


def geometric(rng: np.random.Generator, n: int, location: float) -> Array:
    return np.asarray(location + rng.geometric(0.5, n) - rng.geometric(0.5, n), dtype=np.float64)


# kind of law, its name, outputs around a location, and the log-likelihood ratio of location 1 to location 0
LAWS: list[tuple[str, str, Draw, Callable[[Array], Array]]] = [
    ("continuous", "gaussian", lambda rng, n, m: rng.normal(m, 1.5, n), lambda x: (x - 0.5) / 1.5**2),
    ("continuous", "laplace", lambda rng, n, m: rng.laplace(m, 0.8, n), lambda x: (np.abs(x) - np.abs(x - 1)) / 0.8),
    ("continuous", "staircase", staircase, lambda x: np.where(x < 0.4, -1.0, np.where(x > 0.6, 1.0, 0.0))),
    ("discrete", "gaussian", discrete_gaussian, lambda x: (x - 0.5) / 0.7**2),
    ("discrete", "laplace", geometric, lambda x: np.log(2) * (np.abs(x) - np.abs(x - 1))),
]


def samples(draw: Draw, n: int, shift: float = 1.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(7)
    return draw(rng, n, 0.0), draw(rng, n, shift)


def scorer_of(x0: Array, x1: Array) -> Callable[[Array], Array]:
    scorer = KnownNoise().fit(x0[:, None], x1[:, None], np.random.default_rng(0))
    return lambda x: scorer(x[:, None])


@pytest.mark.parametrize(("kind", "name", "draw", "exact"), LAWS)
def test_the_law_is_recognised_and_its_ratio_is_right(kind: str, name: str, draw: Draw, exact: Any) -> None:
    """The seed is fixed.  The tolerance is about four standard errors of the estimated parameters."""
    x0, x1 = samples(draw, 10_000)
    assert KnownNoise().suits(x0[:, None], x1[:, None])
    typical = x0[:1000][np.abs(x0[:1000]) < 2.5]  # far from a centre, errors of the scale are multiplied
    typical = typical[
        np.min(np.abs(typical[:, None] - [0.4, 0.6]), axis=1) > 0.1
    ]  # the staircase is estimated on a grid
    assert np.max(np.abs(scorer_of(x0, x1)(typical) - exact(typical))) < 0.12


@pytest.mark.parametrize(("kind", "name", "draw", "exact"), LAWS)
def test_fifty_outputs_suffice(kind: str, name: str, draw: Draw, exact: Any) -> None:
    """The seed is fixed.  A Gaussian score from 50 outputs has a standard error of about 0.2 sd nats."""
    x0, x1 = samples(draw, 50)
    fresh = samples(draw, 2000)[1]
    assert np.corrcoef(scorer_of(x0, x1)(fresh), exact(fresh))[0, 1] > 0.9


@pytest.mark.parametrize(("kind", "name", "draw", "exact"), LAWS)
def test_distribution_functions_agree_with_frequencies(kind: str, name: str, draw: Draw, exact: Any) -> None:
    """Fails by chance < 1 in 10**6: Kolmogorov-Smirnov at n = 10,000, and estimated parameters bring the law closer."""
    x0, x1 = samples(draw, 10_000)
    law = fitted(kind, name, x0, x1)
    for x, cdf in zip((x0, x1), law.cdf, strict=True):
        at = np.unique(x)[:: 1 if kind == "discrete" else 100]
        assert np.max(np.abs(cdf(at) - np.mean(x[:, None] <= at, axis=0))) < 0.028


def fitted(kind: str, name: str, x0: Array, x1: Array) -> Fitted:
    law = (DISCRETE if kind == "discrete" else CONTINUOUS)[name](x0, x1)
    assert law is not None
    return law


def test_likelihoods_are_those_of_a_plain_second_version() -> None:
    """scipy.stats at estimates from the textbook, minus half of log n for each of three parameters."""
    x0, x1 = samples(lambda rng, n, m: rng.laplace(m, 1.0, n), 101)
    m0, m1 = np.median(x0), np.median(x1)
    b = (np.abs(x0 - m0).sum() + np.abs(x1 - m1).sum()) / 202
    plain = stats.laplace(m0, b).logpdf(x0).sum() + stats.laplace(m1, b).logpdf(x1).sum()
    assert fitted("continuous", "laplace", x0, x1).log_likelihood == pytest.approx(plain - 1.5 * np.log(202))
    s = np.sqrt((np.var(x0) + np.var(x1)) / 2)
    plain = stats.norm(x0.mean(), s).logpdf(x0).sum() + stats.norm(x1.mean(), s).logpdf(x1).sum()
    assert fitted("continuous", "gaussian", x0, x1).log_likelihood == pytest.approx(plain - 1.5 * np.log(202))
    k0, k1 = np.round(3 * x0), np.round(3 * x1)
    m0, m1 = np.floor(np.median(k0)), np.floor(np.median(k1))
    losses = np.linspace(0.05, 3, 20_001)
    distance = np.abs(k0 - m0).sum() + np.abs(k1 - m1).sum()
    plain = np.max(202 * np.log(np.tanh(losses / 2)) - losses * distance)  # stats.dlaplace has this mass function
    assert fitted("discrete", "laplace", k0, k1).log_likelihood == pytest.approx(plain - 1.5 * np.log(202), abs=1e-5)


def test_uniform_noise_gives_finite_ratios_that_grow_with_the_number_of_outputs() -> None:
    """The seed is fixed.  With n outputs, one more is beyond the largest with probability 1 / (n + 1)."""
    for n in (100, 10_000):
        x0, x1 = samples(lambda rng, n, m: rng.uniform(m, m + 1, n), n, 0.2)
        assert KnownNoise().suits(x0[:, None], x1[:, None])
        low, middle, high = scorer_of(x0, x1)(np.array([0.1, 0.5, 1.15]))
        assert middle == 0
        assert -low == pytest.approx(np.log(0.2 * n), abs=0.7)
        assert high == pytest.approx(np.log(0.2 * n), abs=0.7)


@pytest.mark.parametrize("name", ["clamped", "leak", "bits", "constant", "skewed", "missing"])
def test_outputs_that_no_law_fits_do_not_suit(name: str) -> None:
    """The seed is fixed."""
    rng = np.random.default_rng(3)
    x0, x1 = rng.normal(0, 1, 2000), rng.normal(0.5, 1, 2000)
    match name:
        case "clamped":
            x0, x1 = np.clip(x0, -1, 1), np.clip(x1, -1, 1)
        case "leak":
            x1 = np.where(rng.random(2000) < 0.1, 5.0, x1)
        case "bits":
            x0, x1 = (x0 > 0).astype(float), (x1 > 0).astype(float)
        case "constant":
            x0, x1 = np.zeros(2000), np.ones(2000)
        case "skewed":
            x0, x1 = np.exp(x0), np.exp(x1)
        case "missing":
            x0[7] = np.nan
    assert not KnownNoise().suits(x0[:, None], x1[:, None])


def test_noise_of_two_scales_has_a_ratio_even_between_equal_locations() -> None:
    """The seed is fixed."""
    rng = np.random.default_rng(5)
    x0, x1 = rng.laplace(0, 1, 4000), rng.laplace(0, 2, 4000)
    assert KnownNoise().suits(x0[:, None], x1[:, None])
    at = np.array([-4.0, 0.0, 1.0, 4.0])
    assert scorer_of(x0, x1)(at) == pytest.approx(np.abs(at) / 2 - np.log(2), abs=0.25)


def test_a_second_scale_needs_three_nats_more() -> None:
    """A plain second version: one more parameter costs half of log n, and that the scale differs costs 3 nats."""
    x0, x1 = samples(lambda rng, n, m: rng.normal(m, 1.0, n), 101)
    plain = sum(stats.norm(x.mean(), x.std()).logpdf(x).sum() for x in (x0, x1)) - 2 * np.log(202) - 3
    assert fitted("continuous", "gaussian, two scales", x0, x1).log_likelihood == pytest.approx(plain)


def test_scores_of_any_output_are_numbers() -> None:
    """The seed is fixed."""
    strange = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 5e-324])
    for _, _, draw, _ in LAWS:
        for scale in (1.0, 1e300):
            scores = scorer_of(*(scale * x for x in samples(draw, 60)))(strange)
            assert not np.isnan(scores).any()


def test_a_change_of_units_changes_no_score() -> None:
    """Scores are equal up to rounding, because a score must not depend on the last bits of an output."""
    x0, x1 = samples(LAWS[1][2], 300)
    units = scorer_of(1e-7 * x0 + 3e-7, 1e-7 * x1 + 3e-7)(1e-7 * x0 + 3e-7)
    assert np.allclose(scorer_of(x0, x1)(x0), units, atol=1e-6)


# --- fits of noise on vectors, against plain second versions and exact ratios


Rng = np.random.Generator
ONE, ALL = np.r_[1.2, np.zeros(9)], np.full(10, 1.2 / np.sqrt(10))

VectorDraw = Callable[[Rng, int], Array]
Ratio = Callable[[Array, Array], Array]

# name of the law -> noise of n vectors of ten numbers, and the log-likelihood ratio of given locations to 0
VECTOR_LAWS: dict[str, tuple[VectorDraw, Ratio]] = {
    "gaussian": (lambda rng, n: rng.normal(0, 1, (n, 10)), lambda x, m: (x - m / 2) @ m),
    "laplace": (lambda rng, n: rng.laplace(0, 1, (n, 10)), lambda x, m: (np.abs(x) - np.abs(x - m)).sum(axis=1)),
}


def fitted_vectors(name: str, outputs0: Array, outputs1: Array) -> FittedLaw:
    law = VECTORS[name](outputs0, outputs1)
    assert law is not None
    return law


@pytest.mark.parametrize("own", [False, True])
def test_likelihoods_of_vectors_are_those_of_a_plain_second_version(own: bool) -> None:
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
    assert fitted_vectors("gaussian" + words, x0, x1).log_likelihood == pytest.approx(plain0 - penalty)
    assert fitted_vectors("laplace" + words, x0, x1).log_likelihood == pytest.approx(plain1 - penalty)


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
    assert shrunken(z)[0] * z == pytest.approx(means / total, abs=1e-6)


@pytest.mark.parametrize("locations", [ONE, ALL], ids=["one", "all"])
@pytest.mark.parametrize("name", VECTOR_LAWS)
def test_ratios_are_exact_within_the_sampling_error(name: str, locations: Array) -> None:
    """Fails by chance < 1 in 10**6: six standard errors of the differences and of the middles.

    The error of a ratio is about sum_j (error of the difference j) times (distance of x_j from the middle j) plus
    sum_j (difference j) times (error of the middle j).
    """
    draw, ratio = VECTOR_LAWS[name]
    rng, n = np.random.default_rng(2), 20_000
    law = fitted_vectors(name, draw(rng, n), draw(rng, n) + locations)
    fresh = draw(rng, 200)
    error = np.sqrt(2 / n) * np.linalg.norm(fresh - locations / 2, axis=1) + np.linalg.norm(locations) / np.sqrt(2 * n)
    error += 2 * np.abs(ratio(fresh, locations)) / np.sqrt(20 * n)  # of the scale
    assert np.all(np.abs(law.ratio(fresh) - ratio(fresh, locations)) < 6 * error)
    assert law.agrees()


@pytest.mark.parametrize(("locations", "least"), [(ONE, 0.8), (ALL, 0.5)], ids=["one", "all"])
@pytest.mark.parametrize("name", VECTOR_LAWS)
def test_fifty_vectors_suffice(name: str, locations: Array, least: float) -> None:
    """Fails by chance < 1 in 10**6: a mean over 20 fits, and the margin is at least six standard errors.

    The share is that of the exact ratio's gain in log-loss over guessing.
    """
    draw, ratio = VECTOR_LAWS[name]
    shares = []
    for seed in range(20):
        rng = np.random.default_rng([3, seed])
        scorer = KnownNoise().fit(draw(rng, 50), draw(rng, 50) + locations, rng)
        fresh0, fresh1 = draw(rng, 2000), draw(rng, 2000) + locations
        got, best = (
            2 * np.log(2) - np.logaddexp(0, s0).mean() - np.logaddexp(0, -s1).mean()
            for s0, s1 in ((scorer(fresh0), scorer(fresh1)), (ratio(fresh0, locations), ratio(fresh1, locations)))
        )
        shares.append(got / best)
    assert np.mean(shares) > least


@pytest.mark.parametrize("name", VECTOR_LAWS)
def test_scales_of_coordinates_may_differ(name: str) -> None:
    """The seed is fixed.  Units of one coordinate change no score, because its scale is estimated."""
    draw, _ = VECTOR_LAWS[name]
    rng, units = np.random.default_rng(4), np.geomspace(1e-6, 1e6, 10)
    x0, x1 = draw(rng, 300), draw(rng, 300) + ONE
    assert KnownNoise().suits(units * x0, units * x1)
    own = fitted_vectors(f"{name}, own scales", x0, x1).ratio(x0)
    assert KnownNoise().fit(units * x0, units * x1, rng)(units * x0) == pytest.approx(own, abs=1e-6)


@pytest.mark.parametrize("name", ["clamped", "correlated", "constant", "scale", "missing", "few outputs", "same noise"])
def test_vectors_that_no_law_fits_do_not_suit(name: str) -> None:
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


@pytest.mark.parametrize("name", VECTOR_LAWS)
def test_scores_of_any_vector_are_numbers(name: str) -> None:
    """The seed is fixed."""
    draw, _ = VECTOR_LAWS[name]
    rng = np.random.default_rng(6)
    scorer = fitted_vectors(name, draw(rng, 60), draw(rng, 60) + ONE).ratio
    strange = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 5e-324])
    assert not np.isnan(scorer(np.repeat(strange[:, None], 10, axis=1))).any()
    assert scorer(np.full((1, 10), np.nan)) == pytest.approx([0.0])
