"""Composed and subsampled claims are never above exact or finely computed ones, and at most 1e-3 below."""

import itertools
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from dpaudit.claims import (
    ApproxDP,
    GaussianDP,
    LaplaceDP,
    PrivacyLoss,
    PureDP,
    RenyiDP,
    TabulatedTradeoff,
    TradeoffFunction,
    ZeroConcentratedDP,
    compose,
)
from dpaudit.claims.accounting import Part, composed
from dpaudit.claims.envelope import Envelope
from dpaudit.numerics import Array

ALPHA: Array = np.unique(
    np.concatenate(
        [[0.0], np.geomspace(1e-12, 0.1, 60), np.linspace(0.1, 0.9, 81), 1 - np.geomspace(1e-12, 0.1, 60), [1.0]]
    )
)
EPSILON: Array = np.linspace(-6, 6, 121)
ROUNDING = 1e-13


def assert_safe_and_close(claim: TradeoffFunction | Envelope, exact: TradeoffFunction, within: float = 1e-3) -> None:
    excess = claim.beta(ALPHA) - exact.beta(ALPHA)
    assert excess.max() <= ROUNDING
    assert excess.min() >= -within
    excess = claim.delta(EPSILON) - exact.delta(EPSILON)
    assert excess.min() >= -ROUNDING
    assert excess.max() <= within


NOTHING = PureDP(0.0)


def convolved(claim: TradeoffFunction, n: int = 1, other: TradeoffFunction = NOTHING, m: int = 1) -> Envelope:
    """Compose n times one claim and m times another by privacy-loss distributions, even if a closed form exists."""
    parts = [Part(*c._directions(), k) for c, k in ((claim, n), (other, m)) if c.delta(0.0)]
    forward = composed(parts)
    return Envelope(forward, forward)


@pytest.mark.parametrize(("mu", "n"), [(1e-3, 10), (0.01, 10_000), (1.0, 2), (6.0, 2)])
def test_convolved_gaussians_stay_just_below_the_exact_curve(mu: float, n: int) -> None:
    assert_safe_and_close(convolved(GaussianDP(mu), n), GaussianDP(mu * math.sqrt(n)), within=5e-5)


@pytest.mark.parametrize(("epsilon", "n"), [(0.01, 1000), (0.1, 100), (1.0, 5), (4.0, 3)])
def test_convolved_responses_stay_just_below_the_exact_curve(epsilon: float, n: int) -> None:
    assert_safe_and_close(convolved(PureDP(epsilon), n), PureDP(epsilon).repeated(n), within=5e-4)


def with_laplace(epsilon: float, profile: Callable[[float], float]) -> Callable[[float], float]:
    """Return the profile of Laplace noise and another mechanism: E delta_other(t - L), with L the loss under Q."""

    def delta(t: float) -> float:
        atoms = profile(t - epsilon) / 2 + profile(t + epsilon) * math.exp(-epsilon) / 2
        density = lambda x: profile(t - (epsilon - 2 * x)) * math.exp(-x) / 2  # noqa: E731  # loss epsilon - 2x at -x
        corners = sorted(x for c in (-epsilon, 0.0, epsilon) if 0 < (x := (epsilon - t + c) / 2) < epsilon)
        edges = [0.0, *corners, epsilon]
        return atoms + sum(quad(density, a, b, epsabs=1e-12)[0] for a, b in itertools.pairwise(edges))

    return delta


@pytest.mark.parametrize("other", [GaussianDP(1.0), LaplaceDP(0.7), PureDP(0.4)], ids=str)
def test_laplace_and_something_else_compose_as_the_integral_says(other: TradeoffFunction) -> None:
    exact = with_laplace(1.0, other.delta)
    claim = compose(LaplaceDP(1.0), other)
    for t in np.linspace(-2.5, 2.5, 9):
        excess = claim.delta(float(t)) - exact(float(t))
        assert -1e-11 <= excess <= 1e-4


def mixture(mu: float, rate: float) -> Callable[[float], float]:
    """Return log q/p of a Gaussian mechanism whose record is in the sample with probability `rate`."""
    return lambda x: math.log1p(rate * math.expm1(mu * x - mu * mu / 2))


