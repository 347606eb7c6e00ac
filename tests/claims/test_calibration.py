"""Textbook mechanisms and limits: each formula agrees with its definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TabulatedTradeoff

from . import textbook
from .limits import central_limit, pure_group_limit


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_exact_gaussian_calibration_is_just_enough(epsilon: float, delta: float) -> None:
    sigma = textbook.gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=2.5)
    assert GaussianDP(2.5 / sigma).delta(epsilon) <= delta
    assert GaussianDP(2.5 / (sigma * (1 - 1e-9))).delta(epsilon) > delta


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1, 0.7])
def test_the_classical_gaussian_calibration_is_more_than_enough(epsilon: float, delta: float) -> None:
    sigma = textbook.gaussian_sigma_classical(epsilon=epsilon, delta=delta, sensitivity=3.0)
    mu = 3.0 / sigma
    assert norm.sf(epsilon, loc=mu * mu / 2, scale=mu) == pytest.approx(delta, rel=1e-9)
    assert GaussianDP(mu).delta(epsilon) < delta
    assert sigma > textbook.gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=3.0)
    if epsilon < 1 and delta < 0.1:
        assert sigma < 3.0 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def test_the_promise_of_k_ary_response_is_stronger_than_its_epsilon() -> None:
    assert textbook.k_ary_response(epsilon=1.0, k=2).symmetric
    alpha = np.linspace(0, 1, 201)
    assert textbook.k_ary_response(epsilon=1.0, k=2).beta(alpha) == pytest.approx(PureDP(1.0).beta(alpha), abs=1e-12)
    previous = PureDP(1.0).beta(alpha)
    for k in (3, 10, 1000):
        now = textbook.k_ary_response(epsilon=1.0, k=k)
        assert isinstance(now, TabulatedTradeoff)
        assert now.epsilon(0.0) == pytest.approx(1.0)
        assert np.all(now.beta(alpha) >= previous - 1e-12)
        previous = now.beta(alpha)
    assert textbook.k_ary_response(epsilon=0.0, k=3).beta(0.3) == pytest.approx(0.7)
    assert textbook.k_ary_response(epsilon=800.0, k=3).beta(0.3) < 1e-300


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: central_limit(ApproxDP(epsilon=1, delta=0.1), 10), r"the limit needs f\(0\) = 1"),
        (lambda: central_limit(GaussianDP(1.0), 0), "n must be a whole number >= 1, got 0"),
    ],
)
def test_impossible_limits_name_value_and_range(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


def test_the_central_limit_has_the_moments_of_the_losses() -> None:
    gaussian = central_limit(GaussianDP(0.3), 25)
    assert gaussian.mu == pytest.approx(1.5, rel=1e-4)
    # randomised response: kl = eps tanh(eps/2), second moment eps^2 (Dong, Roth & Su 2022, section 3)
    epsilon, n = 0.2, 100
    kl = epsilon * math.tanh(epsilon / 2)
    limit = central_limit(PureDP(epsilon), n)
    assert limit.mu == pytest.approx(2 * n * kl / math.sqrt(n * (epsilon**2 - kl**2)), rel=1e-12)
    low, high = 1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon))
    third = high * abs(-epsilon + kl) ** 3 + low * (epsilon + kl) ** 3
    assert limit.gamma == pytest.approx(0.56 * n * third / (n * (epsilon**2 - kl**2)) ** 1.5, rel=1e-12)
    # T(Lap(0, 1), Lap(e, 1)): kl = e + exp(-e) - 1
    assert central_limit(LaplaceDP(1.0), 1).mu == pytest.approx(
        2 * math.exp(-1) / math.sqrt(_laplace_second_moment(1.0) - math.exp(-2)), rel=1e-4
    )
    assert central_limit(PureDP(0.0), 10).mu == 0.0


def _laplace_second_moment(epsilon: float) -> float:
    x = np.linspace(-40, 40, 800_001)
    loss = np.abs(x) - np.abs(x - epsilon)
    return float(np.sum(loss**2 * np.exp(-np.abs(x)) / 2) * (x[1] - x[0]))


@pytest.mark.parametrize("claim", [PureDP(0.1), LaplaceDP(0.1), GaussianDP(0.1)], ids=str)
def test_the_composition_lies_between_the_bounds_of_the_central_limit(claim: PureDP) -> None:
    n = 200
    limit, exact = central_limit(claim, n), claim.repeated(n)
    alpha = np.linspace(limit.gamma, 1 - limit.gamma, 101)
    assert np.all(limit.lower(alpha) <= exact.beta(alpha) + 1e-3)
    assert np.all(limit.upper(alpha) >= exact.beta(alpha))


def test_groups_of_pure_claims_tend_to_laplace_noise() -> None:
    alpha = np.linspace(0, 1, 101)
    limit = pure_group_limit(2.0)
    gaps = [np.max(np.abs(PureDP(2.0 / k).group(k).beta(alpha) - limit.beta(alpha))) for k in (1, 10, 100, 1000)]
    assert all(b < a / 5 for a, b in itertools.pairwise(gaps))
