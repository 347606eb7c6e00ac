"""Error rates of the tests for one run under true claims, on the boundary of the claim."""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.claims import GaussianDP, PureDP
from dpaudit.inference.one_run import epsilon_lower_exact, p_value_exact, refutes
from dpaudit.inference.scores.both_sides import guess

from .plain_scores import right_guesses


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
def test_independent_randomised_responses_are_rarely_refuted(epsilon: float) -> None:
    """On the boundary the probability of refutation is a sum of binomial terms, which is computed exactly."""
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    for m, r in ((1, 1), (30, 30), (200, 60)):
        law = binom.pmf(np.arange(r + 1), r, q)
        for significance in (0.01, 0.05, 0.3):
            refuted = [refutes(PureDP(epsilon), m, r, v, significance=significance) for v in range(r + 1)]
            assert law @ refuted <= significance
            if r == 60 and epsilon < 3:
                assert law @ refuted >= significance / 5  # so that the test could fail
            lower = [epsilon_lower_exact(m, r, v, delta=0.0, significance=significance) for v in range(r + 1)]
            assert law @ (np.array(lower) > epsilon) <= significance


def test_false_refutations_of_pure_claims_by_scores() -> None:  # fails by chance < 1 in 10**6
    """Randomised responses have many ties, which `guess` breaks."""
    rng, runs, m = np.random.default_rng(17), 400, 300
    q = math.exp(1.0) / (1 + math.exp(1.0))
    false = below = 0
    for _ in range(runs):
        included = rng.random(m) < 0.5
        answers = guess(np.where(rng.random(m) < q, included, ~included).astype(float), 109)
        r, v = right_guesses(answers, included)
        false += refutes(PureDP(1.0), m, r, v, significance=0.05)
        below += refutes(PureDP(0.5), m, r, v, significance=0.05)
    assert false <= binom.ppf(1 - 1e-6, runs, 0.05)
    assert below > runs / 2


@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
def test_false_refutations_of_gaussian_claims(mu: float) -> None:  # fails by chance < 1 in 10**6
    rng, runs, m = np.random.default_rng(23), 400, 200
    false, covered = 0, 0
    refuted = cache(partial(refutes, significance=0.05))
    for _ in range(runs):
        included = rng.random(m) < 0.5
        r, v = right_guesses(guess(rng.normal(mu * included, 1.0), 80), included)
        false += refuted(GaussianDP(mu), m, r, v)
        covered += refuted(GaussianDP(mu / 3), m, r, v)
    assert false <= binom.ppf(1 - 1e-6, runs, 0.05)
    assert covered > runs / 10  # so that the test could fail


def test_correlated_gaussian_answers_are_rarely_refuted() -> None:  # fails by chance < 1 in 10**6
    """All canaries share the noise of one sum; a high sum means the guess "included" for every canary."""
    rng, runs, m = np.random.default_rng(29), 2000, 20
    included = rng.random((runs, m)) < 0.5
    release = included.sum(axis=1) + rng.normal(size=runs)  # mu = 1 for each canary
    right = np.where(release > m / 2, included.sum(axis=1), m - included.sum(axis=1))
    refuted = [refutes(GaussianDP(1.0), m, m, v, significance=0.05) for v in range(m + 1)]
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


def test_the_extreme_scores_are_guessed() -> None:
    scores = np.array([3.0, -1.0, 0.0, 7.0, np.inf, -np.inf, 2.0])
    assert guess(scores, 4).tolist() == [0, -1, 0, 1, 1, -1, 0]
    assert guess(scores, 3).tolist() == [0, 0, 0, 1, 1, -1, 0]
    assert guess(scores, 7).tolist() == [1, -1, -1, 1, 1, -1, 1]
    assert guess(scores, 0).tolist() == [0] * 7
    assert guess(np.array([5.0]), 1).tolist() == [1]
    assert guess(np.zeros(0), 0).tolist() == []


def test_ties_depend_neither_on_the_order_of_the_list_nor_on_chance() -> None:
    """A list with the included canaries first must not make a constant score look like an attack."""
    m = 2000
    first_included = np.arange(m) < m // 2
    answers = guess(np.zeros(m), 1000)
    assert np.array_equal(answers, guess(np.zeros(m), 1000))
    _, right = right_guesses(answers, first_included)
    assert 400 < right < 600  # about 508; deterministic
    assert not refutes(PureDP(0.0), m, 1000, right, significance=0.05)


def test_more_guesses_than_canaries_are_rejected() -> None:
    with pytest.raises(ValueError, match="3 guesses, 2 canaries"):
        guess(np.array([0.0, 1.0]), 3)


def test_the_number_of_guesses_must_not_depend_on_the_output_if_delta_is_positive() -> None:
    """A mechanism that rarely chooses the r for which delta has most effect raises the error from 5 % to 9 %."""
    m, epsilon, delta, significance, share = 2000, 0.0, 2.4e-4, 0.05, 0.06
    critical = next(v for v in range(1, 1001) if p_value_exact(epsilon, delta, m, 1000, v) <= significance)
    assert p_value_exact(epsilon, delta, m, 10, 10) <= significance
    usual = float(p_value_exact(epsilon, 0.0, m, 1000, critical))  # r = 1000, perfectly private
    rare = float(p_value_exact(epsilon, delta / share, m, 10, 10))  # r = 10, with all of delta
    assert (1 - share) * usual + share * rare > 0.085
