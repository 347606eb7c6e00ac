"""Arbitrarily dependent canaries: several runs, and a test of dependence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.inference.scores import dependence, several, tight
from dpaudit.result.several_runs_evidence import of_runs

from .plain_one_run import largest_chance, largest_law


def _p_value(claim: TradeoffFunction, runs: Sequence[tuple[int, int]], right: int) -> float:
    """Return the p-value of so many right guesses in runs with (canaries, guesses)."""
    evidence = of_runs([(m, 0, r) for m, r in runs], right, drawn=False)
    return evidence.chance(claim, right)


def test_the_total_over_runs_is_binomial_for_a_pure_claim() -> None:
    exact = binom.sf(39, 50, expit(1.0))
    assert _p_value(PureDP(1.0), [(100, 30), (50, 20)], 40) == pytest.approx(exact, rel=1e-6)


def test_the_law_of_several_runs_is_that_of_sums() -> None:
    """Compares the convolution with plain sums over both numbers."""
    claim, m, r = ApproxDP(epsilon=0.5, delta=0.01), 40, 12
    reached = [one_run.p_value(claim, m, r, v) for v in range(r + 1)] + [0.0]
    mass = -np.diff(reached)
    for total in (15, 20, 24):
        plain = sum(mass[i] * reached[max(total - i, 0)] for i in range(r + 1) if total - i <= r)
        assert _p_value(claim, [(m, r), (m, r)], total) == pytest.approx(plain)


def test_several_runs_give_a_larger_bound_than_one_run() -> None:
    one = tight.mu_lower(200, 40, 36, significance=0.05)
    assert of_runs([(200, 0, 40)] * 3, 3 * 36, drawn=False).mu_lower(confidence=0.95) > 1.3 * one


def test_a_common_state_of_all_canaries_does_not_break_the_bound_of_runs() -> None:
    """Each of two runs is revealing with probability 0.3937, and G_1 holds.  Fails by chance < 1 in 10**6."""
    rng, m, refuted = np.random.default_rng(8), 100, 0
    r = several.default_guesses(m)
    least = next(v for v in range(r, 2 * r + 2) if v > 2 * r or _two(m, r, v) <= 0.05)
    for _ in range(300):
        revealing = rng.random(2) < 0.3937
        right = rng.binomial(r, np.where(revealing, expit(1.5), 0.5)).sum()
        refuted += right >= least
    assert refuted <= binom.ppf(1 - 1e-6, 300, 0.05)


def _two(m: int, r: int, right: int) -> float:
    return _p_value(GaussianDP(1.0), [(m, r), (m, r)], right)


def test_unfair_coins_are_detected() -> None:
    assert dependence.coins_p_value(500, 500) == 1.0
    assert dependence.coins_p_value(400, 600) < 1e-9


# --- the smallest p-value


@pytest.mark.parametrize(("m", "r", "v"), [(60, 20, 17), (100, 12, 11), (40, 40, 28)])
def test_tight_p_values_lie_between_the_maximum_probability_and_the_quick_bound(m: int, r: int, v: int) -> None:
    """Compares with the linear program of both inequalities, which has many more epsilons."""
    claim = GaussianDP(0.5)
    epsilon = np.linspace(0.0, 2.5, 40)
    largest = largest_chance(m, r, v, epsilon, np.asarray(claim.delta(epsilon)))
    ours, quick = tight.p_value(claim, m, r, v), one_run.p_value(claim, m, r, v)
    assert largest * (1 - 1e-3) <= ours <= quick
    assert ours <= 1.1 * largest


def test_tight_p_values_of_pure_and_approximate_claims_equal_the_exact_ones() -> None:
    """So they need no linear program."""
    for claim in (PureDP(1.0), ApproxDP(epsilon=1.0, delta=1e-3), ApproxDP(epsilon=0.1, delta=0.05)):
        epsilon = tight.epsilons(claim)
        for m, r, v in ((100, 30, 27), (30, 30, 22), (50, 20, 20)):
            exact = one_run.p_value(claim, m, r, v)
            assert tight.p_value(claim, m, r, v) == exact
            assert tight.bound(epsilon, claim.delta(epsilon), m, r, v) >= exact * (1 - 2e-8)


def test_any_weights_give_a_bound() -> None:
    """Weights that do not solve the program give a larger p-value, never a smaller one."""
    claim, rng = GaussianDP(0.5), np.random.default_rng(0)
    epsilon = np.linspace(0.0, 2.0, 5)
    delta = np.asarray(claim.delta(epsilon))
    largest = largest_chance(30, 10, 9, epsilon, delta)
    for _ in range(20):
        weights = rng.random((5, 10)) * rng.choice([1e-3, 1e-2, 1e-1])
        assert tight._certified(weights, epsilon, delta, 30, 10, 9) >= largest - 1e-9


def test_tight_bounds_are_larger_and_where_the_p_value_is_the_significance() -> None:
    quick = one_run.mu_lower_one_run(300, 40, 36, significance=0.05)
    mu = tight.mu_lower(300, 40, 36, significance=0.05)
    assert 1.01 * quick < mu < 1.2 * quick
    assert tight.p_value(GaussianDP(mu), 300, 40, 36) <= 0.05 < tight.p_value(GaussianDP(1.003 * mu), 300, 40, 36)
    assert tight.mu_lower(300, 40, 20, significance=0.05) == 0.0


# --- the sum over runs, for the worst mechanisms


@pytest.mark.parametrize("claim", [ApproxDP(epsilon=0.7, delta=0.03), GaussianDP(0.6), PureDP(1.0)])
def test_no_pair_of_worst_mechanisms_exceeds_the_bound_of_two_runs(claim: TradeoffFunction) -> None:
    """Each run has the law that is worst for some count, found by a linear program; their sums are computed exactly."""
    epsilon = np.unique([*np.linspace(0.0, 2.0, 9), 0.7])
    sizes = ((8, 3), (6, 4))
    laws = [
        [largest_law(m, r, v, epsilon, np.asarray(claim.symmetrized().delta(epsilon))) for v in range(1, r + 1)]
        for m, r in sizes
    ]
    slack = 1.0 if isinstance(claim, PureDP) else 1.03  # the programs know the claim at a few epsilons only
    for right in range(1, 8):
        bound = _p_value(claim, sizes, right)
        for first in laws[0]:
            for second in laws[1]:
                assert np.convolve(first, second)[right:].sum() <= slack * bound * (1 + 1e-6)


def test_a_run_is_not_worth_more_than_its_bound() -> None:
    """Runs whose tails are replaced by larger ones give a larger p-value: the order of sums."""
    tails = [several.reached(partial(one_run.p_value, GaussianDP(0.5), 40, 10), 10) for _ in range(2)]
    larger = [np.minimum(1.0, 1.5 * tail) for tail in tails]
    for right in range(1, 21):
        assert several.sum_p_value(tails, right) <= several.sum_p_value(larger, right)
    for tail in tails:
        assert tail[0] == 1.0
        assert tail[-1] == 0.0
        assert np.all(np.diff(tail) <= 0)