@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.1), (2.0, 0.3), (0.5, 0.9)])
def test_the_two_directions_of_a_poisson_sample_are_those_of_the_densities(mu: float, rate: float) -> None:
    """The law is N(0, 1) without the record, and a mixture of N(0, 1) and N(mu, 1) with it."""
    forward, backward = GaussianDP(mu).subsampled(rate, relation="add_remove")._directions()

    def p(x: float) -> float:
        return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    ratio = mixture(mu, rate)

    def check(epsilon: float) -> None:
        cut = quad_root(lambda x: ratio(x) - epsilon)
        more = quad(lambda x: p(x) * (math.exp(ratio(x)) - math.exp(epsilon)), cut, 14 + mu, epsabs=1e-13)[0]
        assert forward.delta(np.array([epsilon]))[0] == pytest.approx(more, abs=1e-10)
        expected = 0.0
        if math.exp(-epsilon) > 1 - rate:
            cut = quad_root(lambda x: ratio(x) + epsilon)
            expected = quad(lambda x: p(x) * (1 - math.exp(epsilon + ratio(x))), -30, cut, epsabs=1e-13)[0]
        assert backward.delta(np.array([epsilon]))[0] == pytest.approx(expected, abs=1e-10)

    for epsilon in np.linspace(0, 3, 13):
        check(float(epsilon))


def quad_root(increasing: Callable[[float], float]) -> float:
    low, high = -30.0, 30.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if increasing(middle) > 0 else (middle, high)
    return high


def test_two_poisson_sampled_steps_compose_as_the_integral_says() -> None:
    """The profile of two steps is E delta_1(t - L) in each direction, an integral over the outputs of one step."""
    mu, rate = 1.5, 0.2
    one = GaussianDP(mu).subsampled(rate, relation="add_remove")
    ratio = mixture(mu, rate)

    def p(x: float) -> float:
        return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    def profile(order: int, t: float) -> float:
        own, other = one._directions()[order], one._directions()[1 - order]
        if t >= 0:
            return float(own.delta(np.array([t]))[0])
        return -math.expm1(t) + math.exp(t) * float(other.delta(np.array([-t]))[0])

    def two(order: int, t: float) -> float:
        if order == 0:
            return quad(lambda x: p(x) * math.exp(ratio(x)) * profile(0, t - ratio(x)), -10, 12, limit=400)[0]
        return quad(lambda x: p(x) * profile(1, t + ratio(x)), -10, 12, limit=400)[0]

    claim = one.repeated(2)
    for t in (0.0, 1.0, 2.5):
        exact = max(two(0, float(t)), two(1, float(t)))
        assert -1e-7 <= claim.delta(float(t)) - exact <= 1e-4


def subsampled_on_a_grid(claim: TradeoffFunction, rate: float) -> tuple[Array, Array]:
    """Return C_p(f) as the lower convex hull of f_p and its inverse, from 20,001 points of each."""
    alpha = np.linspace(0, 1, 20_001)
    fp = rate * claim.beta(alpha) + (1 - rate) * (1 - alpha)
    points = sorted(zip(np.concatenate([alpha, fp]).tolist(), np.concatenate([fp, alpha]).tolist(), strict=True))
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (y - hull[-2][1]) <= (hull[-1][1] - hull[-2][1]) * (
            x - hull[-2][0]
        ):
            hull.pop()
        hull.append((x, y))
    return np.array([x for x, _ in hull]), np.array([y for _, y in hull])


@pytest.mark.parametrize(
    ("claim", "rate"),
    [
        (GaussianDP(1.0), 0.01),
        (GaussianDP(1.0), 0.9),
        (LaplaceDP(2.0), 0.3),
        (PureDP(1.0), 0.9),
        (ApproxDP(epsilon=1, delta=0.1), 0.3),
    ],
    ids=str,
)
def test_a_subsampled_claim_is_the_hull_of_the_mixed_curve_and_its_inverse(
    claim: TradeoffFunction, rate: float
) -> None:
    hull = subsampled_on_a_grid(claim, rate)
    inside = np.linspace(0, 1, 501)
    expected = np.interp(inside, *hull)
    computed = claim.subsampled(rate).beta(inside)
    assert np.all(computed <= expected + 1e-12)  # chords of the grid lie above the curve
    assert np.all(computed >= expected - 5e-5)


def test_composing_the_directions_separately_promises_more() -> None:
    """No single output reveals both what adding a record reveals and what removing it reveals."""
    apart, mixed = (
        GaussianDP(1.0).subsampled(0.05, relation=relation).repeated(50) for relation in ("add_remove", "unspecified")
    )
    assert apart.symmetric
    assert np.all(apart.beta(ALPHA) >= mixed.beta(ALPHA) - 1e-7)
    assert np.max(apart.beta(ALPHA) - mixed.beta(ALPHA)) > 0.02
    with_others = compose(GaussianDP(1.0).subsampled(0.05, relation="add_remove").repeated(50), LaplaceDP(0.1))
    assert np.all(with_others.beta(ALPHA) <= apart.beta(ALPHA))


