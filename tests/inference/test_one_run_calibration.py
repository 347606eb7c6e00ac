"""Error rates of the tests for one run under true claims, on the boundary of the claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.claims import GaussianDP, PureDP
from dpaudit.inference.one_run import p_value, p_value_exact


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
def test_independent_randomised_responses_are_rarely_refuted(epsilon: float) -> None:
    """On the boundary the probability of refutation is a sum of binomial terms, which is computed exactly."""
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    for m, r in ((1, 1), (30, 30), (200, 60)):
        law = binom.pmf(np.arange(r + 1), r, q)
        p = np.array([p_value(PureDP(epsilon), m, r, v) for v in range(r + 1)])
        for significance in (0.01, 0.05, 0.3):
            refuted = p <= significance
            assert law @ refuted <= significance
            if r == 60 and epsilon < 3:
                assert law @ refuted >= significance / 5  # so that the test could fail


def test_correlated_gaussian_answers_are_rarely_refuted() -> None:  # fails by chance < 1 in 10**6
    """All canaries share the noise of one sum; a high sum means the guess "included" for every canary."""
    rng, runs, m = np.random.default_rng(29), 2000, 20
    included = rng.random((runs, m)) < 0.5
    release = included.sum(axis=1) + rng.normal(size=runs)  # mu = 1 for each canary
    right = np.where(release > m / 2, included.sum(axis=1), m - included.sum(axis=1))
    refuted = [p_value(GaussianDP(1.0), m, m, v) <= 0.05 for v in range(m + 1)]
    false = sum(refuted[v] for v in right)
    assert false <= binom.ppf(1 - 1e-6, runs, 0.05)


def test_the_least_favourable_mechanism_is_refuted_with_the_stated_probability() -> None:
    """Uses the (epsilon, delta)-DP law that attains the bound for the critical v."""
    m, r, epsilon, delta, significance = 400, 100, 1.0, 1e-4, 0.05
    p = np.array([float(p_value_exact(epsilon, delta, m, r, v)) for v in range(r + 1)])
    critical = int(np.argmax(p <= significance))
    mass = binom.pmf(np.arange(r + 1), r, math.exp(epsilon) / (1 + math.exp(epsilon)))
    x, above = m * delta / (critical * mass[critical]), mass[critical:].sum()
    law = mass * np.where(np.arange(r + 1) >= critical, 1 + (1 - above) * x, 1 - above * x)
    refuted = law[p <= significance].sum()
    assert refuted == pytest.approx(p[critical], rel=1e-6)
    assert refuted <= significance


def test_the_number_of_guesses_must_not_depend_on_the_output_if_delta_is_positive() -> None:
    """A mechanism that rarely chooses the r for which delta has most effect raises the error from 5 % to 9 %."""
    m, epsilon, delta, significance, share = 2000, 0.0, 2.4e-4, 0.05, 0.06
    critical = next(v for v in range(1, 1001) if p_value_exact(epsilon, delta, m, 1000, v) <= significance)
    assert p_value_exact(epsilon, delta, m, 10, 10) <= significance
    usual = float(p_value_exact(epsilon, 0.0, m, 1000, critical))  # r = 1000, perfectly private
    rare = float(p_value_exact(epsilon, delta / share, m, 10, 10))  # r = 10, with all of delta
    assert (1 - share) * usual + share * rare > 0.085
