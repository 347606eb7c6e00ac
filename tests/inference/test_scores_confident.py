"""Independent canaries: the bound is exact for the most distinguishable pair, and holds for all others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction, parse_claim
from dpaudit.inference.scores import confident
from dpaudit.inference.scores.both_sides import guess
from dpaudit.inference.scores.families import check_nested, epsilon_inside, family_of

from .plain_scores import Channel, plain_confident, rare_revelation, right_guesses, simulated_confident

CLAIMS = [GaussianDP(0.5), GaussianDP(2.0), LaplaceDP(1.0), ApproxDP(epsilon=1.0, delta=0.05)]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("m", "r"), [(40, 25), (200, 20), (60, 60)])
def test_p_values_agree_with_quadrature_and_are_not_smaller(claim: TradeoffFunction, m: int, r: int) -> None:
    for v in (r // 2, r - r // 8, r):
        plain = plain_confident(claim, m, r, v)
        ours = confident.p_value(claim, m, r, v)
        assert plain * (1 - 1e-6) <= ours <= 1.05 * plain + 1e-6


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_most_distinguishable_pair_attains_the_bound(claim: TradeoffFunction) -> None:
    """Allows six standard errors of 4,000 draws and 3 % for the cells.  Fails by chance < 1 in 10**8."""
    m, r = 60, 35
    right = simulated_confident(claim, m, r, 4000, np.random.default_rng(1))
    for v in range(15, 36, 4):
        share, ours = float(np.mean(right >= v)), confident.p_value(claim, m, r, v)
        assert abs(share - ours) <= 6 * np.sqrt(ours * (1 - ours) / 4000) + 0.03 * ours


def test_pure_claims_have_a_binomial_law() -> None:
    for v in (5, 20, 30):
        exact = binom.sf(v - 1, 30, expit(1.5))
        assert confident.p_value(PureDP(1.5), 100, 30, v) == pytest.approx(exact, rel=1e-6)


def test_approximate_claims_reveal_some_canaries() -> None:
    for v in (20, 28, 30):
        exact = rare_revelation(1.0, 0.02, 100, 30, v)
        assert exact * (1 - 1e-9) <= confident.p_value(ApproxDP(epsilon=1.0, delta=0.02), 100, 30, v) <= 1.05 * exact


@pytest.mark.parametrize("name", ["exact", "rounded", "scaled", "half", "cubed"])
def test_true_claims_are_rarely_refuted_whatever_the_scores(name: str) -> None:
    """Simulates 500 audits on the boundary or inside.  Fails by chance < 1 in 10**6 at the stated level."""
    rng, m = np.random.default_rng(5), 100
    r = confident.default_confident(m)
    least = next(v for v in range(r + 1) if confident.p_value(GaussianDP(1.0), m, r, v) <= 0.05)
    refuted = 0
    for _ in range(500):
        coins = rng.random(m) < 0.5
        refuted += right_guesses(guess(Channel(name).scores(coins, 1.0, rng), r), coins)[1] >= least
    assert refuted <= binom.ppf(1 - 1e-6, 500, 0.05)


def test_bounds_are_where_the_p_value_is_the_significance() -> None:
    mu = confident.mu_lower(1000, 620, 470, significance=0.05)
    assert confident.p_value(GaussianDP(mu), 1000, 620, 470) <= 0.05
    assert confident.p_value(GaussianDP(mu + 2e-3), 1000, 620, 470) > 0.05
    eps = confident.epsilon_lower(1000, 100, 99, delta=1e-5, significance=0.05)
    assert confident.p_value(ApproxDP(epsilon=eps, delta=1e-5), 1000, 100, 99) <= 0.05
    assert confident.p_value(ApproxDP(epsilon=eps + 2e-3, delta=1e-5), 1000, 100, 99) > 0.05
    assert confident.mu_lower(100, 62, 30, significance=0.05) == 0.0
    assert confident.p_value(PureDP(0.0), 100, 62, 0) == 1.0


def test_the_size_of_a_gaussian_claim_is_its_mu() -> None:
    for mu in (0.2, 1.0, 3.0):
        for share in (0.05, 0.62, 1.0):
            assert confident._size(GaussianDP(mu), share) == pytest.approx(mu, rel=1e-6)
    assert confident._size(ApproxDP(epsilon=1.0, delta=0.5), 0.3) == 64.0  # no guess is wrong


def test_p_values_rise_as_claims_weaken() -> None:
    """Bisection along a family relies on this."""
    values = [confident.p_value(GaussianDP(mu), 500, 310, 250) for mu in np.linspace(0.1, 4.0, 30)]
    assert values == sorted(values)


def test_a_family_in_text_gives_the_same_bound() -> None:
    direct = confident.parameter_lower(family_of("laplace(epsilon=?)"), 400, 248, 200, significance=0.05)
    assert (
        confident.p_value(LaplaceDP(direct), 400, 248, 200)
        <= 0.05
        < confident.p_value(LaplaceDP(direct * 1.001), 400, 248, 200)
    )
    twice = confident.parameter_lower(family_of("repeated(gaussian(mu=?), n=4)"), 400, 248, 200, significance=0.05)
    assert 2 * twice == pytest.approx(confident.mu_lower(400, 248, 200, significance=0.05), rel=5e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gaussian(mu=1)", "which has 0"),
        ("approximate(epsilon=?, delta=?)", "which has 2"),
        ("gaussian?(mu=1)", "must take the place of a number"),
    ],
)
def test_texts_without_a_family_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        family_of(text)


def test_families_that_strengthen_are_rejected() -> None:
    check_nested(GaussianDP, 0.5, 1.0)
    check_nested(lambda t: parse_claim(f"subsampled(gaussian(mu=1), rate={t})"), 0.1, 0.2)
    with pytest.raises(ValueError, match="must promise less"):
        check_nested(lambda t: GaussianDP(1 / t), 0.5, 1.0)


def test_epsilon_inside_a_family_is_that_of_its_member() -> None:
    assert epsilon_inside(GaussianDP, 1.0, 1e-5) == GaussianDP(1.0).epsilon(1e-5)
    assert epsilon_inside(GaussianDP, 0.0, 1e-5) == 0.0