@pytest.mark.chance
@pytest.mark.parametrize("relation", ["add_remove", pytest.param("unspecified", marks=pytest.mark.slow)])
def test_ten_thousand_steps_of_dp_sgd_take_less_than_five_seconds(relation: Any) -> None:
    """The limit is on processor time, so that the load of the machine does not matter."""
    start = time.process_time()
    claim = GaussianDP(1.0).subsampled(0.01, relation=relation).repeated(10_000)
    delta = claim.delta([0.0, 1.0, 2.0])
    claim.beta(ALPHA)
    assert time.process_time() - start < 5
    # fine grid: dp-accounting 0.6, from_gaussian_mechanism(1, sampling_prob=0.01), interval 2e-5, self_compose(10_000)
    if relation == "add_remove":
        assert delta == pytest.approx([0.480072, 0.239142, 0.082709], abs=1e-5)


def test_a_composition_is_not_above_what_dp_accounting_computes_finely() -> None:
    from dp_accounting.pld import privacy_loss_distribution

    pld = privacy_loss_distribution.from_gaussian_mechanism(
        1.0, sampling_prob=0.02, value_discretization_interval=5e-4
    ).self_compose(100)
    claim = GaussianDP(1.0).subsampled(0.02, relation="add_remove").repeated(100)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        assert claim.delta(epsilon) == pytest.approx(float(pld.get_delta_for_epsilon(epsilon)), abs=2e-5)
    read = PrivacyLoss.from_pld(pld)
    assert np.max(np.abs(read.beta(ALPHA) - claim.beta(ALPHA))) < 1e-4
    assert read.epsilon(1e-6) == pytest.approx(pld.get_epsilon_for_delta(1e-6), rel=2e-3)
    assert read.epsilon(1e-6) >= pld.get_epsilon_for_delta(1e-6)


def test_the_tail_of_a_composition_is_finite_and_falls() -> None:
    """Chernoff's bound is used where the slack of the convolution would dominate."""
    claim = compose(GaussianDP(1.0), LaplaceDP(0.1))
    delta = np.array([1e-5, 1e-7, 1e-9, 1e-11, 1e-13])
    low, high = GaussianDP(1.0).epsilon(delta), GaussianDP(1.0).epsilon(delta) + 0.1
    assert np.all(claim.epsilon(delta) >= low)
    assert np.all(claim.epsilon(delta) <= high + 0.5)
    assert claim.epsilon(0.0) == math.inf
    assert compose(LaplaceDP(0.5), LaplaceDP(0.25)).epsilon(0.0) == 0.75


def test_what_needs_no_convolution_is_composed_in_closed_form() -> None:
    assert compose(GaussianDP(3.0), GaussianDP(4.0)) == GaussianDP(5.0)
    assert compose(ZeroConcentratedDP(0.5), ZeroConcentratedDP(0.25)) == ZeroConcentratedDP(0.75)
    assert ZeroConcentratedDP(0.5).repeated(4) == ZeroConcentratedDP(2.0)
    assert compose(RenyiDP(order=3, epsilon=0.5), RenyiDP(order=3, epsilon=0.25)) == RenyiDP(order=3, epsilon=0.75)
    assert compose(LaplaceDP(1.0)) == LaplaceDP(1.0)
    assert compose(LaplaceDP(1.0), PureDP(0.0), GaussianDP(0.0)) == LaplaceDP(1.0)
    assert compose(ApproxDP(epsilon=0, delta=0.5), ApproxDP(epsilon=0, delta=0.5)) == ApproxDP(epsilon=0, delta=0.75)
    assert compose(ApproxDP(epsilon=1, delta=0.5), ApproxDP(epsilon=0, delta=0.5)) == ApproxDP(epsilon=1, delta=0.75)
    revealing = compose(GaussianDP(1.0), ApproxDP(epsilon=0, delta=0.1))
    alpha = np.linspace(0, 0.9, 91)
    assert revealing.beta(alpha) == pytest.approx(0.9 * GaussianDP(1.0).beta(alpha / 0.9), abs=1e-12)


