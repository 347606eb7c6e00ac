"""The attack that fits known laws of noise, against plain second versions and exact ratios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.learning.weights import ModelWeights
from dpaudit.numerics import Array
from dpaudit_attacks.known_noise import KnownNoise
from dpaudit_attacks.noise_laws import CONTINUOUS, DISCRETE, Fitted

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


def test_the_corners_of_laplace_ratios_are_half_a_standard_error_beyond_the_medians() -> None:
    x0, x1 = samples(lambda rng, n, m: rng.laplace(m, 1.0, n), 100)
    m0, m1 = np.median(x0), np.median(x1)
    b = (np.abs(x0 - m0).sum() + np.abs(x1 - m1).sum()) / 200
    for first, second in ((x0, x1), (x1, x0)):
        ratio = fitted("continuous", "laplace", first, second).ratio
        largest = (m1 - m0) / b + 2 * 0.5 / 10
        corners = np.array([m0 - 0.05 * b, m1 + 0.05 * b])
        sign = 1 if second is x1 else -1
        assert ratio(corners) == pytest.approx([-sign * largest, sign * largest])
        assert ratio(np.array([-9.0, 9.0])) == pytest.approx(ratio(corners))
        assert sign * ratio(corners + np.array([0.01, -0.01])) == pytest.approx(
            [0.02 / b - largest, largest - 0.02 / b]
        )


def test_the_ratio_starts_at_twenty_outputs() -> None:
    """The seed is fixed."""
    x0, x1 = samples(LAWS[0][2], 20)
    assert KnownNoise().suits(x0[:, None], x1[:, None])
    assert not KnownNoise().suits(x0[1:, None], x1[:, None])
    assert np.all(scorer_of(x0, x1[1:])(x0) == 0)


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


def test_a_head_start_multiplies_a_weight() -> None:
    model_weights = ModelWeights({1: 4.0})
    for attack in (0, 1):
        model_weights.join(attack, 10)
    assert model_weights.weights([0, 1])[1] == pytest.approx(np.e**4 / (1 + np.e**4))
    model_weights.count({0: 10.0, 1: 14.0}, 10.0, 50)
    assert model_weights.weights([0, 1])[1] == pytest.approx(0.5)
    assert ModelWeights().head_starts == {}
