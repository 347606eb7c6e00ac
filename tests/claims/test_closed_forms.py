"""Closed forms agree with a slow, plain second version: Neyman-Pearson tests on the two densities, by quadrature."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

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
    accounting,
    compose,
)
from dpaudit.claims.accounting import Part
from dpaudit.claims.compose import repeated
from dpaudit.claims.subsample import subsampled

from .test_pld_library import k_ary_response

Density = Callable[[float], float]
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Noise:
    """Two laws on the line with a nondecreasing likelihood ratio q/p, so that the best tests are thresholds."""

    p: Density
    q: Density
    corners: tuple[float, ...]  # points where a density has a corner
    end: float  # the densities are negligible beyond +-end

    def integral(self, g: Density, low: float, high: float) -> float:
        inner = [c for c in (*self.corners, 0.0) if low < c < high]
        edges = [low, *sorted(inner), high]
        return sum(quad(g, a, b, epsabs=1e-13, epsrel=1e-13, limit=200)[0] for a, b in itertools.pairwise(edges))

    def errors(self, threshold: float) -> tuple[float, float]:
        """Return the type I and type II error of the test that answers "d1" above the threshold."""
        return self.integral(self.p, threshold, self.end), self.integral(self.q, -self.end, threshold)

    def delta(self, epsilon: float) -> float:
        """Return the sup over events of Q(S) - e^eps P(S), attained on the half-line where q > e^eps p."""
        low, high = -self.end, self.end
        for _ in range(200):
            middle = (low + high) / 2
            above = self.q(middle) > math.exp(epsilon) * self.p(middle)
            low, high = (low, middle) if above else (middle, high)
        return self.integral(lambda x: self.q(x) - math.exp(epsilon) * self.p(x), high, self.end)


def gaussian(mu: float) -> Noise:
    def at(center: float) -> Density:
        return lambda x: math.exp(-((x - center) ** 2) / 2) / math.sqrt(2 * math.pi)

    return Noise(at(0.0), at(mu), (mu / 2, mu), 14 + mu)


def laplace(epsilon: float) -> Noise:
    def at(center: float) -> Density:
        return lambda x: math.exp(-abs(x - center)) / 2

    return Noise(at(0.0), at(epsilon), (0.0, epsilon), 45 + epsilon)


def named(value: object) -> str:
    """Return a test id that is the same in every process."""
    return str(value) if isinstance(value, TradeoffFunction) else ""


@pytest.mark.parametrize(
    ("claim", "noise"),
    [
        (GaussianDP(0.3), gaussian(0.3)),
        (GaussianDP(1.0), gaussian(1.0)),
        (GaussianDP(3.0), gaussian(3.0)),
        (GaussianDP(1.0).group(3), gaussian(3.0)),
        (LaplaceDP(0.2), laplace(0.2)),
        (LaplaceDP(1.0), laplace(1.0)),
        (LaplaceDP(4.0), laplace(4.0)),
        (LaplaceDP(0.5).group(2), laplace(1.0)),
    ],
    ids=named,
)
def test_the_curve_and_the_profile_of_noise_are_those_of_the_best_tests(claim: TradeoffFunction, noise: Noise) -> None:
    for threshold in np.linspace(-3, 6, 19):
        alpha, beta = noise.errors(float(threshold))
        assert claim.beta(alpha) == pytest.approx(beta, abs=TOLERANCE)
    for epsilon in np.linspace(-3, 5, 17):
        expected = noise.delta(float(epsilon))
        assert claim.delta(float(epsilon)) == pytest.approx(expected, abs=TOLERANCE)


def neyman_pearson(p: list[float], q: list[float], alpha: float) -> float:
    """Return the least type II error at level alpha: reject outputs in order of q/p, the last one at random."""
    outputs = sorted(zip(p, q, strict=True), key=lambda o: -(o[1] / o[0] if o[0] else math.inf))
    left, beta = alpha, 1.0
    for p_one, q_one in outputs:
        share = 1.0 if p_one <= left else left / p_one
        left, beta = left - share * p_one, beta - share * q_one
    return max(beta, 0.0)


def hockey_stick(p: list[float], q: list[float], epsilon: float) -> float:
    return sum(max(0.0, b - math.exp(epsilon) * a) for a, b in zip(p, q, strict=True))


def response(epsilon: float) -> tuple[list[float], list[float]]:
    lie = 1 / (1 + math.exp(epsilon))
    return [1 - lie, lie], [lie, 1 - lie]


def leaking_response(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """Return a randomised response that reveals everything with probability delta; it attains (epsilon, delta)-DP."""
    p, q = response(epsilon)
    return [*((1 - delta) * x for x in p), delta, 0.0], [*((1 - delta) * x for x in q), 0.0, delta]


def k_ary(epsilon: float, k: int) -> tuple[list[float], list[float]]:
    odds = [math.exp(epsilon)] + [1.0] * (k - 1)
    p = [x / sum(odds) for x in odds]
    return p, [p[1], p[0], *p[2:]]


@pytest.mark.parametrize(
    ("claim", "pair"),
    [
        (PureDP(0.0), response(0.0)),
        (PureDP(0.1), response(0.1)),
        (PureDP(1.0), response(1.0)),
        (PureDP(6.0), response(6.0)),
        (ApproxDP(epsilon=1.0, delta=0.05), leaking_response(1.0, 0.05)),
        (ApproxDP(epsilon=0.0, delta=0.3), leaking_response(0.0, 0.3)),
        (k_ary_response(epsilon=1.0, k=2), k_ary(1.0, 2)),
        (k_ary_response(epsilon=2.0, k=5), k_ary(2.0, 5)),
        (k_ary_response(epsilon=0.5, k=100), k_ary(0.5, 100)),
    ],
    ids=named,
)
def test_the_curve_and_the_profile_of_discrete_outputs_are_those_of_the_best_tests(
    claim: TradeoffFunction, pair: tuple[list[float], list[float]]
) -> None:
    for alpha in np.linspace(0, 1, 101):
        assert claim.beta(float(alpha)) == pytest.approx(neyman_pearson(*pair, float(alpha)), abs=TOLERANCE)
    for epsilon in np.linspace(-8, 8, 65):
        assert claim.delta(float(epsilon)) == pytest.approx(hockey_stick(*pair, float(epsilon)), abs=TOLERANCE)


def product(
    first: tuple[list[float], list[float]], second: tuple[list[float], list[float]]
) -> tuple[list[float], list[float]]:
    (p1, q1), (p2, q2) = first, second
    return [a * b for a in p1 for b in p2], [a * b for a in q1 for b in q2]


def test_pure_and_approximate_claims_compose_exactly() -> None:
    one, two, leak = response(0.7), response(0.3), leaking_response(0.2, 0.01)
    cases = [
        (PureDP(0.7).repeated(2), product(one, one)),
        (PureDP(0.7).repeated(5), product(one, product(product(one, one), product(one, one)))),
        (PureDP(0.7).repeated(2).repeated(2), product(product(one, one), product(one, one))),
        (compose(PureDP(0.7), PureDP(0.3), PureDP(0.7)), product(one, product(two, one))),
        (compose(ApproxDP(epsilon=0.2, delta=0.01), PureDP(0.7)), product(leak, one)),
    ]
    for claim, pair in cases:
        for alpha in np.linspace(0, 1, 101):
            assert claim.beta(float(alpha)) == pytest.approx(neyman_pearson(*pair, float(alpha)), abs=TOLERANCE)
        for epsilon in np.linspace(-4, 4, 33):
            assert claim.delta(float(epsilon)) == pytest.approx(hockey_stick(*pair, float(epsilon)), abs=TOLERANCE)


def iterate(claim: TradeoffFunction, k: int, alpha: float) -> float:
    """Return 1 - (1 - f)^{o k} at alpha, computed step by step."""
    for _ in range(k):
        alpha = 1 - claim.beta(alpha)
    return 1 - alpha


@pytest.mark.parametrize(
    "claim", [PureDP(0.5), PureDP(2.0), ApproxDP(epsilon=0.3, delta=0.02), k_ary_response(epsilon=1.0, k=4)], ids=named
)
@pytest.mark.parametrize("k", [2, 3, 7])
def test_groups_of_polygons_are_exact(claim: TradeoffFunction, k: int) -> None:
    group = claim.group(k)
    for alpha in np.linspace(0, 1, 101):
        assert group.beta(float(alpha)) == pytest.approx(iterate(claim, k, float(alpha)), abs=TOLERANCE)


@pytest.mark.parametrize(
    ("rho", "k"), [(0.05, 13), *(pytest.param(*given, marks=pytest.mark.slow) for given in ((4.0, 3), (0.2, 2)))]
)
def test_the_group_of_a_zcdp_claim_is_the_higher_of_two_bounds(rho: float, k: int) -> None:
    """The second version iterates 1 - f at each point, and takes the curve of k^2 rho where it is higher.

    The result is slightly lower, because a group keeps at most 6,000 lines.
    """
    claim, higher = ZeroConcentratedDP(rho), 0.0
    group = claim.group(k)
    for alpha in np.geomspace(1e-10, 0.999, 40):
        iterated, weaker = iterate(claim, k, float(alpha)), ZeroConcentratedDP(k**2 * rho).beta(float(alpha))
        found, bound = group.beta(float(alpha)), max(iterated, weaker)
        assert bound - 1e-3 <= found <= bound + 1e-6
        higher = max(higher, found - weaker)
    assert higher > 0.0009 or rho == 4.0


def test_compositions_of_groups_of_zcdp_claims_keep_the_closed_form() -> None:
    claim = ZeroConcentratedDP(0.1).group(3)
    assert claim.repeated(2) == compose(claim, claim) == ZeroConcentratedDP(0.2).group(3)


def test_the_textbook_identities_hold() -> None:
    assert GaussianDP(3.0).repeated(4) == GaussianDP(6.0)
    assert PureDP(0.4).mu() == pytest.approx(0.5, abs=0.01)
    half_billion = PureDP(1e-3).group(1000)  # Dong, Roth & Su: the limit of groups of pure DP is Laplace noise
    alpha = np.linspace(0, 1, 201)
    assert np.max(np.abs(half_billion.beta(alpha) - LaplaceDP(1.0).beta(alpha))) < 1e-3
    assert np.all(half_billion.beta(alpha) >= PureDP(1.0).beta(alpha))


# --- extreme parameters: nothing overflows, warns (pytest turns warnings into errors) or leaves its range


ALPHA = np.array([0.0, 5e-324, 1e-300, 1e-30, 1e-9, 0.1, 0.5, 1 - 1e-9, math.nextafter(1, 0), 1.0])
EPSILON = np.array([-math.inf, -1e300, -700, -40, -1, -1e-300, 0, 1e-300, 1e-9, 1, 40, 700, 1e300, math.inf])

CLAIMS = [
    *(PureDP(x) for x in (0.0, 1e-300, 700.0, 1e300)),
    *(ApproxDP(epsilon=e, delta=d) for e in (0.0, 700.0) for d in (0.0, 1e-300, 1 - 1e-12)),
    *(GaussianDP(x) for x in (0.0, 1e-300, 1e-9, 40.0, 1e6, 1e300)),
    *(LaplaceDP(x) for x in (0.0, 1e-300, 700.0, 1e300)),
    *(ZeroConcentratedDP(x) for x in (0.0, 1e-300, 1e-9, 800.0, 1e6)),
    *(RenyiDP(order=a, epsilon=e) for a in (1 + 1e-6, 2.0, 1e6) for e in (0.0, 1e-300, 1e-9, 700.0)),
    TabulatedTradeoff(alpha=[0, 1e-300, 1], beta=[1, 1e-300, 0]),
    TabulatedTradeoff(alpha=[0, 1], beta=[0, 0]),
    TabulatedTradeoff(alpha=[0, 1], beta=[1e-300, 0]),
    PrivacyLoss(epsilon=[0.0], delta=[1.0]),
    PrivacyLoss(epsilon=[700.0], delta=[1e-300]),
    *(c.subsampled(p) for c in (GaussianDP(40.0), PureDP(700.0), PureDP(1e-9)) for p in (1e-300, 1e-9, 1 - 1e-9)),
    PureDP(700.0).group(3),
    PureDP(1e-6).group(10_000),
    ApproxDP(epsilon=1, delta=1e-300).group(10_000),
    PureDP(1e-3).repeated(10_000),
    PureDP(700.0).repeated(10_000),
    GaussianDP(0.4).repeated(10_000),
    LaplaceDP(0.01).repeated(10_000),
    ApproxDP(epsilon=0.01, delta=1e-300).repeated(10_000),
    ApproxDP(epsilon=0.01, delta=0.5).repeated(10_000),
    compose(GaussianDP(40.0), PureDP(700.0)),
    compose(GaussianDP(1.0), PureDP(1e300)),
    compose(GaussianDP(1.0), LaplaceDP(1e5)),
    compose(LaplaceDP(1e-9), GaussianDP(1e-9)),
    TabulatedTradeoff(alpha=[0, 1], beta=[0.5, 0]).repeated(10_000),
]


SLOW = [
    *(ZeroConcentratedDP(x) for x in (1e-9, 800.0)),
    LaplaceDP(0.01).repeated(10_000),
    ZeroConcentratedDP(1e6),
    compose(GaussianDP(1.0), LaplaceDP(1e5)),
]


@pytest.mark.parametrize(
    "claim", [pytest.param(claim, marks=pytest.mark.slow if claim in SLOW else (), id=claim.label) for claim in CLAIMS]
)
def test_extreme_claims_stay_in_range(claim: TradeoffFunction) -> None:
    for c in dict.fromkeys((claim, claim.inverse(), claim.symmetrized())):  # a symmetric claim is its own inverse
        beta, delta = c.beta(ALPHA), c.delta(EPSILON)
        assert np.all((beta >= 0) & (beta <= 1 - ALPHA))
        assert np.all(np.diff(beta) <= 1e-15)
        assert np.all((delta >= 0) & (delta <= 1))
        assert np.all(np.diff(delta) <= 1e-15)
        assert delta[0] == 1
        epsilon = c.epsilon([0.0, 1e-300, 1e-9, 0.5, 1.0])
        assert np.all(epsilon >= 0)
        assert np.all(epsilon[1:] <= epsilon[:-1])
        assert c.mu() >= 0


def test_tails_keep_their_relative_precision() -> None:
    """Values as small as 1e-300 agree with closed forms and a computation in 350 digits."""
    assert GaussianDP(1.0).delta(37.0) == pytest.approx(_gaussian_tail(37.0), rel=1e-10)
    far = GaussianDP(1.0).epsilon(1e-300)
    assert _gaussian_tail(far * (1 - 1e-11)) > 1e-300 > _gaussian_tail(far * (1 + 1e-11))
    assert ApproxDP(epsilon=1, delta=1e-300).delta(2.0) == 1e-300
    assert ApproxDP(epsilon=1, delta=1e-300).epsilon(1e-300) == 1.0
    assert PureDP(700.0).epsilon(0.0) == 700.0
    assert LaplaceDP(700.0).epsilon(0.0) == 700.0
    assert GaussianDP(40.0).epsilon(0.0) == math.inf
    assert GaussianDP(0.0).epsilon(0.0) == 0.0
    assert PureDP(700.0).beta(math.exp(-701)) == pytest.approx(1 - math.exp(-1))
    assert GaussianDP(40.0).beta(1e-300) == pytest.approx(0.001574, rel=1e-3)


def _gaussian_tail(epsilon: float) -> float:
    from mpmath import exp, mp, mpf, ncdf

    mp.dps = 350
    return float(ncdf(mpf(-epsilon) + mpf("0.5")) - exp(mpf(epsilon)) * ncdf(mpf(-epsilon) - mpf("0.5")))


def test_a_composition_of_too_many_mechanisms_is_refused_before_it_fills_the_memory() -> None:
    """The law of the total loss would have 2 * 10**8 grid points, and its Fourier transform takes gigabytes."""
    with pytest.raises(OverflowError, match=r"composing 1e\+18 mechanisms needs a grid of more than 8,388,608 points"):
        repeated(subsampled(GaussianDP(1.0), rate=0.01), n=10**18).beta(0.5)


def test_the_grid_of_a_composition_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grid for 10**9 mechanisms had 2.4 * 10**7 points."""
    steps: list[float] = []

    def stop(parts: object, step: float) -> None:
        steps.append(step)
        raise KeyboardInterrupt

    forward, backward = subsampled(GaussianDP(1.0), rate=0.01)._directions()
    part = Part(forward, backward, 10**9)
    monkeypatch.setattr(accounting, "_total", stop)
    with pytest.raises(KeyboardInterrupt):
        accounting.composed([part])
    assert 20 * part.variance**0.5 / steps[0] <= 2**23