def test_asymmetric_claims_compose_in_both_directions() -> None:
    p, q = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.3, 0.1])  # outputs in order of q/p
    one = TabulatedTradeoff(alpha=np.concatenate([[0], np.cumsum(p)[:-1], [1]]), beta=[1, 0.4, 0.1, 0])
    pp, qq = np.outer(p, p).ravel(), np.outer(q, q).ravel()
    order = np.argsort(-qq / pp)
    exact_alpha = np.concatenate([[0], np.cumsum(pp[order])])
    exact_beta = np.concatenate([[1], 1 - np.cumsum(qq[order])])
    two = compose(one, one)
    assert not two.symmetric
    for claim, x, y in ((two, exact_alpha, exact_beta), (two.inverse(), exact_beta[::-1], exact_alpha[::-1])):
        gap = np.interp(ALPHA, x, y) - claim.beta(ALPHA)
        assert gap.min() >= -1e-12
        assert gap.max() < 1e-3
    both = two.symmetrized()
    assert both.symmetric
    assert np.all(both.beta(ALPHA) >= np.maximum(two.beta(ALPHA), two.inverse().beta(ALPHA)) - 1e-12)


def test_without_dp_accounting_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    claim = compose(GaussianDP(0.123), LaplaceDP(0.5))
    assert str(claim) == "compose(gaussian(mu=0.123), laplace(epsilon=0.5))"
    with pytest.raises(ImportError, match=r'pip install "dpaudit\[accounting\]"'):
        claim.beta(0.5)
    assert compose(GaussianDP(1.0), GaussianDP(1.0)).beta(0.5) < 0.5


def least_beta(allowed: Callable[[float], bool], alpha: float) -> float:
    """Return the least b such that the errors (alpha, b) are allowed, given that all larger b up to 1 - alpha are."""
    low, high = 0.0, 1 - alpha
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if allowed(middle) else (middle, high)
    return high


def renyi_divergence(order: float, x: float, y: float) -> float:
    """Return D_order(Ber(x) || Ber(y))."""
    if y in (0.0, 1.0) and x != y:
        return math.inf
    terms = [a**order * b ** (1 - order) for a, b in ((x, y), (1 - x, 1 - y)) if a > 0]
    return math.log(math.fsum(terms)) / (order - 1)


@pytest.mark.parametrize(("order", "epsilon"), [(1.5, 0.2), (2.0, 0.5), (8.0, 1.0), (32.0, 0.1)])
def test_a_renyi_claim_is_the_hypothesis_testing_region(order: float, epsilon: float) -> None:
    claim = RenyiDP(order=order, epsilon=epsilon)
    for alpha in (1e-6, 1e-3, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999):

        def allowed(b: float, alpha: float = alpha) -> bool:
            forward, back = renyi_divergence(order, 1 - b, alpha), renyi_divergence(order, alpha, 1 - b)
            return max(forward, back) <= epsilon

        exact = least_beta(allowed, alpha)
        assert exact - 1e-3 <= claim.beta(alpha) <= exact + 1e-12


@pytest.mark.parametrize("rho", [0.02, *(pytest.param(rho, marks=pytest.mark.slow) for rho in (1e-4, 0.5, 4.0))])
def test_a_concentrated_claim_is_the_hypothesis_testing_region_of_all_orders(rho: float) -> None:
    claim = ZeroConcentratedDP(rho)
    orders = 1 + np.geomspace(1e-6, 3000 / math.sqrt(rho), 4000)
    for alpha in (1e-4, 0.01, 0.1, 0.3, 0.5, 0.9):

        def allowed(b: float, alpha: float = alpha) -> bool:
            w = 1 - b
            with np.errstate(divide="ignore"):
                for x, y in ((w, alpha), (alpha, w)):
                    terms = (orders * np.log(a) + (1 - orders) * np.log(c) for a, c in ((x, y), (1 - x, 1 - y)))
                    if np.any(np.logaddexp(*terms) > (orders - 1) * rho * orders):
                        return False
            return True

        exact = least_beta(allowed, alpha)
        assert exact - 1e-3 <= claim.beta(alpha) <= exact + 1e-5  # `exact` also uses only finitely many orders
    assert np.all(claim.beta(ALPHA) <= GaussianDP(math.sqrt(2 * rho)).beta(ALPHA) + 1e-12)


def test_renyi_orders_promise_at_least_what_the_conversion_to_delta_does() -> None:
    """The direct conversion is at least as good as the best conversion via delta(epsilon) in closed form."""
    order, tau = 5.0, 0.4
    epsilon = np.linspace(0, 4, 41)
    by_delta = np.exp((order - 1) * (tau - epsilon) + order * math.log1p(-1 / order)) / (order - 1)
    assert np.all(RenyiDP(order=order, epsilon=tau).delta(epsilon) <= by_delta + 1e-6)
